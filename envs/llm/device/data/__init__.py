"""Memories in closed form, technology and prices, software: data files and their records."""
