"""Environments that a YAML file declares around any program, without a line of Python."""

from archgym.declared.environment import DeclaredEnvironment, declared_class
from archgym.declared.schema import Declaration

__all__ = ["Declaration", "DeclaredEnvironment", "declared_class"]
