"""Compiling a package of functions with numba, cached for as long as none of its modules changes.

Importing this module imports numba: only the modules that are compiled do.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import event as numba_events
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

from archgym.simulators.shipped import KeptCode

Compiled = TypeVar("Compiled", bound=Callable[..., Any])
_ONCE = "once on this machine (one to three minutes)"
_EACH_TIME = (
    "in every process (one to three minutes): neither the package nor the cache folder of the user "
    "can be written; NUMBA_CACHE_DIR=FOLDER names another one"
)


def compiled_once(**options: Any) -> Callable[[Compiled], Compiled]:
    """Decorates a function that is compiled once on a machine, or never, if the wheel has it.

    Only changes of the function itself are noticed, not of those that it calls.

    Args:
        **options: of ``numba.njit``.
    """

    def decorate(function: Compiled) -> Compiled:
        made = njit(**options)(function)
        made._cache = KeptCode(function)
        return cast(Compiled, made)

    return decorate


class Kernel:
    """The compiled functions of one package.

    A line on stderr announces the compilation once, because it can take minutes.

    Args:
        name: what messages call it.
        sources: its modules; what is kept compiled is made anew when one of them changes.
        options: of ``numba.njit``, for every function.
        inner_options: of ``numba.njit``, for those that only compiled functions call.
        entries_only: whether only entries are optimised, with all that they call, and not each
            function that only compiled ones call. Where calls nest deeply it saves most of the
            time to compile; where several entries share much, it may cost some.
    """

    def __init__(
        self,
        name: str,
        sources: Iterable[Path],
        options: Mapping[str, Any],
        inner_options: Mapping[str, Any] | None = None,
        *,
        entries_only: bool = False,
    ) -> None:
        self._announcer = _Announcer(name)
        content = b"".join(path.read_bytes() for path in sorted(sources))
        self._sources = int.from_bytes(hashlib.sha256(content).digest()[:6])
        self._options = dict(options)
        self._inner = {**self._options, **(inner_options or {})}
        if entries_only:
            self._inner["pipeline_class"] = _InnerCompiler

    def compiled(self, function: Compiled) -> Compiled:
        """A compiled function that compiled functions call."""
        return cast(Compiled, njit(**self._inner)(function))

    def inlined(self, function: Compiled) -> Compiled:
        """As :meth:`compiled`, always inlined."""
        return cast(Compiled, njit(forceinline=True, **self._inner)(function))

    def entry(self, make: Callable[[int], Compiled]) -> Compiled:
        """A function that Python calls, kept compiled between processes.

        Numba's cache notices changes of the function and of the variables that it encloses, but
        not of functions that it calls; so ``make`` gets a hash of the sources of
        all these modules, and the function that it returns has to enclose it.
        """
        made = compiled_once(**self._options)(make(self._sources))
        self._announcer.entries[id(made)] = cast(Any, made)._cache.keeps
        return made


class _InnerCode(JITCodeLibrary):  # type: ignore[misc]
    """The code of a function that only compiled functions call, with that of those it calls.

    Numba optimises such a whole for every function, and again in each that calls it. The method
    is not documented as public: without it, numba does as always.
    """

    def _optimize_final_module(self) -> None:
        return


class _InnerCompiler(Compiler):  # type: ignore[misc]
    """Numba's own compiler, but for what it does at the end."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile a function."""
        codegen = self.state.targetctx.codegen()
        self.state.library = _InnerCode(codegen, func.__qualname__)
        return super().compile_extra(func)


class _Announcer(numba_events.Listener):  # type: ignore[misc]
    """Hears what numba compiles; of what it loads from its cache it hears nothing."""

    def __init__(self, name: str) -> None:
        self.entries: dict[int, bool] = {}  # by identity, whether its code is kept
        self._name = name
        self._announced = False
        numba_events.register("numba:compile", self)

    def on_start(self, event: Any) -> None:
        """A function begins to be compiled."""
        kept = self.entries.get(id(event.data["dispatcher"]))
        if not self._announced and kept is not None:
            self._announced = True  # once is enough: the others follow
            sys.stderr.write(f"{self._name}: compiling, {_ONCE if kept else _EACH_TIME} ...\n")
            sys.stderr.flush()

    def on_end(self, event: Any) -> None:
        """It is compiled."""
