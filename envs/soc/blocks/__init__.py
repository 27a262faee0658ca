"""Cores, accelerators, memories and buses, and what they cost."""
