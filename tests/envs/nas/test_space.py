"""The joint space of networks and chips."""

from __future__ import annotations

import json

import numpy as np
import pytest

from archgym.envs.nas.families import FAMILIES
from archgym.envs.nas.hardware.chip import Chip
from archgym.envs.nas.space import (
    CHIPS,
    GRIDS,
    ChipForm,
    Reader,
    chip_design,
    largest_architecture,
    name_networks,
    nas_space,
    network_design,
    smallest_architecture,
)
from archgym.envs.nas.tasks import TASKS
from archgym.space import DesignSpace

TWO = name_networks([TASKS["digits"], TASKS["cells"]])
PUBLISHED = [
    [("nvdla_ws", 2112, 48), ("shidiannao_os", 1984, 16)],
    [("nvdla_ws", 1088, 24), ("shidiannao_os", 2368, 40)],
    [("nvdla_ws", 576, 56), ("shidiannao_os", 1792, 8)],
]


def space(form: ChipForm, grid: str = "own") -> DesignSpace:
    return nas_space(TWO, form, GRIDS[grid])


def test_every_network_and_every_sub_accelerator_is_a_group() -> None:
    groups = space("heterogeneous").groups
    assert list(groups) == ["digits", "cells", "chip", "sub_1", "sub_2", "sub_3", "sub_4"]
    assert groups["sub_3"] == tuple(
        f"sub_3_{knob}" for knob in ("dataflow", "pes", "bandwidth_gbps", "buffer_kib")
    )
    assert all(name.startswith("cells_") for name in groups["cells"])


def test_a_task_that_comes_twice_has_two_networks() -> None:
    twice = name_networks([TASKS["cifar10"], TASKS["nuclei"], TASKS["cifar10"]])
    assert [player.name for player in twice] == ["cifar10_1", "nuclei", "cifar10_2"]
    groups = nas_space(twice, "network", GRIDS["paper"]).groups
    assert [name.replace("_2_", "_1_") for name in groups["cifar10_2"]] == list(groups["cifar10_1"])


def test_conditions_follow_their_network() -> None:
    here = space("network")
    shallow = {**network_design(TWO, [largest_architecture(p.task) for p in TWO])}
    shallow["cells_height"] = 2
    canonical = here.canonical(shallow)
    assert [name for name in canonical if name.startswith("cells_")] == [
        "cells_height",
        "cells_level1_filters",
        "cells_level2_filters",
    ]


@pytest.mark.parametrize("form", CHIPS)
@pytest.mark.parametrize("grid", GRIDS)
def test_sub_accelerators_that_are_not_there_have_no_parameters_and_totals_hold(
    form: ChipForm, grid: str
) -> None:
    here = space(form, grid)
    reader = Reader(TWO, here, Chip.of([("nvdla_ws", 64, 8)]))
    counts = set()
    for design in here.sample(300, np.random.default_rng(1)):
        chip = reader.chip(design)  # a chip beyond the totals is refused
        counts.add(len(chip.sub_accelerators))
        if form == "heterogeneous":
            assert sum(name.endswith("_pes") for name in design) == len(chip.sub_accelerators)
        if form == "homogeneous":
            assert len(set(chip.sub_accelerators)) == 1
    assert counts >= ({1, 2, 3} if form in ("heterogeneous", "homogeneous") else {1})


@pytest.mark.parametrize("form", ["heterogeneous", "homogeneous", "single"])
def test_chips_and_architectures_come_back(form: ChipForm) -> None:
    here = space(form)
    reader = Reader(TWO, here)
    for design in here.sample(100, np.random.default_rng(2)):
        chip, architectures = reader.chip(design), reader.architectures(design)
        again = network_design(TWO, architectures) | chip_design(chip, form, GRIDS["own"])
        assert here.canonical(again) == design


def test_published_chips_are_in_the_paper_grid() -> None:
    here = space("heterogeneous", "paper")
    networks = network_design(TWO, [smallest_architecture(p.task) for p in TWO])
    for parts in PUBLISHED:
        chip = Chip.of(parts)
        design = {**networks, **chip_design(chip, "heterogeneous", GRIDS["paper"])}
        assert here.broken_rule(design) == ""
        assert Reader(TWO, here).chip(here.canonical(design)) == chip


@pytest.mark.parametrize(
    ("first", "second", "rule"),
    [
        ((4096, 8), (32, 8), "pes_of_2"),
        ((32, 64), (32, 8), "bandwidth_gbps_of_2"),
        ((4064, 56), (32, 8), ""),
    ],
)
def test_totals_are_named_when_they_are_broken(
    first: tuple[int, int], second: tuple[int, int], rule: str
) -> None:
    here = space("heterogeneous", "paper")
    design = network_design(TWO, [smallest_architecture(p.task) for p in TWO])
    design["sub_accelerators"] = 2
    for number, (pes, bandwidth) in enumerate((first, second), start=1):
        design[f"sub_{number}_dataflow"] = "eyeriss_rs"
        design[f"sub_{number}_pes"] = pes
        design[f"sub_{number}_bandwidth_gbps"] = bandwidth
    broken = here.broken_rule(design)
    assert broken.startswith(f"rule '{rule}'") if rule else broken == ""


def test_homogeneous_totals_count_every_copy() -> None:
    here = space("homogeneous", "paper")
    design = network_design(TWO, [smallest_architecture(p.task) for p in TWO])
    design |= {"sub_1_dataflow": "nvdla_ws", "sub_1_pes": 1376, "sub_1_bandwidth_gbps": 16}
    assert here.broken_rule({**design, "sub_accelerators": 2}) == ""
    assert "'pes_in_all'" in here.broken_rule({**design, "sub_accelerators": 3})


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_extremes_bound_the_parameters_of_every_architecture(task: object) -> None:
    (player,) = name_networks([task])  # type: ignore[list-item]
    here = nas_space([player], "network", GRIDS["own"])
    family = FAMILIES[player.task.family]
    reader = Reader([player], here, Chip.of([("nvdla_ws", 64, 8)]))
    counts = [
        family.parameter_count(player.task, *reader.architectures(design))
        for design in here.sample(200, np.random.default_rng(3))
    ]
    minimum = family.parameter_count(player.task, smallest_architecture(player.task))
    maximum = family.parameter_count(player.task, largest_architecture(player.task))
    assert minimum <= min(counts) <= max(counts) <= maximum


def test_the_space_survives_json() -> None:
    for form in CHIPS:
        here = space(form)
        assert DesignSpace.from_json(json.loads(json.dumps(here.to_json()))) == here
