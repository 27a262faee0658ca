"""How the schedulers are compiled."""

from __future__ import annotations

from pathlib import Path

from archgym.simulators.compilation import Kernel

__all__ = ["compiled", "entry", "inlined"]

# error_model: a division by zero gives inf, as in numpy, and needs no branch.
_KERNEL = Kernel(
    "NAS-v0, schedulers",
    Path(__file__).parent.glob("*.py"),
    {"nogil": True, "error_model": "numpy"},
)

compiled, inlined, entry = _KERNEL.compiled, _KERNEL.inlined, _KERNEL.entry
