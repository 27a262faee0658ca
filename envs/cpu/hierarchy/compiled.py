"""How the kernel is compiled."""

from __future__ import annotations

from pathlib import Path

from archgym.simulators.compilation import Kernel

__all__ = ["compiled", "entry", "inlined"]

_KERNEL = Kernel(
    "CPU-v0, caches",
    Path(__file__).parent.glob("*.py"),
    # Without numba's reference counting: compiled code makes no array here.
    # Sizes are never zero: no check of divisions.
    {"nogil": True, "_nrt": False, "error_model": "numpy"},
    {"no_cpython_wrapper": True, "no_cfunc_wrapper": True},
    entries_only=True,
)

compiled, inlined, entry = _KERNEL.compiled, _KERNEL.inlined, _KERNEL.entry
