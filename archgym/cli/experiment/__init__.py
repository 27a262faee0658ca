"""Commands on the runs of experiments."""
