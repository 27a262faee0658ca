"""BoTorch behind our interface."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from archgym.agents.botorch import BoTorchSearch
from archgym.envs.conformance import ConformanceEnvironment
from archgym.errors import MissingDependencyError
from archgym.registry import make_agent

SPACE = ConformanceEnvironment.design_spaces["default"]


def search(budget: int, seed: int = 0, env: Any = None, **hyperparameters: Any) -> Any:
    pytest.importorskip("botorch")
    env = env or ConformanceEnvironment()
    seen: list[dict[str, Any]] = []
    env.on_evaluated = lambda outcomes: seen.extend(outcomes.designs)
    directions = ["minimize"] * len(env.objective.goals)
    quick = {"candidates": 100, "samples": 16, "n_initial": 8, **hyperparameters}
    result = BoTorchSearch(env.design_space, directions, seed=seed, **quick).search(env, budget)
    env.on_evaluated = None
    assert (result.simulations, result.duplicates, result.illegal) == (budget, 0, 0)
    return seen, result


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"torch: pip install 'archgym\[botorch\]'"):
        BoTorchSearch(SPACE)


def test_it_repeats_itself_and_leaves_torch_as_it_was() -> None:
    torch = pytest.importorskip("torch")
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    first, _ = search(11, seed=1)
    assert torch.equal(state, torch.random.get_rng_state())
    assert torch.get_num_threads() == threads
    torch.manual_seed(5)
    again, _ = search(11, seed=1)
    torch.random.set_rng_state(state)
    assert first == again


@pytest.mark.nightly
def test_another_process_finds_the_same() -> None:
    pytest.importorskip("botorch")
    code = (
        "import json\n"
        "from archgym.agents.botorch import BoTorchSearch\n"
        "from archgym.envs.conformance import ConformanceEnvironment\n"
        "env, seen = ConformanceEnvironment(), []\n"
        "env.on_evaluated = lambda outcomes: seen.extend(outcomes.designs)\n"
        "directions = ['minimize'] * len(env.objective.goals)\n"
        "quick = {'candidates': 100, 'samples': 16, 'n_initial': 8}\n"
        "BoTorchSearch(env.design_space, directions, seed=1, **quick).search(env, 14)\n"
        "print(json.dumps(seen))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "77"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    here, _ = search(14, seed=1)
    assert json.loads(done.stdout.splitlines()[-1]) == json.loads(json.dumps(here))


@pytest.mark.nightly
def test_it_finds_more_than_random_search() -> None:
    def best(name: str) -> float:
        found = []
        for seed in range(3):
            env = ConformanceEnvironment()
            result = make_agent(name, env.design_space, seed=seed).search(env, 30)
            assert result.best is not None
            found.append(result.best.reward)
        return float(np.median(found))

    pytest.importorskip("botorch")
    assert best("botorch") > best("random") + 0.01


@pytest.mark.full
def test_batches_find_what_is_good_within_limits() -> None:
    limited = {"minimize": "access_ns", "limits": ["area_mm2 <= 0.1"]}
    env = ConformanceEnvironment(objective=limited)
    drawn = env.evaluate_batch(SPACE.sample(400, np.random.default_rng(0)))
    good = np.quantile(drawn.objectives[drawn.feasible, 0], 0.05)
    _, result = search(24, env=env, batch_size=4)
    assert result.best.feasible
    assert result.best.objectives[0] < good


@pytest.mark.full
def test_several_goals_are_searched_by_hypervolume() -> None:
    env = ConformanceEnvironment(objective={"minimize": ["access_ns", "energy_pj"]})
    _, result = search(11, env=env)
    assert len(result.front) >= 2


@pytest.mark.full
def test_trust_region_shrinks_after_failures_and_starts_anew() -> None:
    """With a goal that nothing improves, every design after the first model is a failure."""
    pytest.importorskip("botorch")
    env = ConformanceEnvironment()
    agent = BoTorchSearch(SPACE, patience=1, n_initial=4, candidates=20, samples=4)
    assert agent.length == 0.5
    lengths = []
    for _ in range(10):
        asked = agent.ask(1)
        outcomes = env.evaluate_batch(asked)
        agent.tell(asked, dataclasses.replace(outcomes, costs=np.zeros_like(outcomes.costs)))
        lengths.append(agent.length)
    assert lengths == [0.5] * 4 + [0.25, 0.125, 0.0625, 0.5, 0.25, 0.125]
