"""Scripts that run external simulators; each starts in a process of its own."""
