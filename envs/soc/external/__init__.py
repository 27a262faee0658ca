"""FARSI as a simulator."""
