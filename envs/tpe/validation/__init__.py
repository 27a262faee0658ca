"""Reference figures: synthesised processing elements."""
