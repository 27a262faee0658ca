"""Workers that any scheduler starts: they take tickets from a folder that all machines see."""
