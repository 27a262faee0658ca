"""How the cost model is compiled."""

from __future__ import annotations

from pathlib import Path

from archgym.simulators.compilation import Kernel

__all__ = ["compiled", "entry", "inlined"]

_KERNEL = Kernel(
    "cost model of language models",
    Path(__file__).parent.glob("*.py"),
    # error_model: a division by zero gives inf, as in numpy, and needs no branch.
    {"nogil": True, "error_model": "numpy"},
    # What only compiled code calls needs nothing that Python or C could call it by.
    {"no_cpython_wrapper": True, "no_cfunc_wrapper": True},
)

compiled, inlined, entry = _KERNEL.compiled, _KERNEL.inlined, _KERNEL.entry
