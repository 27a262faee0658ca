"""The ``archgym`` command."""

from archgym.cli.app import app, main

__all__ = ["app", "main"]
