"""Training: the data, the settings, cross-validation, and the choice of training designs."""
