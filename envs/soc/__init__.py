"""Systems on chip: processors, accelerators, memories and buses for graphs of tasks."""
