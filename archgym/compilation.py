"""Compiling a package of functions with numba, cached for as long as none of its modules changes.

Importing this module imports numba: only the modules that are compiled do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

__all__ = ["Kernel"]

Compiled = TypeVar("Compiled", bound=Callable[..., Any])


class Kernel:
    """The compiled functions of one package.

    Args:
        sources: its modules; what is kept compiled is made anew when one of them changes.
        options: of ``numba.njit``, for every function.
        inner_options: of ``numba.njit``, for those that only compiled functions call.
    """

    def __init__(
        self,
        sources: Iterable[Path],
        options: Mapping[str, Any],
        inner_options: Mapping[str, Any] | None = None,
    ) -> None:
        self._sources = _hash_sources(sources)
        self._options = dict(options)
        self._inner = {**self._options, **(inner_options or {})}

    def compiled(self, function: Compiled) -> Compiled:
        """A compiled function that compiled functions call."""
        return cast(Compiled, njit(**self._inner)(function))

    def inlined(self, function: Compiled) -> Compiled:
        """The same, always put in place."""
        return cast(Compiled, njit(forceinline=True, **self._inner)(function))

    def entry(self, make: Callable[[int], Compiled]) -> Compiled:
        """A function that Python calls, kept compiled between processes.

        Numba's cache notices changes of the function and of the variables that it encloses, but
        not of functions that it calls; so ``make`` gets a number that stands for the sources of
        all these modules, and the function that it returns has to enclose it.
        """
        return cast(Compiled, njit(cache=True, **self._options)(make(self._sources)))


def _hash_sources(sources: Iterable[Path]) -> int:
    digest = hashlib.sha256()
    for path in sorted(sources):
        digest.update(path.read_bytes())
    return int.from_bytes(digest.digest()[:6])
