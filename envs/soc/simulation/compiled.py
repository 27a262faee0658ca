"""How the kernel is compiled."""

from __future__ import annotations

from pathlib import Path

from archgym.simulators.compilation import Kernel

__all__ = ["compiled", "entry"]

_KERNEL = Kernel(
    "SoC-v0",
    Path(__file__).parent.glob("*.py"),
    {"nogil": True, "error_model": "numpy"},
    {"no_cpython_wrapper": True, "no_cfunc_wrapper": True},
)

compiled, entry = _KERNEL.compiled, _KERNEL.entry
