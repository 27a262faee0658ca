"""How the kernel is compiled."""

from __future__ import annotations

from pathlib import Path

from archgym.simulators.compilation import Kernel

__all__ = ["entry", "inlined"]

_KERNEL = Kernel(
    "SoC-v0",
    Path(__file__).parent.glob("*.py"),
    # Without numba's reference counting: compiled code makes no array here.
    {"nogil": True, "_nrt": False, "error_model": "numpy"},
    {"no_cpython_wrapper": True, "no_cfunc_wrapper": True},
)

# Calls would copy the tuples of arrays.
inlined, entry = _KERNEL.inlined, _KERNEL.entry
