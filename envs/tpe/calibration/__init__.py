"""Fitting the coefficients of a cell library to synthesised blocks."""
