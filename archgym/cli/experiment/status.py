"""``archgym status``."""

from __future__ import annotations


def status() -> None:
    """Show how a run is doing."""
