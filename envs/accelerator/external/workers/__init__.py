"""Scripts that run external simulators; each starts in a separate process."""
