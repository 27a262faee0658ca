"""Chips, clusters and models as data files with their sources, and their readers."""
