"""The ``mapping`` space: GAMMA's two-level mappings, on fixed or searched hardware.

At each level one loop is spread over the parts (clusters; PEs of a cluster), the six loops have an
order, and each has a tile. One mapping serves all layers of the network; where a layer is smaller
than a tile, the tile is cut. Hardware parameters are held with ``fixed=``.
"""

from __future__ import annotations

from collections.abc import Mapping as Dict
from typing import Any, Final

from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.envs.accelerator.cost.mapping import LOOPS, Level, Mapping
from archgym.envs.accelerator.workload.layer import Network
from archgym.space import (
    Categorical,
    DesignSpace,
    Expression,
    Integer,
    Ordinal,
    Parameter,
    Permutation,
    Rule,
    param,
)

__all__ = ["baseline", "hardware", "mapping", "mapping_space"]

_LEVELS: Final = {"outer": "clusters", "inner": "PEs of a cluster"}
_SHARES: Final = {"input_rf_bytes": 0.25, "weight_rf_bytes": 0.5, "output_rf_bytes": 0.25}
"""What of a PE's memory is for what."""


def mapping_space(network: Network, fixed: Dict[str, Any] | None = None) -> DesignSpace:
    """Return the space for a network: tiles go up to its largest loop bounds.

    Args:
        network: its layers.
        fixed: fields of `Hardware` that hold whatever a design says; the rules go by them.
    """
    bounds = _bounds(network)
    parameters: list[Parameter] = [
        Integer("pes", 1, 1024, doc="processing elements", unit="PEs", group="hardware"),
        Ordinal(
            "cluster_size",
            [1, 2, 4, 8, 16, 32, 64],
            doc="PEs of a cluster",
            unit="PEs",
            group="hardware",
        ),
        Ordinal(
            "pe_buffer_bytes",
            [1 << i for i in range(6, 17)],
            doc="memory of a PE",
            unit="B",
            group="hardware",
        ),
        Ordinal(
            "buffer_kib",
            [1 << i for i in range(4, 15)],
            doc="global buffer",
            unit="KiB",
            group="hardware",
        ),
        Ordinal(
            "noc_bytes_per_cycle",
            [4, 8, 16, 32, 64, 128, 256],
            doc="between buffer and array, each way",
            unit="B/cycle",
            group="hardware",
        ),
        Ordinal(
            "dram_bytes_per_cycle",
            [2, 4, 8, 16, 32, 64],
            doc="between memory and chip",
            unit="B/cycle",
            group="hardware",
        ),
    ]
    for level, parts in _LEVELS.items():
        parameters += [
            Categorical(f"{level}_spread", LOOPS, doc=f"loop spread over the {parts}", group=level),
            Permutation(
                f"{level}_order", LOOPS, doc="order of the loops, outermost first", group=level
            ),
        ]
        for loop in LOOPS:
            parameters.append(
                Ordinal(
                    f"{level}_{loop}",
                    _sizes(bounds[loop]),
                    doc=f"tile of loop {loop} that one of the {parts} holds",
                    group=level,
                )
            )
    stride = max(layer.stride for layer in network.layers)
    return DesignSpace(parameters, _rules(bounds, stride, fixed or {}))


def baseline(network: Network) -> dict[str, Any]:
    """Return NVDLA's mapping on 256 PEs, a design of `mapping_space`."""
    bounds = _bounds(network)
    tiles = {"K": 1, "C": min(16, bounds["C"]), "R": bounds["R"], "S": bounds["S"], "P": 1, "Q": 1}
    size = {loop: max(s for s in _sizes(bounds[loop]) if s <= tile) for loop, tile in tiles.items()}
    return {
        "pes": 256,
        "cluster_size": 16,
        "pe_buffer_bytes": 1024,
        "buffer_kib": 512,
        "noc_bytes_per_cycle": 64,
        "dram_bytes_per_cycle": 16,
        "outer_spread": "K",
        "outer_order": "KCRSPQ",
        **{f"outer_{loop}": size[loop] for loop in LOOPS},
        "inner_spread": "C",
        "inner_order": "KCPQRS",
        **{f"inner_{loop}": 1 if loop == "C" else size[loop] for loop in LOOPS},
    }


def hardware(design: Dict[str, Any], **fixed: Any) -> Hardware:
    """Return the hardware of a design of this space."""
    clusters = design["pes"] // design["cluster_size"]
    return Hardware(
        **{
            "dataflow": "custom",
            "rows": clusters,
            "columns": design["cluster_size"],
            "spare_pes": design["pes"] - clusters * design["cluster_size"],
            **{name: int(share * design["pe_buffer_bytes"]) for name, share in _SHARES.items()},
            "buffer_bytes": 1024 * design["buffer_kib"],
            "banks": max(1, design["noc_bytes_per_cycle"] // 4),
            "noc_bytes_per_cycle": float(design["noc_bytes_per_cycle"]),
            "dram_bytes_per_cycle": float(design["dram_bytes_per_cycle"]),
            "technology": "cmos28",
            **fixed,
        }
    )


def mapping(design: Dict[str, Any]) -> Mapping:
    """Return the mapping of a design of this space."""
    return Mapping(
        clusters=design["pes"] // design["cluster_size"],
        cluster_size=design["cluster_size"],
        outer=_level(design, "outer"),
        inner=_level(design, "inner"),
    )


def _level(design: Dict[str, Any], level: str) -> Level:
    k, c, r, s, p, q = (int(design[f"{level}_{loop}"]) for loop in LOOPS)
    return Level(design[f"{level}_spread"], design[f"{level}_order"], (k, c, r, s, p, q))


def _bounds(network: Network) -> dict[str, int]:
    """Largest bound of each loop; a depthwise layer's channels are its ``C``."""
    found = dict.fromkeys(LOOPS, 1)
    for layer in network.layers:
        depthwise = layer.groups > 1 and layer.groups == layer.C == layer.K
        own = {
            "K": 1 if depthwise else layer.K // layer.groups,
            "C": layer.C if depthwise else layer.C // layer.groups,
            "R": layer.R,
            "S": layer.S,
            "P": layer.P * (layer.batch if layer.R == layer.S == 1 else 1),
            "Q": layer.Q,
        }
        for loop, bound in own.items():
            found[loop] = max(found[loop], bound)
    return found


def _sizes(bound: int) -> list[int]:
    """Tiles worth having: all divisors, all powers of two, and the whole loop."""
    divisors = {d for d in range(1, bound + 1) if bound % d == 0}
    return sorted(divisors | {1 << i for i in range(bound.bit_length()) if 1 << i <= bound})


def _rules(bounds: dict[str, int], stride: int, fixed: Dict[str, Any]) -> list[Rule]:
    formats = ("word_bits", "accumulator_bits", "double_buffered", "keeps_halves")
    chip = Hardware("custom", 1, 1, **{name: fixed[name] for name in formats if name in fixed})
    copies = 2 if chip.double_buffered and chip.keeps_halves else 1
    twice = " twice (double buffering)" if copies == 2 else ""
    inner: dict[str, Expression | int] = {loop: param(f"inner_{loop}") for loop in LOOPS}
    outer: dict[str, Expression | int] = {loop: param(f"outer_{loop}") for loop in LOOPS}
    searched = sum(share for name, share in _SHARES.items() if name not in fixed)
    held = sum(fixed[name] for name in _SHARES if name in fixed)
    pe_room = param("pe_buffer_bytes") * searched + held if held else param("pe_buffer_bytes")
    rules = [
        Rule(
            "clusters_are_full",
            param("cluster_size") <= param("pes"),
            doc="there is at least one cluster",
        ),
        Rule(
            "pe_tile_fits",
            copies * _bytes(inner, stride, chip) <= pe_room,
            doc=f"a PE holds its tile{twice}",
        ),
    ]
    rules.extend(
        Rule(
            f"tiles_nest_{loop}",
            param(f"inner_{loop}") <= param(f"outer_{loop}"),
            doc="a PE's tile is part of its cluster's",
        )
        for loop in LOOPS
    )
    clusters = param("pes") // param("cluster_size")
    room = fixed["buffer_bytes"] if "buffer_bytes" in fixed else 1024 * param("buffer_kib")
    for loop in LOOPS:
        # The clusters together hold no more of the loop than there is.
        spread = {**outer, loop: param(f"outer_{loop}") * clusters}
        whole = {**outer, loop: bounds[loop]}
        fits = (copies * _bytes(spread, stride, chip) <= room) | (
            copies * _bytes(whole, stride, chip) <= room
        )
        rules.append(
            Rule(
                f"buffer_tile_fits_{loop}",
                (param("outer_spread") != loop) | fits,
                doc=f"the buffer holds all clusters' tiles{twice}, spread over {loop}",
            )
        )
    return rules


def _bytes(tile: Dict[str, Expression | int], stride: int, chip: Hardware) -> Any:
    """Bytes of a tile: inputs, weights, partial sums."""
    rows = (tile["P"] - 1) * stride + tile["R"]
    columns = (tile["Q"] - 1) * stride + tile["S"]
    words = tile["C"] * (rows * columns + tile["K"] * (tile["R"] * tile["S"]))
    sums = tile["K"] * tile["P"] * tile["Q"]
    return chip.word_bytes * words + chip.accumulator_bytes * sums
