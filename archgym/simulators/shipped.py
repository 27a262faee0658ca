"""Machine code that a wheel for a platform brings along, so that its first use compiles nothing.

The wheel is made by ``.ci/platform_wheel``, which runs every environment while
:data:`MAKE` names a folder. Importing this module imports numba.

The classes of numba's cache that are extended here are not documented as public. A wheel's code
is used by the version of numba that made it only; any other compiles, as without such a wheel.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import platform
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

FOLDER = Path(__file__).parents[1] / "compiled"
"""Where a wheel has the code."""
MAKE = "ARCHGYM_COMPILE_INTO"
"""Environment variable: the folder that takes the code while a wheel is made."""
LEVEL = "x86-64-v3"
"""The kind of processor that the code is for: level 3 of the System V ABI for x86-64 (AVX2, FMA,
BMI2), which servers have had since 2013 (Haswell) and 2015 (Excavator)."""
FEATURES = (
    *("avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sahf"),
    *("sse4.2", "ssse3", "xsave"),
)
"""Those of that level that level 1 lacks, as LLVM names them."""


class _NoFolder:
    """Where numba keeps a function for which it finds no folder that it can write: nowhere."""

    def __init__(self, function: Callable[..., Any], path: str) -> None:
        self._line = function.__code__.co_firstlineno
        self._py_file = path  # numba's warnings name it

    @classmethod
    def from_function(cls, function: Callable[..., Any], path: str) -> _NoFolder:
        return cls(function, path)

    def get_cache_path(self) -> str:
        return ""

    def get_source_stamp(self) -> str:
        return ""

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Implementation(CompileResultCacheImpl):  # type: ignore[misc]
    """Numba's own, but for the last of the places that it tries."""

    _locator_classes = (*CompileResultCacheImpl._locator_classes, _NoFolder)


class KeptCode(FunctionCache):  # type: ignore[misc]
    """The compiled forms of a function: those that the user's machine keeps, then the wheel's.

    Args:
        function: that is compiled.

    Attributes:
        keeps: whether there is a folder for those that are compiled here.
    """

    _impl_class = _Implementation

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.keeps = not isinstance(self._impl.locator, _NoFolder)
        made = os.environ.get(MAKE)
        self._makes = made is not None
        self._shipped = IndexDataCacheFile(
            cache_path=str(made or FOLDER / LEVEL),
            filename_base=f"{function.__module__}-{self._impl.filename_base}",
            # Files are as old as their installation, so their content counts.
            source_stamp=hashlib.sha256(Path(inspect.getfile(function)).read_bytes()).hexdigest(),
        )

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super()._load_overload(sig, target_context) if self.keeps else None
        if found is not None or self._makes or not _fits_this_machine():
            return found
        data = self._shipped.load(self._shipped_key(sig, target_context.codegen()))
        return None if data is None else self._impl.rebuild(target_context, data)

    def _save_overload(self, sig: Any, data: Any) -> None:
        if self.keeps:
            try:
                super()._save_overload(sig, data)
            except OSError as error:  # such as a full disk
                _say_that_code_is_lost(f"{self.cache_path}: {error.strerror}")
        if self._makes and self._impl.check_cachable(data):
            self._shipped.save(self._shipped_key(sig, data.codegen), self._impl.reduce(data))

    def _shipped_key(self, sig: Any, codegen: Any) -> Any:
        """As numba's, without the kind of processor."""
        signature, (triple, *_), content = self._index_key(sig, codegen)
        return signature, triple, content


def processor_features() -> set[str]:
    """What this machine's processor has, as LLVM names it; empty if it is not an x86-64 one."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return set()
    return {name for name, has in llvmlite.binding.get_host_cpu_features().items() if has}


@cache
def _say_that_code_is_lost(where: str) -> None:
    sys.stderr.write(f"compiled code cannot be kept in {where}\n")


@cache
def _fits_this_machine() -> bool:
    return (FOLDER / LEVEL).is_dir() and processor_features().issuperset(FEATURES)
