"""The base class of every environment, its arguments and its observations."""

from archgym.environment.environment import Environment

__all__ = ["Environment"]
