"""Bayesian optimisation: surrogates, threads, warnings, batches."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from archgym.agents.bayesian import Bayesian
from archgym.agents.common import skopt_surrogates as surrogates
from archgym.agents.common.threads import one_quiet_thread
from archgym.envs.conformance import ConformanceEnvironment
from archgym.errors import InvalidValueError
from archgym.space import DesignSpace, Integer, Real

WAYS = [
    {"surrogate": "gp", "acquisition": "gp_hedge"},
    {"surrogate": "gp", "acquisition": "EI", "batch_size": 4},
    {"surrogate": "gp", "acquisition": "LCB", "initial_design": "sobol", "n_initial": 6},
    {"surrogate": "gp", "acquisition": "PI", "forest_above": 12},
    {"surrogate": "forest", "acquisition": "EI"},
    {"surrogate": "extra_trees", "acquisition": "gp_hedge"},
]


def search(env: ConformanceEnvironment, budget: int, **hyperparameters: Any) -> list[int]:
    keys: list[int] = []
    env.on_evaluated = lambda outcomes: keys.extend(outcomes.designs.keys())
    Bayesian(env.design_space, **{"candidates": 100, **hyperparameters}).search(env, budget)
    return keys


@pytest.mark.parametrize("way", WAYS, ids=lambda way: " ".join(map(str, way.values())))
def test_every_way_runs_quietly_and_repeats_itself(way: dict[str, Any]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first = search(ConformanceEnvironment(), 17, **way)
        assert search(ConformanceEnvironment(), 17, **way) == first
    assert not caught
    assert len(set(first)) == 17


def test_a_flat_objective_is_searched_quietly_to_the_end() -> None:
    space = DesignSpace([Integer("a", 0, 4), Integer("b", 0, 4)])

    class Flat(ConformanceEnvironment):
        baseline = {"a": 0, "b": 0}  # noqa: RUF012

        def simulate(self, design: dict[str, Any]) -> dict[str, float]:
            return {metric.name: 1.0 for metric in self.metrics}

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        keys = search(Flat(space=space), 100, n_initial=3)
    assert not caught
    assert len(keys) == len(set(keys)) == 25


@pytest.mark.parametrize("surrogate", ["gp", "forest"])
def test_one_numeric_thread_while_it_fits_and_as_many_as_before_after(
    surrogate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def threads() -> set[int]:
        # Torch's own, which another test may have loaded, take no part in a fit.
        libraries = [entry for entry in threadpool_info() if "torch" not in entry["filepath"]]
        return {library["num_threads"] for library in libraries}

    inside: list[set[int]] = []
    kind = surrogates.GaussianProcess if surrogate == "gp" else surrogates.Forest
    original = kind.fit

    def fit(self: Any, *args: Any) -> None:
        inside.append(threads())
        original(self, *args)

    monkeypatch.setattr(kind, "fit", fit)
    with threadpool_limits(2):
        search(ConformanceEnvironment(), 13, n_initial=10, surrogate=surrogate)
        assert threads() == {2}
    assert len(inside) >= 3
    assert all(numbers == {1} for numbers in inside)


def test_import_of_the_agent_does_not_import_its_heavy_libraries() -> None:
    code = (
        "import sys, archgym.agents.bayesian\n"
        "assert not {'skopt', 'sklearn', 'scipy.stats'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_batch_is_spread() -> None:
    env = ConformanceEnvironment(fixed={"prefetch": False, "replacement": "lru", "ways": 1})
    agent = Bayesian(env.design_space, n_initial=5)
    start = agent.ask(5)
    agent.tell(start, env.evaluate_batch(start))
    sizes = {(d["size_kb"], round(d["voltage"], 1)) for d in agent.ask(6)}
    assert len(sizes) >= 3


def test_forest_takes_over_where_it_should(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []
    for kind in (surrogates.GaussianProcess, surrogates.Forest):

        def fit(self: Any, *args: Any, original: Any = kind.fit, name: str = kind.__name__) -> None:
            used.append(name)
            original(self, *args)

        monkeypatch.setattr(kind, "fit", fit)
    search(ConformanceEnvironment(), 16, n_initial=10, forest_above=13)
    assert used[:6] == ["GaussianProcess"] * 3 + ["Forest"] * 3  # the search may ask once too often


def test_known_designs_replace_the_initial_ones() -> None:
    env = ConformanceEnvironment(fixed={"prefetch": False, "replacement": "lru"})
    known = env.design_space.sample(30, np.random.default_rng(0))
    agent = Bayesian(env.design_space, n_initial=30)
    agent.tell(known, env.evaluate_batch(known))
    best = max(env.evaluate(design).reward for design in known)
    asked = agent.ask(1)
    assert env.evaluate(asked[0]).reward > best - 0.05  # a promising one, not a random one


def test_sobol_start_is_more_even_than_chance() -> None:
    space = DesignSpace([Real("x", 0.0, 1.0), Real("y", 0.0, 1.0)])
    agent = Bayesian(space, n_initial=16, initial_design="sobol")
    designs = agent.ask(16)
    for name in ("x", "y"):
        assert len(set(np.floor(designs.values(name) * 8).tolist())) == 8


def test_gaussian_process_learns_a_product_and_a_sum_alike() -> None:
    rng = np.random.default_rng(5)
    x = rng.random((60, 3))
    for y in (np.log(1.0 + 4 * (x**2).sum(axis=1)), 4 * (x**2).sum(axis=1)):
        model = surrogates.GaussianProcess()
        with one_quiet_thread(ThreadpoolController()):
            model.fit(x[:40], y[:40], 0)
            mean, deviation = model.predict(x[40:])
        predicted, true = mean.argsort().argsort(), y[40:].argsort().argsort()
        assert np.corrcoef(predicted, true)[0, 1] > 0.97
        assert (deviation > 0).all()


@pytest.mark.parametrize("name", ["GP", "gbrt", "dummy"])
def test_surrogates_of_scikit_optimize_that_are_broken_are_not_offered(name: str) -> None:
    with pytest.raises(InvalidValueError, match="surrogate"):
        Bayesian(ConformanceEnvironment.design_spaces["default"], surrogate=name)
