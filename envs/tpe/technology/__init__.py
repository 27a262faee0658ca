"""Cell libraries as calibrated coefficients."""
