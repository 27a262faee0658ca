"""Networks on chips: sums and schedules, batches, limits, modes, known answers."""

from __future__ import annotations

import itertools
from itertools import pairwise

import numpy as np
import pytest

from archgym.envs.accelerator.workload.layer import Layer, Network
from archgym.envs.nas.hardware.chip import TEMPLATES, Chip, area_um2
from archgym.envs.nas.hardware.hardware_side import HardwareSide, chain_of
from archgym.errors import InvalidValueError, UnknownNameError


def network(name: str, widths: list[int], size: int) -> Network:
    layers = tuple(
        Layer(f"conv{i}", "conv", K=k, C=c, R=3, S=3, P=size, Q=size)
        for i, (c, k) in enumerate(pairwise(widths))
    )
    return Network(name, layers, (1,) * len(layers))


CLASSIFIER = network("classifier", [3, 16, 32, 64], 8)
SEGMENTER = network("segmenter", [3, 8, 16, 8], 32)
CHIP = Chip.of([("nvdla_ws", 256, 32), ("shidiannao_os", 1024, 16)])


@pytest.mark.parametrize("mode", ["own", "paper"])
def test_one_network_on_one_sub_accelerator_is_the_sum_of_its_layers(mode: str) -> None:
    side = HardwareSide(mode)
    chip = Chip.of([("eyeriss_rs", 192, 24)])
    found = side.evaluate([[CLASSIFIER]], [chip])
    latency, energy = side.costs.table(CLASSIFIER.layers, chip.sub_accelerators)
    assert found.latency_cycles[0] == latency.sum()
    assert found.energy_nj[0] == pytest.approx(energy.sum(), rel=1e-12)
    assert found.area_um2[0] == area_um2(chip, mode)
    assert found.latency_ns[0] == found.latency_cycles[0]  # both modes: 1 GHz
    assert found.meets_limit[0]


def test_latency_in_ns_follows_the_clock_of_the_technology() -> None:
    found = HardwareSide(technology="cmos28").evaluate([[CLASSIFIER]], [CHIP])
    assert found.latency_ns[0] == pytest.approx(found.latency_cycles[0] / 0.7)


@pytest.mark.full
def test_networks_on_sub_accelerators_of_their_own_run_at_the_same_time() -> None:
    side = HardwareSide("paper", scheduler="exact")
    alone = side.evaluate([[CLASSIFIER], [SEGMENTER]], [CHIP, CHIP])
    both = side.evaluate([[CLASSIFIER, SEGMENTER]], [CHIP])
    assert both.energy_nj[0] == pytest.approx(alone.energy_nj.sum())
    assert alone.latency_cycles.max() <= both.latency_cycles[0] <= alone.latency_cycles.sum()


@pytest.mark.parametrize("mode", ["own", "paper"])
@pytest.mark.parametrize("scheduler", ["hap", "list", "exact"])
def test_a_batch_gives_what_its_designs_give_alone(mode: str, scheduler: str) -> None:
    pairs = itertools.product(TEMPLATES.values(), (32, 512))
    chips = [Chip.of([(flow, pes, 16), ("nvdla_ws", 64, 8)]) for flow, pes in pairs]
    networks = [[CLASSIFIER, SEGMENTER], [SEGMENTER]] * 3
    side = HardwareSide(mode, scheduler=scheduler)
    limit = 60_000.0
    batch = side.evaluate(networks, chips, latency_limit=limit)
    for i, (those, chip) in enumerate(zip(networks, chips, strict=True)):
        alone = HardwareSide(mode, scheduler=scheduler).evaluate(
            [those], [chip], latency_limit=limit
        )
        for field in ("latency_cycles", "latency_ns", "energy_nj", "area_um2", "meets_limit"):
            assert getattr(batch, field)[i] == getattr(alone, field)[0]
    np.testing.assert_array_equal(batch.meets_limit, batch.latency_cycles <= limit)


def test_a_tighter_limit_costs_energy_and_an_impossible_one_is_missed() -> None:
    side = HardwareSide("paper", scheduler="exact")
    free = side.evaluate([[CLASSIFIER, SEGMENTER]], [CHIP])
    fastest = side.evaluate([[CLASSIFIER, SEGMENTER]], [CHIP], latency_limit=1.0)
    assert not fastest.meets_limit[0]
    assert fastest.latency_cycles[0] < free.latency_cycles[0]
    within = side.evaluate(
        [[CLASSIFIER, SEGMENTER]], [CHIP], latency_limit=float(fastest.latency_cycles[0])
    )
    assert within.meets_limit[0]
    assert within.energy_nj[0] >= free.energy_nj[0]
    heuristic = HardwareSide("paper").evaluate(
        [[CLASSIFIER, SEGMENTER]], [CHIP], latency_limit=float(fastest.latency_cycles[0])
    )
    assert not heuristic.meets_limit[0] or heuristic.energy_nj[0] >= within.energy_nj[0]


def test_order_of_networks_and_sub_accelerators_does_not_matter_to_the_optimum() -> None:
    side = HardwareSide(scheduler="exact")
    turned = Chip(CHIP.sub_accelerators[::-1])
    a = side.evaluate([[CLASSIFIER, SEGMENTER]], [CHIP], latency_limit=20_000)
    b = side.evaluate([[SEGMENTER, CLASSIFIER]], [turned], latency_limit=20_000)
    assert a.energy_nj[0] == pytest.approx(b.energy_nj[0])
    assert a.meets_limit[0] == b.meets_limit[0]


def test_schedule_names_where_and_when() -> None:
    side = HardwareSide()
    schedule = side.schedule([CLASSIFIER, SEGMENTER], CHIP)
    found = side.evaluate([[CLASSIFIER, SEGMENTER]], [CHIP])
    assert schedule.assignment.shape == (6,)
    assert schedule.makespan == found.latency_cycles[0]
    assert schedule.energy == found.energy_nj[0]


def test_layers_with_a_count_follow_one_another() -> None:
    layer = CLASSIFIER.layers[1]
    repeated = Network("thrice", (layer, CLASSIFIER.layers[2]), (3, 1))
    assert chain_of(repeated) == [layer, layer, layer, CLASSIFIER.layers[2]]
    side = HardwareSide()
    chip = Chip.of([("nvdla_ws", 64, 8)])
    once = side.evaluate([[Network("once", (layer,), (1,))]], [chip])
    thrice = side.evaluate([[Network("thrice", (layer,), (3,))]], [chip])
    assert thrice.latency_cycles[0] == 3 * once.latency_cycles[0]


def test_a_layer_that_no_buffer_holds_is_named() -> None:
    huge = Layer("huge", "conv", K=8, C=8, R=3, S=3, P=4, Q=200_000)
    side = HardwareSide(mapper="off")
    chip = Chip.of([("shidiannao_os", 4096, 8, 1)])
    found = side.evaluate([[Network("n", (huge,), (1,))], [CLASSIFIER]], [chip, CHIP])
    assert "'huge'" in found.reasons[0]
    assert np.isnan([found.latency_cycles[0], found.latency_ns[0], found.energy_nj[0]]).all()
    assert found.area_um2[0] > 0
    assert not found.meets_limit[0]
    assert found.reasons[1] == ""
    assert np.isfinite(found.energy_nj[1])
    with pytest.raises(InvalidValueError, match="'huge'"):
        side.schedule([Network("n", (huge,), (1,))], chip)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="'exact'"):
        HardwareSide(scheduler="exactly")
    side = HardwareSide()
    with pytest.raises(InvalidValueError, match="2 designs and 1 chips"):
        side.evaluate([[CLASSIFIER], [CLASSIFIER]], [CHIP])
    with pytest.raises(InvalidValueError, match="at least one"):
        side.evaluate([[]], [CHIP])
    with pytest.raises(InvalidValueError, match="latency_limit"):
        side.evaluate([[CLASSIFIER]], [CHIP], latency_limit=0.0)
