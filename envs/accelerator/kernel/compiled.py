"""How the kernel is compiled, and cached for as long as no module of it changes."""

from __future__ import annotations

import contextlib
import hashlib
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

__all__ = ["announced", "compiled", "entry"]

Compiled = TypeVar("Compiled", bound=Callable[..., Any])

# error_model: a division by zero gives inf, as in numpy, and needs no branch.
_OPTIONS = {"nogil": True, "error_model": "numpy"}
# What only compiled code calls needs nothing that Python or C could call it by.
_INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **_OPTIONS}

_PATIENCE_S = 0.5
_COMPILING = "Accelerator-v0: compiling the cost model, once on this machine (some 15 s) ...\n"


def compiled(function: Compiled) -> Compiled:
    """A compiled function that compiled functions call."""
    return cast(Compiled, njit(**_INNER)(function))


def entry(make: Callable[[int], Compiled]) -> Compiled:
    """A function that Python calls, kept compiled between processes.

    Numba's cache notices changes of the function and of the variables that it encloses, but not of
    functions that it calls; so ``make`` gets a number that stands for the sources of the whole
    kernel, and the function that it returns has to enclose it.
    """
    return cast(Compiled, njit(cache=True, **_OPTIONS)(make(_SOURCES)))


@contextlib.contextmanager
def announced(function: Callable[..., Any]) -> Iterator[None]:
    """Says on stderr if an entry is compiled inside the ``with`` block, not loaded from before."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_PATIENCE_S):
            # Counted before the compilation begins.
            if function.stats.cache_misses:  # type: ignore[attr-defined]
                sys.stderr.write(_COMPILING)
                sys.stderr.flush()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _hash_sources() -> int:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return int.from_bytes(digest.digest()[:6])


_SOURCES = _hash_sources()
