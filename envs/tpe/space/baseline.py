"""The baseline design: a classic array with the fixed parameters of the space, at a legal clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from archgym.envs.tpe.microarchitecture.edge import edge_blocks
from archgym.envs.tpe.microarchitecture.pe import Array
from archgym.envs.tpe.space.named import BASELINES, named_array
from archgym.envs.tpe.space.parameters import CLOCKS_MHZ, OPERAND_WIDTHS
from archgym.envs.tpe.technology.technology import Technology

__all__ = ["baseline_array", "fastest_mhz"]


def baseline_array(
    held: Mapping[str, Any],
    min_widths: tuple[int, int],
    technology: Technology,
    *,
    alone: bool = False,
) -> Array:
    """The classic array that a search starts from and is compared with.

    With a clock target that is not held it runs at the fastest one that it meets. Where the target
    is held and too fast for it, its first published optimisation that meets it is taken instead.

    Args:
        held: parameters that are not searched; the kind of array among them, if it is one.
        min_widths: bits that operands A and B need.
        technology: the cell library.
        alone: whether a PE alone sets the clock, without edge blocks.
    """
    kind = held.get("array")
    narrowest = [min(w for w in OPERAND_WIDTHS if w >= bits) for bits in min_widths]
    widths = tuple(
        bits if (bits := held.get(name)) in OPERAND_WIDTHS else minimum
        for name, minimum in zip(("width_a", "width_b"), narrowest, strict=True)
    )
    if kind == "bit_serial_column":
        names = ["OPT3"]
    else:  # a kind that does not exist is refused with the space
        kind = kind if isinstance(kind, str) and kind in BASELINES else "systolic_os"
        names = [kind, f"{kind}/OPT1", f"{kind}/OPT2"]
    arrays = [named_array(name, (widths[0], widths[1])) for name in names]
    if held.get("clock") != "target":
        return arrays[0]
    limits = [fastest_mhz(array, technology, alone=alone) for array in arrays]
    asked = held.get("clock_mhz")
    if asked is None or asked not in CLOCKS_MHZ:
        met = [clock for clock in CLOCKS_MHZ if clock <= limits[0]]
        return replace(arrays[0], clock_mhz=max(met, default=min(CLOCKS_MHZ)))
    fast = [array for array, limit in zip(arrays, limits, strict=True) if asked <= limit]
    return replace((fast or arrays)[0], clock_mhz=asked)


def fastest_mhz(array: Array, technology: Technology, *, alone: bool = False) -> float:
    """The fastest clock of an array, MHz.

    Args:
        array: the array.
        technology: the cell library.
        alone: whether its PE alone counts.
    """
    blocks = [] if alone else [block for block, n in edge_blocks(array) if n]
    periods = [technology.edge_period_ns(block) for block in blocks]
    return 1e3 / max(technology.pe_period_ns(array.pe), *periods, 0.0)
