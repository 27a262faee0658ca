"""Running the trials of an experiment, in this process or through Ray Tune."""
