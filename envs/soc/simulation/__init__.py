"""Running the tasks of graphs on systems, phase by phase, in compiled code."""
