"""How the serving simulator is compiled."""

from __future__ import annotations

from pathlib import Path

from archgym.simulators.compilation import Kernel

__all__ = ["compiled", "entry", "inlined"]

_FOLDER = Path(__file__).parent
_KERNEL = Kernel(
    "serving of language models",
    [*_FOLDER.glob("*.py"), *(_FOLDER.parent / "cost").glob("*.py")],
    {"nogil": True, "error_model": "numpy"},
    {"no_cpython_wrapper": True, "no_cfunc_wrapper": True},
)

compiled, inlined, entry = _KERNEL.compiled, _KERNEL.inlined, _KERNEL.entry
