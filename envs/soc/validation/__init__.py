"""Figures of FARSI, and how they are read."""
