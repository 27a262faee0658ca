"""How the model of the core is compiled, with the predictors and caches that it calls."""

from __future__ import annotations

from pathlib import Path

from archgym.simulators.compilation import Kernel

__all__ = ["compiled", "entry", "inlined"]

_FOLDER = Path(__file__).parent
# These call compiled code and hold none.
_CALLERS = ("config.py", "run.py", "settings.py", "stream.py")
_KERNEL = Kernel(
    "CPU-v0, core",
    (
        path
        for part in ("core", "branch", "hierarchy")
        for path in (_FOLDER.parent / part).glob("*.py")
        if path.name not in _CALLERS
    ),
    # Without numba's reference counting: compiled code makes no array here.
    # Sizes are never zero: no check of divisions.
    {"nogil": True, "_nrt": False, "error_model": "numpy"},
    {"no_cpython_wrapper": True, "no_cfunc_wrapper": True},
    entries_only=True,
)

compiled, inlined, entry = _KERNEL.compiled, _KERNEL.inlined, _KERNEL.entry
