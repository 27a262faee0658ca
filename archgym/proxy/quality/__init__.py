"""How good a proxy is: scores on unseen designs, learning curves, speed, and their plots."""
