"""Costs of layers: agreement with the accelerator model, what the memory may not change."""

from __future__ import annotations

import numpy as np
import pytest

from archgym.envs.accelerator.cost.model import evaluate
from archgym.envs.accelerator.workload.layer import Layer, LayerTable
from archgym.envs.nas.hardware.chip import SubAccelerator, hardware
from archgym.envs.nas.hardware.layer_costs import LayerCosts
from archgym.errors import InvalidValueError, UnknownNameError


def conv(name: str, K: int, C: int, P: int, R: int = 3, stride: int = 1) -> Layer:
    return Layer(name, "conv", K=K, C=C, R=R, S=R, P=P, Q=P, stride=stride)


LAYERS = [
    conv("stem", 16, 3, 16),
    conv("wide", 64, 16, 8, stride=2),
    conv("point", 32, 64, 8, R=1),
    Layer.depthwise("depthwise", 32, 3, 3, 8, 8),
    Layer.from_gemm("fc", 1, 10, 64),
]
SUBS = [
    SubAccelerator("nvdla_ws", 256, 32),
    SubAccelerator("shidiannao_os", 128, 16),
    SubAccelerator("eyeriss_rs", 96, 8, 64),
]


@pytest.mark.parametrize("mapper", ["latency", "energy", "off"])
def test_figures_are_the_accelerator_models(mapper: str) -> None:
    latency, energy = LayerCosts(mapper=mapper).table(LAYERS, SUBS)
    for j, sub in enumerate(SUBS):
        table = LayerTable.of((layer, 1) for layer in LAYERS)
        thirds = sub.pes == 96  # all other sides are powers of two
        costs = evaluate(table, [hardware(sub)], mapper=mapper, thirds=thirds)
        assert costs.mapped.all()
        np.testing.assert_array_equal(latency[:, j], costs["cycles"][0])
        np.testing.assert_allclose(energy[:, j], costs["energy_pj"][0] / 1000, rtol=1e-12)


@pytest.mark.parametrize("mode", ["own", "paper"])
def test_no_layer_is_faster_than_its_array_or_cheaper_than_its_products(mode: str) -> None:
    latency, energy = LayerCosts(mode).table(LAYERS, SUBS)
    macs = np.array([[layer.macs] for layer in LAYERS])
    assert (latency * [sub.pes for sub in SUBS] >= macs).all()
    min_nj = 0.904 if mode == "paper" else 0.0
    assert (energy > min_nj * macs).all()


def test_paper_energy_by_hand() -> None:
    # 32 products whose operands each PE writes and reads once, added over the PEs to one sum that
    # is written and read: 2 * 64 + 2 register accesses. The global buffer takes in and gives out
    # 64 operands and one result: 2 * 65 accesses.
    layer = Layer.from_gemm("dot", 1, 1, 32)
    _, energy = LayerCosts("paper").table([layer], [SubAccelerator("nvdla_ws", 32, 8)])
    assert energy[0, 0] == pytest.approx(0.904 * (32 + 1.68 * 130 + 18.61 * 130))


def test_paper_mode_knows_no_memory_and_own_mode_does() -> None:
    # A layer of one product: everything is in the way to it.
    layer = Layer.from_gemm("one", 1, 1, 1)
    sub = SubAccelerator("shidiannao_os", 32, 64)
    _, paper = LayerCosts("paper").table([layer], [sub])
    _, own = LayerCosts().table([layer], [sub])
    assert paper[0, 0] / 0.904 < 1 + 2 * 4 * 18.61 + 8 * 1.68
    assert own[0, 0] >= 3 * 8 * 8 / 1000  # three words of 8 bits, 8 pJ each bit


def test_what_was_asked_before_changes_nothing() -> None:
    whole = LayerCosts().table(LAYERS, SUBS)
    other = LayerCosts(max_pairs=64)
    for layer in reversed(LAYERS):
        other.table([layer], SUBS[::-1])
    again = other.table(LAYERS, SUBS)
    for a, b in zip(whole, again, strict=True):
        np.testing.assert_array_equal(a, b)


def test_equal_layers_on_equal_sub_accelerators_are_simulated_once() -> None:
    costs = LayerCosts()
    costs.tables([(LAYERS, SUBS[:2]), (LAYERS[:2], SUBS)])
    assert costs.evaluated == 2 * len(LAYERS) + 2
    renamed = [conv("other name", 16, 3, 16)] * 3
    costs.table(renamed, [SubAccelerator("nvdla_ws", 256, 32)])
    assert costs.evaluated == 2 * len(LAYERS) + 2
    costs.table(LAYERS, SUBS)
    assert costs.evaluated == 3 * len(LAYERS)


def test_memory_is_bounded_and_forgets_the_oldest() -> None:
    costs = LayerCosts(max_pairs=3 * 64)
    subs = [SubAccelerator("nvdla_ws", pes, 8) for pes in (32, 64, 96, 128)]
    for sub in subs:
        costs.table(LAYERS[:1], [sub])
    assert costs.evaluated == 4
    costs.table(LAYERS[:1], subs[1:])
    assert costs.evaluated == 4
    costs.table(LAYERS[:1], subs[:1])
    assert costs.evaluated == 5


def test_more_shapes_than_there_is_room_for() -> None:
    costs = LayerCosts(max_pairs=8)
    for K in range(1, 30):
        latency, _ = costs.table([conv("one", K, 1, 2)], SUBS[:1])
        alone, _ = LayerCosts().table([conv("one", K, 1, 2)], SUBS[:1])
        assert latency == alone


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="'own'"):
        LayerCosts("owm")
    with pytest.raises(UnknownNameError, match="'latency'"):
        LayerCosts(mapper="latencies")
    with pytest.raises(UnknownNameError, match="'cmos16'"):
        LayerCosts(technology="cmos1 6")
    with pytest.raises(InvalidValueError, match="paper"):
        LayerCosts(technology="maestro28")
    with pytest.raises(InvalidValueError, match="max_pairs is 0"):
        LayerCosts(max_pairs=0)
