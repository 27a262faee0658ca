"""Exact counts of legal designs, and uniform draws that they make possible."""
