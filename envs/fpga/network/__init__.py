"""Networks of dense and convolutional layers, in floating point and in integers."""
