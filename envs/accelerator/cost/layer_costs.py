"""Costs of the layers of a network on a design, for people to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.envs.accelerator.cost.model import Costs
from archgym.envs.accelerator.kernel.vectors import FOUND, LEVELS
from archgym.errors import NotCoveredError

__all__ = ["LayerCost", "layer_costs", "unmapped_error"]

_WAITS = ("compute", "noc", "port", "dram", "fill")
_WORDS = tuple(column for column in FOUND if column.endswith("_words"))
_MAPPING = FOUND[FOUND.index("spatial_K") :]


@dataclass(frozen=True)
class LayerCost:
    """What one layer costs on a design.

    Attributes:
        name: of the layer.
        count: how often it runs; the figures are those of one run.
        macs: multiply-accumulates.
        cycles: time, cycles.
        waits: cycles that each part alone would take: ``compute``, ``noc``, ``port`` (of the
            buffer), ``dram``, and ``fill``, before the first result.
        energy_pj: by level, from the multipliers outwards, pJ.
        words: words by level and operand, such as ``dram_input`` and ``buffer_weight``.
        dram_bytes: read from and written to memory.
        mapping: tiles and orders that the mapper chose, empty if the design gives the mapping.
    """

    name: str
    count: int
    macs: float
    cycles: float
    waits: Mapping[str, float]
    energy_pj: Mapping[str, float]
    words: Mapping[str, float]
    dram_bytes: float
    mapping: Mapping[str, int]


def layer_costs(costs: Costs) -> list[LayerCost]:
    """The layers of the first design, in the order of the network.

    Raises:
        NotCoveredError: if a layer does not fit the design.
    """
    if missing := costs.unmapped(0):
        raise unmapped_error(costs.hardware[0], missing)
    return [
        _layer_cost(name, int(costs.table.counts[i]), costs.layer(0, i))
        for i, name in enumerate(costs.table.names)
    ]


def unmapped_error(hardware: Hardware, layers: Sequence[str]) -> NotCoveredError:
    """The error for a design that some layers do not fit."""
    more = f" and {len(layers) - 1} more" if len(layers) > 1 else ""
    return NotCoveredError(
        f"no tile of layer {layers[0]!r}{more} fits a buffer of {hardware.buffer_bytes} bytes"
    )


def _layer_cost(name: str, count: int, column: Mapping[str, float]) -> LayerCost:
    return LayerCost(
        name=name,
        count=count,
        macs=column["macs"],
        cycles=column["cycles"],
        waits={part: column[f"{part}_cycles"] for part in _WAITS},
        energy_pj={level: column[f"{level}_pj"] for level in LEVELS},
        words={c.removesuffix("_words"): column[c] for c in _WORDS},
        dram_bytes=column["dram_bytes"],
        mapping={c: int(column[c]) for c in _MAPPING} if any(column[c] for c in _MAPPING) else {},
    )
