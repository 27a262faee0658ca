"""The search from the classic baselines: a design at least as good as the paper's best."""

from __future__ import annotations

import math

import numpy as np
import pytest

import archgym
from archgym.envs.tpe.space.named import OPTIMISATIONS
from archgym.experiment.spec.checks import check_experiment
from archgym.experiment.spec.expand import expand
from archgym.experiment.spec.load import load_experiment

ARRAYS = ("systolic_ws", "cube", "tree", "matrix")


def test_the_experiment_searches_the_four_arrays() -> None:
    experiment = load_experiment("tpe-classics")
    assert [entry.space for entry in experiment.environments] == list(ARRAYS)
    made = check_experiment(experiment, expand(experiment))
    kinds = {env.baseline_design["array"] for env in made.values()}
    assert kinds == set(ARRAYS)


def product(env: archgym.Environment, design: dict[str, object]) -> float:
    metrics = env.evaluate(design).metrics
    found = [metrics["tops_per_mm2"], metrics["tops_per_w"]]
    return math.prod(value or 0.0 for value in found)


@pytest.mark.parametrize("kind", ARRAYS)
def test_random_designs_reach_the_best_published_optimisation(kind: str) -> None:
    env = archgym.make("TPE-v0", space=kind, fixed={"width_a": 8, "width_b": 8, "clock": "fastest"})
    # In the space of the kind, sizes are held; the published designs have the same ones.
    named = {
        name: design
        for name, design in archgym.make("TPE-v0").named_designs().items()
        if name.startswith(f"{kind}/")
    }
    assert {name.split("/")[1] for name in named} <= set(OPTIMISATIONS)
    best = max(product(env, design) for design in named.values())
    outcomes = env.evaluate_batch(env.design_space.sample(1000, np.random.default_rng(0)))
    columns = list(outcomes.metric_names)
    area, watt = (columns.index(name) for name in ("tops_per_mm2", "tops_per_w"))
    found = outcomes.metrics[:, area] * outcomes.metrics[:, watt]
    assert np.nanmax(found) >= best
