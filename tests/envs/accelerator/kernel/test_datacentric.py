"""Two-level mappings against a walk through every step, element by element."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.envs.accelerator.cost.mapping import LOOPS, ORDERS, Level, Mapping
from archgym.envs.accelerator.cost.model import evaluate, evaluate_mappings
from archgym.envs.accelerator.workload.layer import Layer
from archgym.errors import InvalidValueError
from tests.envs.accelerator.random_designs import table

Elements = set[tuple[int, ...]]


def walk(layer: Layer, mapping: Mapping) -> tuple[int, int, int]:
    """Input and weight words that are new to the array at each step, and all products, counted."""
    bounds = dict(zip(LOOPS, layer.row[:6], strict=True))
    level = mapping.outer
    tiles = {loop: min(t, bounds[loop]) for loop, t in zip(LOOPS, level.tiles, strict=True)}
    chunk = {
        loop: tiles[loop] * (mapping.clusters if loop == level.spread else 1) for loop in LOOPS
    }
    starts = [range(0, bounds[loop], chunk[loop]) for loop in level.order]
    held: tuple[Elements, Elements] = (set(), set())
    words = [0, 0]
    products = 0
    for step in product(*starts):
        begin = dict(zip(level.order, step, strict=True))
        spans = {
            loop: range(begin[loop], min(begin[loop] + chunk[loop], bounds[loop])) for loop in LOOPS
        }
        inputs: Elements = {
            (c, p * layer.stride + r, q * layer.stride + s)
            for c, p, r, q, s in product(*(spans[loop] for loop in "CPRQS"))
        }
        weights: Elements = set(product(*(spans[loop] for loop in "KCRS")))
        now: tuple[Elements, Elements] = (inputs, weights)
        for i in range(2):
            words[i] += len(now[i] - held[i])
        held = now
        products += int(np.prod([len(spans[loop]) for loop in LOOPS]))
    return words[0], words[1], products


def random_case(rng: np.random.Generator, stride: int) -> tuple[Layer, Mapping]:
    k, c, r, s, p, q = (int(rng.integers(1, high)) for high in (5, 5, 4, 4, 6, 6))
    layer = Layer("l", "conv", K=k, C=c, R=r, S=s, P=p, Q=q, stride=stride)
    outer = [int(rng.integers(1, bound + 1)) for bound in (k, c, r, s, p, q)]

    def level(tiles: list[int]) -> Level:
        a, b, d, e, f, g = tiles
        return Level(str(rng.choice(LOOPS)), ORDERS[rng.integers(720)], (a, b, d, e, f, g))

    return layer, Mapping(
        int(rng.integers(1, 4)), int(rng.integers(1, 3)), level(outer), level(outer)
    )


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_traffic_is_that_of_the_walk(stride: int) -> None:
    rng = np.random.default_rng(40 + stride)
    ratios = []
    for _ in range(150):
        layer, mapping = random_case(rng, stride)
        hardware = Hardware("custom", mapping.clusters, mapping.cluster_size, buffer_bytes=1 << 20)
        found = evaluate_mappings(table(layer), [hardware], [mapping]).layer(0, 0)
        inputs, weights, products = walk(layer, mapping)
        assert found["macs"] == products == layer.macs
        assert found["buffer_weight_words"] == weights
        # A loop that starts again may by chance find a few inputs of its last window.
        assert found["buffer_input_words"] >= inputs
        ratios.append(found["buffer_input_words"] / inputs)
    assert np.median(ratios) == 1.0
    assert np.mean(ratios) < 1.05


def test_nvdla_mapping_by_hand() -> None:
    """K over 4 clusters, C over 2 PEs, one output pixel a step: 2 x 3 x 9 steps."""
    layer = Layer("l", "conv", K=8, C=6, R=2, S=2, P=3, Q=3)
    hardware = Hardware(
        "nvdla_ws",
        4,
        2,
        input_rf_bytes=4,
        weight_rf_bytes=4,
        output_rf_bytes=3,
        noc_bytes_per_cycle=1e6,
        banks=1 << 17,
    )
    found = evaluate(table(layer), [hardware], mapper="off").layer(0, 0)
    assert found["compute_cycles"] == 2 * 3 * 9 * 4
    assert found["macs"] == 8 * 6 * 4 * 9
    # Weights stay while the pixels pass; each K turn reads all inputs again.
    assert found["buffer_weight_words"] == 8 * 6 * 4
    # In a row of 3 pixels the window slides: 2 x 2 inputs, then 2 new ones, twice.
    assert found["buffer_input_words"] == 2 * 6 * 3 * (4 + 2 + 2)
    assert found["buffer_output_words"] == 3 * 8 * 9
    assert found["buffer_sum_words"] == 2 * 8 * 9


def test_a_larger_buffer_saves_memory_traffic_down_to_the_footprint() -> None:
    layer = Layer("l", "conv", K=32, C=32, R=3, S=3, P=16, Q=16)
    sizes = [1 << i for i in range(12, 20)]
    designs = [
        Hardware("nvdla_ws", 4, 4, weight_rf_bytes=16, output_rf_bytes=3, buffer_bytes=s)
        for s in sizes
    ]
    moved = evaluate(table(layer), designs, mapper="off")["dram_bytes"][:, 0]
    assert (np.diff(moved) <= 0).all()
    assert moved[0] > moved[-1]
    footprint = layer.input_footprint + layer.weight_footprint + layer.output_footprint
    assert moved[-1] == footprint


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"spread": "Z"}, "spread is 'Z'"),
        ({"order": "KCRSPP"}, "order is 'KCRSPP'"),
        ({"tiles": (1, 1, 1, 1, 1, 0)}, "tiles is"),
    ],
)
def test_impossible_levels_are_refused(change: dict[str, object], message: str) -> None:
    good: dict[str, object] = {"spread": "K", "order": "KCRSPQ", "tiles": (1, 1, 1, 1, 1, 1)}
    with pytest.raises(InvalidValueError, match=message):
        Level(**{**good, **change})  # type: ignore[arg-type]
