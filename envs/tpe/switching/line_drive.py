"""Operand lines that synthesis drives harder than their load asks for.

The lines of operand B and of the digits end at the gates that select partial products. Where they
start at registers and little logic stands behind these gates before the next registers, they are
what limits the clock: synthesis then makes their buffers and the selecting gates larger, two to
eight times the smallest in Nangate45. The method of logical effort (I. Sutherland, B. Sproull and
D. Harris, "Logical Effort", 1999) gives the least delay of two stages where each takes the square
root of what they drive together, so the drive grows with the geometric mean of the two fan-outs.
It falls with the depth of the tree behind, as ever fewer paths limit the clock; behind an encoder
in the same stage, an adder or registers nothing of it is left.

``DEPTH`` was fitted to netlists of 33 PEs in Nangate45 whose operand lines start at registers;
subsets of them give 0.66 to 0.98.
What it costs, :attr:`archgym.envs.tpe.technology.energies.Energies.drive`, is a matter of the
library: one that has its AND-OR gates in one size only, as IHP sg13g2, does little of it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archgym.envs.tpe.microarchitecture.pe import PE
from archgym.envs.tpe.microarchitecture.structure import counts

__all__ = ["DEPTH", "drive_factor", "line_drive"]

FloatArray = NDArray[np.float64]

DEPTH = 0.66
"""Depth of the compressor tree, full-adder delays, at which 1/e of the additional drive is left."""


def line_drive(pe: PE) -> float:
    """The additional drive of each gate input on the operand lines of a PE; 0 where there is none.

    In a stage without a compressor tree it would be the geometric mean of the fan-outs of a bit of
    B (partial products) and of a digit (bits of a partial product).
    """
    if pe.accumulator != "carry_save":
        return 0.0
    for stage in counts(pe).stages:
        if stage.select and stage.levels:
            early = not (stage.encoder or stage.pending or stage.window_levels)
            found = drive_factor(
                np.array([early]),
                np.array([stage.operand_fanout]),
                np.array([stage.select_fanout]),
                np.array([stage.depth]),
            )
            return float(found[0])
    return 0.0


def drive_factor(
    limits_clock: NDArray[np.bool_],
    operand_fanout: NDArray[np.int64],
    select_fanout: NDArray[np.int64],
    depth: FloatArray,
) -> FloatArray:
    """The additional drive of many PEs, every array of shape (n,).

    Args:
        limits_clock: whether registers, selection, compressor tree and registers follow directly.
        operand_fanout: partial products that one bit of B drives.
        select_fanout: bits of a partial product, which one digit drives.
        depth: of the compressor tree, full-adder delays.
    """
    both = np.sqrt(operand_fanout * select_fanout)
    found: FloatArray = np.where(limits_clock, both * np.exp(-depth / DEPTH), 0.0)
    return found
