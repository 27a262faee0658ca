"""Proxies where it matters: within groups, near the best, and of runs with parameters held."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import archgym
from archgym.data import Dataset, load
from archgym.proxy import Settings, load_proxy, read_training_data, save_proxy, train
from archgym.proxy.quality.within import mean_of, within
from archgym.proxy.training.active_collection import collect
from archgym.space import Categorical, DesignSpace, Integer
from tests.cli.conftest import Called, call

__all__ = ["Called", "call"]

SPACE = DesignSpace([Categorical("mode", ["slow", "fast"]), Integer("x", 0, 99)])
Values = NDArray[np.float64]
QUICK = Settings(("boosting",), options={"trees": 30})


def test_a_parameter_that_explains_all_does_not_hide_what_is_not_known() -> None:
    designs = SPACE.sample(400, np.random.default_rng(0))
    fast = designs.codes[:, 0] == 1
    x = designs.values("x").astype(np.float64)
    of_mode = np.where(fast, 10.0, 1000.0)
    truth: Values = np.asarray(of_mode + x / 10, dtype=np.float64)
    known: Values = np.asarray(of_mode + np.random.default_rng(1).random(400), dtype=np.float64)
    low, high = (np.asarray(known + step, dtype=np.float64) for step in (-1, 1))
    found = within(SPACE, designs.codes, truth, known, low, high)
    assert found.parameter == "mode"
    assert found.explained > 0.99
    assert [part.name for part in found.groups] == ["mode=slow", "mode=fast"]
    assert sum(part.n for part in found.groups) == 400
    assert abs(mean_of(found.groups, "spearman")) < 0.2
    assert found.best is not None
    assert found.best.n == 40
    assert abs(found.best.spearman) < 0.5
    perfect = within(SPACE, designs.codes, truth, truth, truth, truth, maximize=True)
    assert mean_of(perfect.groups, "spearman") == pytest.approx(1)
    assert perfect.best is not None
    assert perfect.best.spearman == pytest.approx(1)


def test_few_or_constant_designs_have_no_groups() -> None:
    designs = SPACE.sample(8, np.random.default_rng(0))
    some: Values = np.arange(8.0, dtype=np.float64)
    assert within(SPACE, designs.codes, some, some, some, some).groups == ()
    assert within(SPACE, designs.codes, some, some, some, some).best is None
    many = SPACE.sample(200, np.random.default_rng(0))
    flat: Values = np.ones(200, dtype=np.float64)
    found = within(SPACE, many.codes, flat, flat, flat, flat)
    assert (found.parameter, found.groups) == ("", ())


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A proxy of data with a parameter held and a value excluded."""
    folder = tmp_path_factory.mktemp("held")
    env = archgym.make(
        "Conformance-v0",
        space="finite",
        fixed={"replacement": "random"},
        exclude={"ways": [3]},
        record=folder / "data",
    )
    archgym.make_agent("random", env.design_space, seed=0).search(env, budget=150)
    env.close()
    Dataset(folder / "data").seal()
    save_proxy(train(read_training_data(load(folder / "data")), QUICK), folder / "p.npz")
    return folder / "p.npz"


def test_a_proxy_of_a_run_with_fixed_parameters_is_searched_as_it_was(
    held: Path, call: Any
) -> None:
    assert load_proxy(held).origin.fixed == {"replacement": "random"}
    env = archgym.make("Conformance-v0", simulator=f"proxy:{held}")
    assert env.design_space.fixed == {"replacement": "random"}
    assert env.design_space.excluded == {"ways": [3]}
    assert env.evaluate(env.baseline_design).status == "ok"
    found = call("proxy", "search", held, "--budget", 60, "--verify", 12, "--agent", "random")
    assert found.code == 0, found.err
    assert "12 verified, the best 10 of them:" in found.out
    assert "2 more are in the dataset" in found.out


def test_an_excluded_value_is_out_of_range_of_the_proxy(held: Path) -> None:
    env = archgym.make(
        "Conformance-v0",
        simulator=f"proxy:{held}",
        space="finite",
        fixed={"replacement": "random"},
    )
    outcome = env.evaluate({**env.baseline_design, "ways": 3})
    assert outcome.status == "illegal"
    assert "exclude this value of ways" in outcome.reason
    other = archgym.make("Conformance-v0", simulator=f"proxy:{held}")
    design = {**other.baseline_design, "ways": 5}
    assert env.evaluate(design).metrics == other.evaluate(design).metrics


def test_collecting_more_than_there_is_ends(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"space": "finite", "fixed": {"replacement": "lru", "ways": 2}}
    env = archgym.make("Conformance-v0", **arguments, record=tmp_path / "data")
    collect([env], ["energy_pj"], 3000, rounds=2)
    env.close()
    assert len(load(tmp_path / "data").distinct()) == env.design_space.canonical_cardinality


def test_evaluate_prints_where_it_matters(held: Path, call: Any, tmp_path: Path) -> None:
    collected = ("proxy", "collect", "Conformance-v0", "--record", tmp_path / "more", "-q")
    options = ("--set", "space=finite", "--set", "fixed={replacement: random}", "--seed", 5)
    target = ("--target", "energy_pj", "--drawn", 1, "--budget", 300, "--exclude", "ways=3")
    assert call(*collected, *options, *target).code == 0
    shown = call("proxy", "evaluate", held, tmp_path / "more", "--json").json
    assert all(one["within"]["best"]["n"] >= 10 for one in shown["scores"])
    text = " ".join(call("proxy", "evaluate", held, tmp_path / "more").out.split())
    assert "within groups" in text
    assert "The best 10% of the designs" in text
    assert json.dumps(shown)
