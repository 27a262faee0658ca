"""How the kernel is compiled."""

from __future__ import annotations

from pathlib import Path

from archgym.simulators.compilation import Kernel

__all__ = ["compiled", "entry", "inlined"]

_KERNEL = Kernel(
    "DRAM-v0, memory controller",
    Path(__file__).parent.glob("*.py"),
    # Without numba's reference counting: compiled code makes no array here, and counting
    # references to those passed around would take most of the time.
    {"nogil": True, "_nrt": False},
    # What only compiled code calls needs nothing that Python or C could call it by.
    {"no_cpython_wrapper": True, "no_cfunc_wrapper": True},
)

compiled, inlined, entry = _KERNEL.compiled, _KERNEL.inlined, _KERNEL.entry
