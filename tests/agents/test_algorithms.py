"""What sets the genetic algorithm, annealing and the ant colony apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from archgym.agents.aco import AntColony
from archgym.agents.ga import Genetic
from archgym.agents.sa import SimulatedAnnealing
from archgym.envs.conformance import ConformanceEnvironment
from archgym.space import Boolean, Categorical, Designs, DesignSpace, Integer, Real, param

SPACE = DesignSpace(
    [
        Categorical("kind", [f"k{i}" for i in range(8)]),
        Boolean("ahead"),
        Integer("distance", 1, 8, when=param("ahead") == True),  # noqa: E712
        Integer("lines", 0, 9999),
        Real("share", 0.0, 1.0),
    ]
)


class Target(ConformanceEnvironment):
    """Cost grows with the distance from one design."""

    baseline = {"kind": "k0", "ahead": False, "lines": 0, "share": 0.0}  # noqa: RUF012

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        away = (
            (design["kind"] != "k5")
            + (abs(design.get("distance", 16) - 3) / 8)
            + abs(design["lines"] - 7000) / 5000
            + abs(design["share"] - 0.7)
        )
        return {m.name: 1.0 + float(away) for m in self.metrics}


def distance(designs: Designs) -> float:
    """How far designs are from the target on average."""
    env = Target(space=SPACE)
    return float(env.evaluate_batch(designs).objectives.mean())


@pytest.mark.full
@pytest.mark.parametrize("kind", [Genetic, AntColony, SimulatedAnnealing])
def test_proposals_concentrate_around_what_was_good(kind: type[Genetic | AntColony]) -> None:
    early, late = [], []
    for seed in range(10):
        env, agent = Target(space=SPACE), kind(SPACE, seed=seed)
        batches = []
        for _ in range(30):
            designs = agent.ask(8)
            agent.tell(designs, env.evaluate_batch(designs))
            batches.append(distance(designs))
        early.append(batches[0])
        late.append(np.mean(batches[-5:]))
    assert np.median(late) - 1 < 0.5 * (np.median(early) - 1)


def test_trails_of_an_inactive_parameter_stay_even() -> None:
    space = SPACE.fix({"ahead": False})
    env, agent = Target(space=space), AntColony(space, seed=0)
    agent.search(env, 200)
    assert np.ptp(agent.trails["distance"]) == 0
    kind = agent.trails["kind"]
    assert kind.argmax() == 5
    assert kind.sum() == pytest.approx(1.0)


def test_annealing_accepts_uphill_moves_while_hot_only() -> None:
    def climbs(hot: float, cold: float) -> int:
        env, agent = (
            Target(space=SPACE),
            SimulatedAnnealing(
                SPACE, seed=1, initial_temperature=hot, final_temperature=cold, cycle=10_000
            ),
        )
        stands = []
        for _ in range(150):
            designs = agent.ask(1)
            agent.tell(designs, env.evaluate_batch(designs))
            stands.append(agent.chain_costs[0])
        return int((np.diff(stands[20:]) > 0).sum())

    assert climbs(100.0, 100.0) > 40
    assert climbs(1e-6, 1e-6) <= 3  # jumps only


def test_annealing_goes_on_from_designs_that_it_is_told_of() -> None:
    env = Target(space=SPACE)
    agent = SimulatedAnnealing(SPACE, seed=1, n_initial=10, extra_move_rate=0)
    known = SPACE.sample(10, np.random.default_rng(4))
    agent.tell(known, env.evaluate_batch(known))
    best = known.codes[env.evaluate_batch(known).objectives[:, 0].argmin()]
    differs = agent.ask(1).codes[0] != best
    assert differs[[0, 1, 3, 4]].sum() == 1  # distance comes and goes with ahead


def test_chains_of_annealing_move_apart() -> None:
    env, agent = Target(space=SPACE), SimulatedAnnealing(SPACE, seed=1, chains=4, batch_size=4)
    result = agent.search(env, 120)
    assert result.simulations == 120
    assert len(set(agent.chain_costs)) > 1


def test_genetic_population_is_drawn_anew_where_nothing_gets_better() -> None:
    env, agent = Target(space=SPACE), Genetic(SPACE, seed=3, population_size=12, patience=60)
    sizes, told, least = [], [], []
    for _ in range(200):
        asked = agent.ask(1)
        outcomes = env.evaluate_batch(asked)
        agent.tell(asked, outcomes)
        told.append(outcomes.costs[0, 0])
        sizes.append(len(agent.population))
        least.append(env.evaluate_batch(agent.population).costs.min())
    full = sizes.index(12)
    assert set(np.diff(sizes[full:]).tolist()) == {0, 1, -11}
    assert sizes[-1] > 1
    assert least == np.minimum.accumulate(told).tolist()


def test_genetic_population_is_what_was_best() -> None:
    env, agent = Target(space=SPACE), Genetic(SPACE, seed=3, population_size=12)
    told: list[float] = []
    env.on_evaluated = lambda outcomes: told.extend(outcomes.costs[:, 0].tolist())
    agent.search(env, 150)
    best = np.sort(told)[:12]
    population = Target(space=SPACE).evaluate_batch(agent.population).costs[:, 0]
    assert np.sort(population) == pytest.approx(best)
