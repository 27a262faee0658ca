"""How the cost model is compiled."""

from __future__ import annotations

from pathlib import Path

from archgym.simulators.compilation import Kernel

__all__ = ["compiled", "entry", "inlined"]

_KERNEL = Kernel(
    "cost model of language models",
    Path(__file__).parent.glob("*.py"),
    {"nogil": True, "error_model": "numpy"},
)

compiled, inlined, entry = _KERNEL.compiled, _KERNEL.inlined, _KERNEL.entry
