"""What an operator does: its time on each part, the bytes of each tier, and energies."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

__all__ = ["Work", "chosen", "total"]

Array = NDArray[np.float64]


@dataclass
class Work:
    """An operator, or several; each field has shape (n_designs,).

    Attributes:
        seconds: from start to end; the longest part, as the parts overlap.
        compute_s: of multipliers, of the vector unit or of tables.
        near_s: of the near memory.
        far_s: of the far memory.
        flash_s: of flash.
        in_memory_s: of units in the banks of the near memory, transfers of vectors included.
        near_bytes: that cross the interface of the near memory.
        far_bytes: of the far memory.
        flash_bytes: of flash.
        macs: multiplications of the processor.
        compute_j: energy of multipliers, vector unit and tables.
        sram_j: of SRAM.
        in_memory_j: of units in banks and the rows that they read.
    """

    seconds: Array
    compute_s: Array
    near_s: Array
    far_s: Array
    flash_s: Array
    in_memory_s: Array
    near_bytes: Array
    far_bytes: Array
    flash_bytes: Array
    macs: Array
    compute_j: Array
    sram_j: Array
    in_memory_j: Array


def total(parts: list[Work]) -> Work:
    """Operators one after the other."""
    return Work(*(np.sum([getattr(p, f.name) for p in parts], axis=0) for f in fields(Work)))


def chosen(condition: NDArray[np.bool_], yes: Work, no: Work) -> Work:
    """The one where the condition holds, the other elsewhere."""
    return Work(
        *(np.where(condition, getattr(yes, f.name), getattr(no, f.name)) for f in fields(Work))
    )
