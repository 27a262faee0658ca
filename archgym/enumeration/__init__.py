"""Evaluating a whole design space into a table: ``archgym enumerate``."""

from archgym.enumeration.enumerate import MAX_CHUNK, MAX_DESIGNS, enumerate_space

__all__ = ["MAX_CHUNK", "MAX_DESIGNS", "enumerate_space"]
