"""Bayesian optimisation with our own Gaussian process."""
