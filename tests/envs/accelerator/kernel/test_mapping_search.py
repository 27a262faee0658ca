"""The mapper finds what trying everything finds, and is never worse than a known mapping."""

from __future__ import annotations

import numpy as np
import pytest

from archgym.envs.accelerator.cost.hardware import SPATIAL_DATAFLOWS, Hardware
from archgym.envs.accelerator.cost.model import MAPPERS, evaluate
from archgym.envs.accelerator.workload.layer import Layer
from archgym.errors import InvalidValueError, UnknownNameError
from tests.envs.accelerator.random_designs import random_hardware, random_layer, table


def small_layer(rng: np.random.Generator) -> Layer:
    k, c, r, s, p, q = (int(rng.integers(1, high)) for high in (12, 12, 4, 4, 9, 9))
    return Layer("small", "conv", K=k, C=c, R=r, S=s, P=p, Q=q, stride=int(rng.integers(1, 3)))


def small_hardware(rng: np.random.Generator, dataflow: str) -> Hardware:
    return Hardware(
        dataflow,
        int(rng.integers(1, 5)),
        int(rng.integers(1, 5)),
        input_rf_bytes=int(rng.integers(0, 30)),
        weight_rf_bytes=int(rng.integers(0, 60)),
        output_rf_bytes=int(rng.integers(0, 40)),
        buffer_bytes=int(rng.integers(100, 1500)),
        banks=4,
        noc_bytes_per_cycle=float(2 ** rng.integers(0, 5)),
        dram_bytes_per_cycle=float(2 ** rng.integers(0, 4)),
        double_buffered=bool(rng.integers(2)),
        weights_bypass_buffer=bool(rng.integers(2)),
    )


@pytest.mark.parametrize("dataflow", SPATIAL_DATAFLOWS)
def test_equals_exhaustive_search(dataflow: str) -> None:
    rng = np.random.default_rng(21)
    compared = 0
    for i in range(25):
        layer, hardware = small_layer(rng), small_hardware(rng, dataflow)
        hardware = hardware.replace(waits_for_first_tile=i % 3 == 0)
        best = evaluate(table(layer), [hardware], mapper="latency")
        tried = evaluate(table(layer), [hardware], mapper="exhaustive")
        assert best.mapped[0, 0] == tried.mapped[0, 0]
        if best.mapped[0, 0]:
            assert best["cycles"][0, 0] == tried["cycles"][0, 0]
            assert best["energy_pj"][0, 0] == pytest.approx(tried["energy_pj"][0, 0], rel=1e-12)
            compared += 1
    assert compared > 15


def test_each_objective_is_best_at_its_own() -> None:
    rng = np.random.default_rng(22)
    for _ in range(150):
        layer, hardware = random_layer(rng), random_hardware(rng)
        found = {m: evaluate(table(layer), [hardware], mapper=m) for m in MAPPERS}
        if not found["latency"].mapped[0, 0]:
            continue
        cycles = {m: c["cycles"][0, 0] for m, c in found.items()}
        energy = {m: c["energy_pj"][0, 0] for m, c in found.items()}
        product = {m: cycles[m] * energy[m] * (1 - 1e-12) for m in found}
        others = [m for m in MAPPERS if m != "off" or found["off"].mapped[0, 0]]
        assert cycles["latency"] == min(cycles[m] for m in others)
        assert energy["energy"] * (1 - 1e-12) <= min(energy[m] for m in others)
        assert product["edp"] <= min(cycles[m] * energy[m] for m in others)


def test_a_tile_is_reported_and_fits() -> None:
    layer = Layer("conv", "conv", K=256, C=256, R=3, S=3, P=14, Q=14)
    hardware = Hardware("nvdla_ws", 16, 16, buffer_bytes=65536, output_rf_bytes=96)
    found = evaluate(table(layer), [hardware]).layer(0, 0)
    k, c, p, q = (int(found[f"tile_{loop}"]) for loop in "KCPQ")
    words = c * (p + 2) * (q + 2) + k * c * 9
    assert words * hardware.word_bytes + k * p * q * hardware.accumulator_bytes <= 65536 / 2
    assert found["spatial_K"] == found["spatial_C"] == 16


def test_a_buffer_too_small_for_the_whole_array_leaves_some_of_it_idle() -> None:
    layer = Layer("conv", "conv", K=64, C=64, R=7, S=7, P=14, Q=14)
    small = evaluate(table(layer), [Hardware("nvdla_ws", 32, 32, buffer_bytes=2048)])
    assert small.mapped[0, 0]
    found = small.layer(0, 0)
    # 49 weights and 49 inputs at least, in half of the buffer.
    assert found["spatial_K"] * found["spatial_C"] * 49 < 1024
    assert found["tile_K"] == found["spatial_K"]


def test_a_loop_is_spread_evenly() -> None:
    """100 channels on 64 rows take two turns, of 50 each."""
    layer = Layer("fc", "gemm", K=100, C=64, P=50)
    found = evaluate(table(layer), [Hardware("nvdla_ws", 64, 64, dram_bytes_per_cycle=4096.0)])
    assert found["spatial_K"][0, 0] == 50
    assert found["compute_cycles"][0, 0] == 2 * 50


def test_a_buffer_too_small_for_any_tile_is_said_so() -> None:
    layer = Layer("conv", "conv", K=64, C=64, R=7, S=7, P=14, Q=14)
    costs = evaluate(table(layer), [Hardware("nvdla_ws", 32, 32, buffer_bytes=8)])
    assert not costs.mapped[0, 0]
    assert costs.unmapped(0) == ["conv"]
    assert np.isnan(costs.metrics()["latency_cycles"][0])


def test_unknown_mappers_and_missing_mappings_are_refused() -> None:
    layer = Layer("fc", "gemm", K=8, C=8)
    with pytest.raises(UnknownNameError, match="Did you mean 'latency'"):
        evaluate(table(layer), [Hardware("nlr_cp", 4, 4)], mapper="latencies")
    with pytest.raises(InvalidValueError, match="custom"):
        evaluate(table(layer), [Hardware("custom", 4, 4)])


@pytest.mark.parametrize("dataflow", ["nvdla_ws", "shidiannao_os", "eyeriss_rs"])
def test_parts_of_powers_of_two_are_enough_on_arrays_of_such_sides(dataflow: str) -> None:
    """They are some of all parts: never better; and larger arrays are never worse."""
    rng = np.random.default_rng(23)
    worse = []
    for _ in range(40):
        sizes = {name: 8 << int(rng.integers(4)) for name in ("K", "C")}
        layer = Layer("conv", "conv", **sizes, R=3, S=3, P=8, Q=8)
        kib, link = 8 << int(rng.integers(5)), float(1 << rng.integers(7))
        arrays = [
            Hardware(
                dataflow,
                4 << i,
                4 << i,
                buffer_bytes=1024 * kib,
                noc_bytes_per_cycle=link,
                dram_bytes_per_cycle=link,
            )
            for i in range(4)
        ]
        every = evaluate(table(layer), arrays)["cycles"][:, 0]
        powers = evaluate(table(layer), arrays, thirds=False)["cycles"][:, 0]
        assert (powers >= every).all()
        assert (powers[1:] <= powers[:-1]).all()
        worse.append(powers / every)
    assert np.mean(worse) < 1.02
    assert np.max(worse) < 1.3


@pytest.mark.parametrize("dataflow", SPATIAL_DATAFLOWS)
def test_an_array_that_waits_for_its_first_tile_is_never_slower_with_a_larger_buffer(
    dataflow: str,
) -> None:
    """The mapper takes the wait into account: a small tile comes sooner."""
    rng = np.random.default_rng(24)
    for _ in range(12):
        layer = random_layer(rng, 200)
        hardware = random_hardware(rng, dataflow).replace(waits_for_first_tile=True)
        sizes = [hardware.replace(buffer_bytes=4096 * 3**i // 2**i) for i in range(14)]
        costs = evaluate(table(layer), sizes)
        cycles = np.where(costs.mapped[:, 0], costs["cycles"][:, 0], np.inf)
        assert (np.diff(cycles[np.isfinite(cycles)]) <= 0).all()
        assert np.isfinite(cycles[-1])


def test_a_first_tile_is_waited_for() -> None:
    """What the buffer is filled with first is inputs and weights of a tile; none is free."""
    layer = Layer("conv", "conv", K=64, C=256, R=1, S=1, P=56, Q=56)
    quick = Hardware("nvdla_ws", 16, 32, buffer_bytes=1 << 20, dram_bytes_per_cycle=8.0)
    waits = quick.replace(waits_for_first_tile=True)
    costs = evaluate(table(layer), [quick, waits])
    found = costs.layer(1, 0)
    k, c, p, q = (found[f"tile_{loop}"] for loop in "KCPQ")
    assert found["fill_cycles"] == (c * p * q + k * c + 2) / 8
    cycles = costs["cycles"][:, 0]
    assert cycles[0] < cycles[1]
