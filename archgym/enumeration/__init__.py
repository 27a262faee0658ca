"""Evaluating a whole design space into a table: ``archgym enumerate``."""

from archgym.enumeration.enumerate import CHUNK, MOST, enumerate_space

__all__ = ["CHUNK", "MOST", "enumerate_space"]
