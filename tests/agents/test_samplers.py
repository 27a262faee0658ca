"""What sets quasi-random search, local search and NSGA-II apart."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.stats import qmc

from archgym.agents.local import LocalSearch
from archgym.agents.nsga2 import Nsga2, constrained_ranks, crowding_distances
from archgym.agents.random import RandomSearch
from archgym.agents.sobol import SobolSearch
from archgym.environment.environment import Environment
from archgym.envs.conformance import ConformanceEnvironment
from archgym.errors import AgentUnsuitableError
from archgym.problem.metrics import Metric
from archgym.space import Boolean, Categorical, Designs, DesignSpace, Integer, Real, Rule, param

BITS = DesignSpace([Boolean(f"b{i}") for i in range(12)])
SQUARE = DesignSpace([Real("x", 0.0, 1.0), Real("y", 0.0, 1.0)])


class Counted(Environment):
    """Costs two metrics that a subclass computes from a design."""

    metrics: ClassVar = (Metric("a_ns", "ns"), Metric("b_ns", "ns"))
    default_objective: ClassVar[Any] = "minimize a_ns"


class Ones(Counted):
    """One more than the number of bits that are set, flat below a step."""

    design_space = BITS
    baseline: ClassVar = {f"b{i}": True for i in range(12)}

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        ones = sum(design.values())
        return {"a_ns": 1.0 + ones, "b_ns": 1.0 + max(0, ones - 6)}


class Pairs(Counted):
    """Each pair of bits of which one is set costs as much as one of which both are."""

    design_space = BITS
    baseline: ClassVar = {f"b{i}": True for i in range(12)}

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        pairs = sum(design[f"b{i}"] or design[f"b{i + 1}"] for i in range(0, 12, 2))
        return {"a_ns": 1.0 + pairs, "b_ns": 1.0}


class Front(Counted):
    """The front is x from 0.2 to 0.8 at y = 0; b_ns >= 1.3 wherever y > 0.5."""

    design_space = SQUARE
    baseline: ClassVar = {"x": 0.5, "y": 1.0}
    default_objective: ClassVar[Any] = {"minimize": ["a_ns", "b_ns"]}

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        x, y = design["x"], design["y"]
        return {"a_ns": 1 + (x - 0.2) ** 2 + y, "b_ns": 1 + (x - 0.8) ** 2 + y}


def keys_of(agent: Any, env: Environment, budget: int) -> list[int]:
    keys: list[int] = []
    env.on_evaluated = lambda outcomes: keys.extend(outcomes.designs.keys())
    agent.search(env, budget)
    return keys


# -- quasi-random ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_sobol_covers_the_square_more_evenly_than_chance(seed: int) -> None:
    def boxes(designs: Designs) -> int:
        return len({(int(16 * d["x"]), int(16 * d["y"])) for d in designs})

    # A net: one point in each of 256 boxes, up to the rounding of real values at box edges.
    assert boxes(SobolSearch(SQUARE, seed=seed).ask(256)) > 240
    assert boxes(RandomSearch(SQUARE, seed=seed).ask(256)) < 190


@pytest.mark.parametrize("batch_size", [1, 5, 200])
def test_sobol_does_not_depend_on_the_batch(batch_size: int) -> None:
    def trajectory(size: int) -> list[int]:
        env = ConformanceEnvironment()
        return keys_of(SobolSearch(env.design_space, seed=4, batch_size=size), env, 150)

    assert trajectory(batch_size) == trajectory(64)


def test_sobol_goes_on_with_random_designs_where_points_repeat() -> None:
    space = DesignSpace(
        [Integer("x", 0, 99), Categorical("k", ["a", "b", "c"])],
        [Rule("corner", param("x") >= 96)],
    )
    agent = SobolSearch(space, seed=1)
    asked = agent.ask(10).concatenate(agent.ask(10))
    assert len(asked) == len(set(asked.keys())) == 12
    assert space.legal(asked).all()


def test_sobol_refuses_what_the_sequence_has_no_axes_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qmc.Sobol, "MAXDIM", 11)
    with pytest.raises(AgentUnsuitableError, match="at most 11 numbers a design, not on 12"):
        SobolSearch(BITS)


# -- local search ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_local_search_descends_one_bit_at_a_time(seed: int) -> None:
    env, agent = Ones(), LocalSearch(BITS, seed=seed, n_initial=1)
    here, cost = agent.position
    assert len(here) == 0
    assert cost == np.inf
    for _ in range(80):
        before, cost_before = agent.position
        asked = agent.ask(1)
        if len(before) and cost_before < np.inf and cost_before > np.log(1 / 13) + 1e-9:
            assert (asked.codes != before.codes).sum() == 1
        agent.tell(asked, env.evaluate_batch(asked))
        here, cost = agent.position
        if here.codes.sum() == 0:
            break
        if len(before):
            assert cost <= cost_before
    assert here.codes.sum() == 0  # 12 bits, each tried once or twice


def test_local_search_crosses_plateaus_by_drifting() -> None:
    def left(drift: int) -> float:
        """Pairs that are left after a search from all of them, mean over seeds."""
        costs = []
        for seed in range(10):
            agent = LocalSearch(BITS, seed=seed, drift=drift, kick=9, patience=10_000)
            best = agent.search(Pairs(), 80, initial=[Pairs.baseline]).best
            assert best is not None
            costs.append(best.objectives[0] - 1)
        return float(np.mean(costs))

    assert left(3) == 0
    assert left(0) > 0.4


def test_local_search_is_kicked_off_a_local_optimum_and_starts_anew() -> None:
    env = Ones()
    agent = LocalSearch(BITS, seed=1, n_initial=3, kick=4, patience=1)
    far: list[int] = []
    for _ in range(120):
        asked = agent.ask(1)
        far.append(int(asked.codes.sum()))
        agent.tell(asked, env.evaluate_batch(asked))
    optimum = far.index(0)
    around = [n for n in far[optimum + 1 :] if n == 1]
    assert len(around) >= 1
    assert 4 in far[optimum:]  # the kick
    assert max(far[optimum:]) > 4  # a new start


def test_local_search_takes_up_what_others_found() -> None:
    env, agent = Ones(), LocalSearch(BITS, seed=2)
    first = agent.ask(1)
    agent.tell(first, env.evaluate_batch(first))
    best = BITS.designs([{f"b{i}": i == 0 for i in range(12)}])
    agent.tell(best, env.evaluate_batch(best))
    assert agent.position[0].keys() == best.keys()


def test_local_search_beats_random_search_where_many_bits_matter() -> None:
    def ones(kind: Any) -> float:
        left = []
        for seed in range(10):
            best = kind(BITS, seed=seed).search(Ones(), 40).best
            left.append(best.objectives[0] - 1)
        return float(np.mean(left))

    assert ones(LocalSearch) < 0.3 * ones(RandomSearch)


# -- NSGA-II -----------------------------------------------------------------------------------


def test_constrained_domination() -> None:
    goals = np.array([[1.0, 4.0], [2.0, 2.0], [3.0, 3.0], [0.0, 0.0], [0.0, 0.0], [np.inf] * 2])
    excess = np.array([0.0, 0.0, 0.0, 0.2, 0.1, np.inf])
    assert constrained_ranks(goals, excess).tolist() == [0, 0, 1, 3, 2, 4]
    assert constrained_ranks(goals[:, :1], np.zeros(6))[:3].tolist() == [1, 2, 3]


def test_crowding_distance_is_debs() -> None:
    goals = np.array([[0.0, 10.0], [1.0, 6.0], [4.0, 2.0], [10.0, 0.0], [5.0, 5.0]])
    distances = crowding_distances(goals, np.array([0, 0, 0, 0, 1]))
    assert distances[[0, 3]].tolist() == [np.inf, np.inf]
    assert distances[1] == pytest.approx(4 / 10 + 8 / 10)
    assert distances[2] == pytest.approx(9 / 10 + 6 / 10)
    assert distances[4] == 0.0


def test_nsga2_finds_the_whole_front() -> None:
    def front(kind: Any) -> tuple[Any, float]:
        result = kind(SQUARE, ["minimize", "minimize"], seed=1).search(Front(), 600)
        xs = np.sort([outcome.design["x"] for outcome in result.front])
        return xs, float(np.mean([outcome.design["y"] for outcome in result.front]))

    xs, away = front(Nsga2)
    assert len(xs) > 20
    assert xs[0] < 0.25
    assert xs[-1] > 0.75
    assert np.diff(xs).max() < 0.1
    assert away < 0.3 * front(RandomSearch)[1]


def test_nsga2_puts_limits_before_goals() -> None:
    env = Front(objective={"minimize": ["a_ns", "b_ns"], "limits": ["b_ns <= 1.05"]})
    agent = Nsga2(SQUARE, ["minimize", "minimize"], seed=1)
    result = agent.search(env, 400)
    assert all(outcome.feasible for outcome in result.front)
    again = env.evaluate_batch(agent.population)
    assert again.feasible.all()
    assert min(outcome.design["x"] for outcome in result.front) < 0.65  # feasible from 0.576


def test_nsga2_with_one_goal_keeps_the_best() -> None:
    env, agent = Ones(), Nsga2(BITS, seed=3, population_size=8)
    told: list[float] = []
    env.on_evaluated = lambda outcomes: told.extend(outcomes.costs[:, 0].tolist())
    agent.search(env, 150)
    kept = Ones().evaluate_batch(agent.population).costs[:, 0]
    assert kept.tolist() == pytest.approx(np.sort(told)[:8].tolist())
