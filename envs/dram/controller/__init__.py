"""The memory controller: its settings, its simulation and the results of a run."""
