"""How the kernel is compiled, and cached for as long as no module of it changes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

Compiled = TypeVar("Compiled", bound=Callable[..., Any])

# Without numba's reference counting: compiled code makes no array here, and counting references to
# those passed around would take most of the time.
_OPTIONS = {"nogil": True, "_nrt": False}
# What only compiled code calls needs nothing that Python or C could call it by.
_INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **_OPTIONS}


def compiled(function: Compiled) -> Compiled:
    """A compiled function that compiled functions call."""
    return cast(Compiled, njit(**_INNER)(function))


def inlined(function: Compiled) -> Compiled:
    """The same, always put in place."""
    return cast(Compiled, njit(forceinline=True, **_INNER)(function))


def entry(make: Callable[[int], Compiled]) -> Compiled:
    """A function that Python calls, kept compiled between processes.

    Numba's cache notices changes of the function and of the variables that it encloses, but not of
    functions that it calls; so ``make`` gets a number that stands for the sources of the whole
    kernel, and the function that it returns has to enclose it.
    """
    return cast(Compiled, njit(cache=True, **_OPTIONS)(make(_SOURCES)))


def _hash_sources() -> int:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return int.from_bytes(digest.digest()[:6])


_SOURCES = _hash_sources()
