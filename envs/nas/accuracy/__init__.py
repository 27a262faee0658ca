"""Sources of accuracies: tables, training on the spot, zero-cost scores, published points."""
