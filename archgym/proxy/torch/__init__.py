"""Predictions in large batches with PyTorch, on a processor or a GPU."""
