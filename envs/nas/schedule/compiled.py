"""How the schedulers are compiled, and cached for as long as no module of theirs changes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = ["Flags", "Floats", "Ints", "compiled", "entry"]

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Compiled = TypeVar("Compiled", bound=Callable[..., Any])

# error_model: a division by zero gives inf, as in numpy, and needs no branch.
_OPTIONS = {"nogil": True, "error_model": "numpy"}


def compiled(function: Compiled) -> Compiled:
    """A compiled function that compiled functions call."""
    return cast(Compiled, njit(**_OPTIONS)(function))


def entry(make: Callable[[int], Compiled]) -> Compiled:
    """A function that Python calls, kept compiled between processes.

    Numba's cache notices changes of the function and of the variables that it encloses, but not of
    functions that it calls; so ``make`` gets a number that stands for the sources of all modules
    here, and the function that it returns has to enclose it.
    """
    return cast(Compiled, njit(cache=True, **_OPTIONS)(make(_SOURCES)))


def _hash_sources() -> int:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return int.from_bytes(digest.digest()[:6])


_SOURCES = _hash_sources()
