"""Data files: memories, technology and prices, software."""
