"""Where accuracies come from: tables, training on the spot, zero-cost scores, published points."""
