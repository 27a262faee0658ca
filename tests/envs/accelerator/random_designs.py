"""Random layers, hardware and mappings for tests of the cost model's laws."""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.cost.hardware import DATAFLOWS, Hardware
from archgym.envs.accelerator.cost.mapping import LOOPS, ORDERS, Level, Mapping
from archgym.envs.accelerator.workload.layer import Layer, LayerTable

__all__ = [
    "PUBLISHED_FLOWS",
    "random_hardware",
    "random_layer",
    "random_mapping",
    "table",
]

PUBLISHED_FLOWS = tuple(flow for flow in DATAFLOWS if flow != "custom")


def table(*layers: Layer) -> LayerTable:
    """Layers, once each."""
    return LayerTable.of([(layer, 1) for layer in layers])


def random_layer(rng: np.random.Generator, largest: int = 60) -> Layer:
    """A convolution, grouped convolution, depthwise convolution or matrix product."""

    def upto(high: int) -> int:
        return int(rng.integers(1, high + 1))

    kind = rng.integers(4)
    if kind == 0:
        return Layer(
            "gemm", "gemm", K=upto(3 * largest), C=upto(3 * largest), P=upto(99), batch=upto(2)
        )
    window = {"R": upto(5), "S": upto(5), "P": upto(29), "Q": upto(29)}
    if kind == 1:
        return Layer.depthwise("dw", 1 + upto(largest), **window, stride=upto(3), batch=upto(2))
    groups = upto(3) if kind == 2 else 1
    return Layer(
        "conv",
        "conv",
        K=groups * upto(largest),
        C=groups * upto(largest),
        **window,
        stride=upto(3),
        groups=groups,
        batch=upto(2),
    )


def random_hardware(rng: np.random.Generator, dataflow: str | None = None) -> Hardware:
    """Any dataflow unless one is given, any links, memories of any size."""
    return Hardware(
        str(rng.choice(PUBLISHED_FLOWS)) if dataflow is None else dataflow,
        int(rng.integers(1, 20)),
        int(rng.integers(1, 20)),
        lanes=int(rng.integers(1, 4)),
        input_rf_bytes=int(rng.integers(0, 60)),
        weight_rf_bytes=int(rng.integers(0, 300)),
        output_rf_bytes=int(rng.integers(0, 100)),
        buffer_bytes=int(rng.integers(2000, 400_000)),
        banks=int(rng.integers(1, 32)),
        noc_bytes_per_cycle=float(2 ** rng.integers(0, 8)),
        dram_bytes_per_cycle=float(2 ** rng.integers(0, 7)),
        dram_links=("shared", "separate", "duplex")[rng.integers(3)],
        word_bits=int(rng.choice([8, 16])),
        double_buffered=bool(rng.integers(2)),
        weights_bypass_buffer=bool(rng.integers(2)),
    )


def random_mapping(rng: np.random.Generator, layer: Layer, hardware: Hardware) -> Mapping:
    """Any spreads, orders and nested tiles."""
    outer = [int(rng.integers(1, max(2, min(bound, 12) + 1))) for bound in layer.row[:6]]
    inner = [int(rng.integers(1, tile + 1)) for tile in outer]

    def level(tiles: list[int]) -> Level:
        k, c, r, s, p, q = tiles
        return Level(str(rng.choice(LOOPS)), ORDERS[rng.integers(len(ORDERS))], (k, c, r, s, p, q))

    return Mapping(hardware.rows, hardware.columns, level(outer), level(inner))
