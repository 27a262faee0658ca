"""Gates that synthesis leaves out, because an input of a cell is a constant or there twice.

They are counted as two-input gates of an and-inverter graph, the form in which ABC restructures
logic (A. Mishchenko, S. Chatterjee and R. Brayton, "DAG-Aware AIG Rewriting", DAC 2006): an
exclusive or has three, and its first one is the AND of its inputs. A full adder has seven, a half
adder three (:data:`FULL_ADDER_GATES`, :data:`HALF_ADDER_GATES`).
"""

from __future__ import annotations

from archgym.envs.tpe.microarchitecture.adders import adder_cells
from archgym.envs.tpe.microarchitecture.compression_kernel import (
    FULL_ADDER_GATES,
    HALF_ADDER_GATES,
)
from archgym.envs.tpe.microarchitecture.pe import FinalAdder

__all__ = [
    "SPARED_OF_ENCODER",
    "SPARED_OF_ROW",
    "increment_gates",
    "spared_of_adder",
    "spared_of_finder",
    "sum_gates",
]

SPARED_OF_ROW = (2 + 1) / 6
"""Selections that a partial product of radix 4 is spared, of six gates each: the lowest one has no
bit of B below, so that one AND and the OR go; the highest one has the sign of B twice, so that one
AND goes."""

SPARED_OF_ENCODER = 3 / 7
"""Share of the seven gates of a Booth encoder that goes where its lowest bit is zero."""


def sum_gates(width: int, *, carried: bool = False) -> int:
    """Gates of a carry chain of two words of variable bits.

    Args:
        width: bits.
        carried: whether a carry comes in; without one, the lowest bit is a half adder.
    """
    if carried:
        return FULL_ADDER_GATES * width
    return HALF_ADDER_GATES + FULL_ADDER_GATES * (width - 1)


def increment_gates(width: int) -> int:
    """Gates of a carry chain of a word and a variable bit at its low end: half adders."""
    return HALF_ADDER_GATES * width


def spared_of_finder(lines: int) -> dict[str, float]:
    """Cells that the search for the next digit is left without: no digit is before the first one.

    The first place of the chain needs none of its three gates, the first pick no OR of its two.

    Args:
        lines: bits of a digit that are picked.
    """
    return {"pending_digit": 1.0, "pick_bit": lines / 2}


def spared_of_adder(form: FinalAdder, width: int, gates: int) -> dict[str, float]:
    """Cells of an adder that are left out, whatever its form in the proportion of its carry chain.

    Args:
        form: how its carries are made.
        width: bits.
        gates: and-inverter gates that its carry chain needs.
    """
    share = 1.0 - gates / (FULL_ADDER_GATES * width)
    return {kind: share * n for kind, n in adder_cells(form, width).items()}
