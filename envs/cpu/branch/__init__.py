"""Branch prediction: directions, targets and returns, over a stream of instructions."""
