"""Carry-propagate adders: the prefix networks behind each form.

Networks: R. P. Brent and H. T. Kung, "A Regular Layout for Parallel Adders", IEEE Trans. C-31(3),
1982; P. M. Kogge and H. S. Stone, "A Parallel Algorithm for the Efficient Solution of a General
Class of Recurrence Equations", IEEE Trans. C-22(8), 1973; J. Sklansky, "Conditional-Sum Addition
Logic", IRE Trans. EC-9(2), 1960.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from archgym.envs.tpe.microarchitecture.pe import FINAL_ADDERS, FinalAdder
from archgym.errors import UnknownNameError

__all__ = ["Join", "adder_cells", "prefix_levels", "prefix_network"]


@dataclass(frozen=True)
class Join:
    """One node of a prefix network: the span that ends at `high` takes in the one at `low`.

    Attributes:
        high: bit at which the upper span ends.
        low: bit at which the lower span ends.
        level: nodes in series before it.
        carry: whether the lower span starts at bit 0, so that no propagate is needed any more.
    """

    high: int
    low: int
    level: int
    carry: bool


@lru_cache(maxsize=1024)
def prefix_network(form: FinalAdder, width: int) -> tuple[Join, ...]:
    """The nodes that make the carries into bits 1 to width - 1, each after those it needs.

    Raises:
        UnknownNameError: if the form is not a prefix adder.
    """
    carries = width - 1
    pairs: list[list[tuple[int, int]]] = []
    if form == "kogge_stone":
        pairs = [[(i, i - d) for i in range(carries - 1, d - 1, -1)] for d in _powers(carries)]
    elif form == "sklansky":
        pairs = [[(i, i // d * d - 1) for i in range(carries) if i & d] for d in _powers(carries)]
    elif form == "brent_kung":
        steps = _powers(carries)
        pairs = [[(i, i - d) for i in range(2 * d - 1, carries, 2 * d)] for d in steps]
        pairs += [[(i, i - d) for i in range(3 * d - 1, carries, 2 * d)] for d in steps[::-1]]
    else:
        raise UnknownNameError("prefix adder", form, FINAL_ADDERS[2:])
    # Within a step no node reads what an earlier one of that step left.
    start = list(range(carries))
    depth = [0] * carries
    nodes: list[Join] = []
    for step in pairs:
        for high, low in step:
            level = max(depth[high], depth[low])
            nodes.append(Join(high, low, level, start[low] == 0))
            start[high], depth[high] = start[low], level + 1
    return tuple(nodes)


def prefix_levels(form: FinalAdder, width: int) -> int:
    """Nodes in series of a prefix adder."""
    return max((node.level + 1 for node in prefix_network(form, width)), default=0)


@lru_cache(maxsize=1024)
def adder_cells(form: FinalAdder, width: int) -> Mapping[str, int]:
    """Number of cells of each kind of an adder; `structure.CELLS` lists the kinds."""
    if form == "auto":
        return {"add_bit": width}
    if form == "ripple":
        return {"ripple_bit": width}
    nodes = prefix_network(form, width)
    carries = sum(node.carry for node in nodes)
    return {
        "prefix_start": width,
        "prefix_cell": len(nodes) - carries,
        "prefix_carry": carries,
        "prefix_sum": width - 1,
    }


def _powers(below: int) -> list[int]:
    return [1 << k for k in range(below.bit_length()) if 1 << k < below]
