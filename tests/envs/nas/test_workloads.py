"""Workloads: the published specifications, and archgym's, which follow a rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import archgym
from archgym.envs.nas.environment import NASEnvironment
from archgym.envs.nas.hardware.chip import Chip, SubAccelerator, area_um2
from archgym.envs.nas.hardware.hardware_side import HardwareSide
from archgym.envs.nas.reward import Specs, spec_penalty
from archgym.envs.nas.specs import SHARE, compute, most_accurate
from archgym.envs.nas.tasks import family_of
from archgym.envs.nas.workloads import WORKLOADS, load_workload, stored_specs

OWN = [name for name, entry in WORKLOADS.items() if entry.limited and entry.specs is None]
LIMITED = [name for name, entry in WORKLOADS.items() if entry.limited]
NO_SCHEDULE = 1e-9
"""A limit that no schedule meets: the fastest counts."""


def networks(name: str) -> tuple[Any, ...]:
    """The most accurate networks, as stored."""
    stored = stored_specs()["workloads"][name]["networks"]
    tasks = load_workload(name).tasks
    pairs = zip(tasks, stored.values(), strict=True)
    return tuple(family_of(task).layers(task, each) for task, each in pairs)


@pytest.mark.parametrize(
    ("name", "tasks", "latency", "energy"),
    [
        ("W1", ("cifar10", "nuclei"), 8e5, 2e9),
        ("W2", ("cifar10", "stl10"), 1e6, 3.5e9),
        ("W3", ("cifar10", "cifar10"), 4e5, 1e9),
    ],
)
def test_published_workloads(
    name: str, tasks: tuple[str, ...], latency: float, energy: float
) -> None:
    workload = load_workload(name)
    assert tuple(task.name for task in workload.tasks) == tasks
    assert workload.specs == Specs(latency, energy, 4e9)
    assert workload.bounds == Specs(2 * latency, 2 * energy, 8e9)
    assert workload.mode == "paper"
    assert workload.accuracy == "synthetic"
    assert workload.weights == (0.5, 0.5)


def test_the_published_successive_solution_violates_all_specifications_of_w1() -> None:
    workload = load_workload("W1")
    assert workload.specs is not None
    assert workload.bounds is not None
    found = Specs(9.45e5, 3.56e9, 4.71e9)
    excesses = 1.45 / 8 + 1.56 / 2 + 0.71 / 4
    assert spec_penalty(found, workload.specs, workload.bounds) == pytest.approx(excesses)
    ours = Specs(7.77e5, 1.43e9, 2.03e9)
    assert spec_penalty(ours, workload.specs, workload.bounds) == 0


@pytest.mark.parametrize("name", OWN)
def test_own_specifications_are_the_stated_share_of_the_best_values(name: str) -> None:
    stored = stored_specs()["workloads"][name]
    specs = load_workload(name).specs
    assert specs is not None
    for metric, best in stored["best"].items():
        assert getattr(specs, metric) == pytest.approx(SHARE * best["value"], rel=1e-3)


@pytest.mark.parametrize("name", OWN)
def test_stored_best_values_are_those_of_their_chips(name: str) -> None:
    best = stored_specs()["workloads"][name]["best"]
    chips = {
        metric: Chip(tuple(SubAccelerator(**sub) for sub in entry["chip"]))
        for metric, entry in best.items()
    }
    side, those = HardwareSide(), networks(name)
    fastest = side.evaluate([those], [chips["latency_cycles"]], latency_limit=NO_SCHEDULE)
    assert fastest.latency_cycles[0] == pytest.approx(best["latency_cycles"]["value"])
    frugal = side.evaluate([those], [chips["energy_nj"]])
    assert frugal.energy_nj[0] == pytest.approx(best["energy_nj"]["value"])
    assert chips["area_um2"] == chips["latency_cycles"]
    assert area_um2(chips["area_um2"]) == pytest.approx(best["area_um2"]["value"])


@pytest.mark.full
@pytest.mark.parametrize("name", OWN)
def test_no_random_chip_is_better_than_the_stored_best(name: str) -> None:
    env = archgym.make("NAS-v0", workload=name)
    assert isinstance(env, NASEnvironment)
    best = stored_specs()["workloads"][name]["best"]
    designs = env.design_space.sample(300, np.random.default_rng(8))
    chips = [env.chip(design) for design in designs]
    those = [networks(name)] * len(chips)
    side = HardwareSide()
    fastest = side.evaluate(those, chips, latency_limit=NO_SCHEDULE)
    assert np.nanmin(fastest.latency_cycles) >= best["latency_cycles"]["value"] * (1 - 1e-9)
    assert np.nanmin(side.evaluate(those, chips).energy_nj) >= best["energy_nj"]["value"] * (
        1 - 1e-9
    )


@pytest.mark.parametrize("name", OWN)
def test_stored_networks_are_the_most_accurate_ones_of_the_tables(name: str) -> None:
    stored = stored_specs()["workloads"][name]["networks"]
    for task, architecture in zip(load_workload(name).tasks, stored.values(), strict=True):
        assert most_accurate(task)[0] == architecture


@pytest.mark.nightly
def test_specifications_come_out_the_same_when_computed_anew() -> None:
    assert compute("digits") == stored_specs()["workloads"]["digits"]


@pytest.mark.parametrize("name", LIMITED)
@pytest.mark.parametrize("space", ["heterogeneous", "homogeneous", "single"])
def test_the_baseline_breaks_a_specification(name: str, space: str) -> None:
    env = archgym.make("NAS-v0", workload=name, space=space)
    outcome = env.evaluate(env.baseline_design)
    assert outcome.status == "ok"
    assert "limit " in outcome.reason


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_has_a_line_and_loads(name: str) -> None:
    workload = load_workload(name)
    assert workload.doc == NASEnvironment.workloads()[name]
    assert sum(workload.weights) == pytest.approx(1)
    assert (workload.specs is None) == (workload.bounds is None)


def test_a_workload_of_ones_own() -> None:
    specs = {"latency_cycles": 1e4, "energy_nj": 1e5, "area_um2": 1e6}
    bounds = {name: 3 * value for name, value in specs.items()}
    workload = load_workload(
        {"tasks": ["cells", "digits", "cells"], "specs": specs, "bounds": bounds}
    )
    assert workload.name == "cells+digits+cells"
    assert workload.mode == "own"
    assert workload.accuracy == "tabulated"
    assert workload.specs == Specs(**specs)
    assert workload.bounds == Specs(**bounds)
    assert workload.weights == pytest.approx((1 / 3,) * 3)
