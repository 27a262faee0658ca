"""Switching activity of signals, and the energy that it costs."""
