from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

import archgym
from archgym import Fidelity
from archgym.agents.common.moves import Moves
from archgym.agents.common.parzen import GoodAndOther
from archgym.errors import NotCoveredError, SimulationError
from archgym.problem.fidelity import FULL
from archgym.problem.simulator import SimulationResult
from archgym.registry import make_agent
from archgym.space import Categorical, Designs, DesignSpace, Integer, Real, param

NINTHS = (Fidelity(1 / 9, 1 / 9), Fidelity(1 / 3, 1 / 3), FULL)


class Curve(archgym.Environment):
    """Nine numbers to guess; a low fidelity sees all but the last ones.

    ``loss_count`` is the number of wrong guesses; at a third only the first six count, at a
    ninth the first three, and the designs get no worse than they are.
    """

    design_space = DesignSpace([Integer(f"p{i}", 0, 4) for i in range(9)])
    metrics: ClassVar = (archgym.Metric("loss_count", ""), archgym.Metric("size_count", ""))
    default_objective: ClassVar = "minimize loss_count"
    baseline: ClassVar = {f"p{i}": 0 for i in range(9)}
    fidelities: tuple[Fidelity, ...] = NINTHS

    def simulate_batch_at(
        self, designs: Designs, fidelity: float
    ) -> list[tuple[SimulationResult, float]]:
        return [(self.of(design, fidelity), 0.0) for design in designs]

    def of(self, design: dict[str, Any], fidelity: float) -> SimulationResult:
        seen = [design[f"p{i}"] for i in range({1 / 9: 3, 1 / 3: 6, 1.0: 9}[fidelity])]
        wrong = sum(value != (i * 2) % 5 for i, value in enumerate(seen))
        return {"loss_count": 1.0 + wrong, "size_count": 1.0 + sum(design.values())}


def ladder(env: archgym.Environment, budget: int, **settings: Any) -> list[tuple[float, int]]:
    """Fidelities of a search in order, each with the number of designs in a row at it."""
    runs: list[tuple[float, int]] = []

    def note(outcomes: Any) -> None:
        value = float(outcomes.fidelity[0])
        if runs and runs[-1][0] == value:
            runs[-1] = (value, runs[-1][1] + len(outcomes))
        else:
            runs.append((value, len(outcomes)))

    env.on_evaluated = note
    make_agent("hyperband", env.design_space, seed=3, **settings).search(env, budget)
    return runs


def test_brackets_are_those_of_hyperband() -> None:
    # Three rungs (Li et al., section 3): 9, 3, 1; then 5, 1; then 3, which costs 8 2/3 in all.
    ninth, third = 1 / 9, 1 / 3
    first = [(ninth, 9), (third, 3), (1.0, 1), (third, 5), (1.0, 4)]
    assert ladder(Curve(), 18)[:10] == first + first
    assert ladder(Curve(), 9, batch_size=1)[:5] == first


def test_eta_chooses_among_the_fidelities() -> None:
    class Fine(Curve):
        fidelities = (*(Fidelity(n / 16, n / 16) for n in range(1, 16)), FULL)

        def of(self, design: dict[str, Any], fidelity: float) -> SimulationResult:
            return super().of(design, 1.0)

    def used(eta: int) -> set[float]:
        return {value * 16 for value, _ in ladder(Fine(), 60, eta=eta)}

    assert used(4) == {1, 5, 16}  # 5/16 is within a quarter of 1/4, and so is 1/16 of 5/64
    assert used(16) == {1, 16}
    assert used(64) == {16}


def test_the_best_of_a_rung_go_on() -> None:
    env = Curve()
    seen: list[tuple[float, dict[str, Any], float]] = []
    env.on_evaluated = lambda outcomes: seen.extend(
        (o.fidelity, o.design, o.objectives[0]) for o in outcomes
    )
    make_agent("hyperband", env.design_space, seed=1, model=False).search(env, 5)
    low, middle, top = seen[:9], seen[9:12], seen[12:13]
    for rung, following in ((low, middle), (middle, top)):
        chosen = [design for _, design, _ in following]
        kept = sorted(value for _, design, value in rung if design in chosen)
        assert kept == sorted(value for _, _, value in rung)[: len(chosen)]


def test_nothing_is_proposed_twice_at_a_fidelity_and_the_budget_is_kept() -> None:
    for batch_size in (1, 5, 100):
        env = Curve()
        agent = make_agent("hyperband", env.design_space, seed=0, batch_size=batch_size)
        result = agent.search(env, 40)
        assert result.duplicates == 0
        assert 39 < result.spent <= 40
        assert result.simulations > 100


def test_with_one_fidelity_every_simulation_is_full() -> None:
    class Plain(Curve):
        fidelities = (FULL,)

    env = Plain()
    result = make_agent("hyperband", env.design_space, seed=0).search(env, 50)
    assert (result.simulations, result.spent, result.duplicates) == (50, 50, 0)


def test_a_small_space_is_simulated_fully_to_its_end() -> None:
    env = Curve(fixed={f"p{i}": 0 for i in range(7)})
    full = 0

    def note(outcomes: Any) -> None:
        nonlocal full
        full += int((outcomes.fidelity == 1).sum())

    env.on_evaluated = note
    result = make_agent("hyperband", env.design_space, seed=0).search(env, 500)
    assert full == env.design_space.canonical_cardinality == 25
    assert result.duplicates == 0
    assert result.spent < 50


def test_failures_and_uncovered_designs_do_not_go_on_while_others_are_left() -> None:
    class Grumpy(Curve):
        def of(self, design: dict[str, Any], fidelity: float) -> SimulationResult:
            if design["p0"] == 1:
                return SimulationError("p0 is 1")
            return NotCoveredError("p0 is 3") if design["p0"] == 3 else super().of(design, fidelity)

    env = Grumpy()
    met: dict[int, int] = {}
    low: set[int] = set()
    high: set[int] = set()

    def note(outcomes: Any) -> None:
        for key, design in zip(outcomes.designs.keys(), outcomes.designs, strict=True):
            (high if key in met else low).add(design["p0"])
            met[key] = design["p0"]

    env.on_evaluated = note
    result = make_agent("hyperband", env.design_space, seed=0, model=False).search(env, 30)
    assert low == {0, 1, 2, 3, 4}
    assert high
    assert not {1, 3} & high
    assert result.best is not None


def test_several_goals_are_ranked_by_domination() -> None:
    env = Curve(objective={"minimize": ["loss_count", "size_count"]})
    agent = make_agent("hyperband", env.design_space, ("minimize", "minimize"), seed=0)
    rung: list[tuple[float, ...]] = []
    asked: list[dict[str, Any]] = []
    designs: list[dict[str, Any]] = []

    def note(outcomes: Any) -> None:
        asked.extend(outcomes.designs)
        if len(rung) < 9:
            rung.extend(tuple(o.objectives) for o in outcomes)
        elif not designs:
            designs.extend(outcomes.designs)

    env.on_evaluated = note
    agent.search(env, 4)
    for design in designs:
        mine = rung[asked.index(design)]
        dominating = [g for g in rung if all(np.array(g) <= mine) and any(np.array(g) < mine)]
        kept = [rung[asked.index(other)] for other in designs]
        assert all(goals in kept for goals in dominating)


def test_known_designs_are_full_and_not_proposed_again() -> None:
    env = Curve()
    known = list(env.design_space.sample(20, np.random.default_rng(0)))
    agent = make_agent("hyperband", env.design_space, seed=0)
    told: list[tuple[float, dict[str, Any]]] = []
    env.on_evaluated = lambda outcomes: told.extend(
        zip(outcomes.fidelity.tolist(), outcomes.designs, strict=True)
    )
    agent.search(env, 40, initial=known)
    assert [value for value, _ in told[:20]] == [1.0] * 20
    assert not [design for _, design in told[20:] if design in known]


def test_low_fidelities_and_the_model_find_better_designs_at_equal_cost() -> None:
    def found(agent: str, **settings: Any) -> float:
        values = []
        for seed in range(6):
            env = Curve()
            result = make_agent(agent, env.design_space, seed=seed, **settings).search(env, 40)
            assert result.best is not None
            values.append(result.best.objectives[0])
        return float(np.mean(values))

    blind, halving, modelled = (
        found("random"),
        found("hyperband", model=False),
        found("hyperband"),
    )
    assert halving < blind - 0.5
    assert modelled < halving


# -- the model -----------------------------------------------------------------------------------

MIXED = DesignSpace(
    [
        Categorical("kind", ["a", "b", "c"]),
        Integer("n", 0, 99),
        Real("x", 0.0, 1.0, when=param("kind") != "c"),
    ]
)


def test_the_model_draws_and_favours_what_is_like_the_good() -> None:
    rng = np.random.default_rng(0)
    good = MIXED.designs({"kind": "b", "n": 80 + i, "x": 0.5 + 0.01 * i} for i in range(8))
    other = MIXED.sample(40, rng)
    model = GoodAndOther(Moves(MIXED, rng), rng, good.codes, other.codes)
    drawn = model.sample(400)
    assert (drawn.codes == MIXED.canonicalise(drawn.codes).codes).all()
    assert (drawn.values("kind") == "b").mean() > 0.5
    near = drawn.values("n")
    assert np.median(near) > 70
    alike, unlike = MIXED.designs([{"kind": "b", "n": 83, "x": 0.55}]), MIXED.sample(50, rng)
    assert model.score(alike)[0] > np.median(model.score(unlike)) + 2
    assert np.isfinite(model.score(MIXED.sample(200, rng))).all()


def test_the_model_counts_what_is_active() -> None:
    rng = np.random.default_rng(0)
    good = MIXED.designs({"kind": "c", "n": n} for n in (10, 50, 90))
    other = MIXED.designs({"kind": "a", "n": n, "x": 0.5} for n in (10, 50, 90))
    model = GoodAndOther(Moves(MIXED, rng), rng, good.codes, other.codes)
    without, with_x = MIXED.designs([{"kind": "c", "n": 50}, {"kind": "a", "n": 50, "x": 0.5}])
    scores = model.score(MIXED.designs([without, with_x]))
    assert scores[0] > 0 > scores[1]


@pytest.mark.parametrize("position", range(2))
def test_a_single_good_design_is_enough_for_the_model(position: int) -> None:
    rng = np.random.default_rng(position)
    pair = MIXED.sample(2, rng)
    model = GoodAndOther(Moves(MIXED, rng), rng, pair.codes[:1], pair.codes[1:])
    assert model.score(pair)[0] > model.score(pair)[1]
    assert len(model.sample(7)) == 7
