"""The memory controller: its settings, its simulation, and what a run comes to."""
