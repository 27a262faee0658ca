"""Records of searches that come with archgym, which a search may learn from by name."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Final

from archgym.errors import UnknownNameError

__all__ = ["SHIPPED", "place_of", "shipped_histories"]

SHIPPED: Final = "shipped:"
"""What a name begins with that is no path."""


def shipped_histories() -> dict[str, Path]:
    """The datasets of searches that come with archgym, by name."""
    with resources.as_file(resources.files("archgym").joinpath("datasets", "searches")) as folder:
        return {path.name: path for path in sorted(folder.iterdir()) if path.is_dir()}


def place_of(text: str) -> Path:
    """The folder that a path, or ``shipped:NAME``, stands for.

    Raises:
        UnknownNameError: if no search of that name comes with archgym.
    """
    if not text.startswith(SHIPPED):
        return Path(text).expanduser()
    known = shipped_histories()
    name = text.removeprefix(SHIPPED)
    if name not in known:
        raise UnknownNameError("search that comes with archgym", name, known)
    return known[name]
