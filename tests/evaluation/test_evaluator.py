from __future__ import annotations

import pickle
from typing import Any, ClassVar, cast

import numpy as np
import pytest

import archgym
from archgym.errors import BudgetExhausted, DesignError, InvalidValueError, SimulationError
from archgym.evaluation.trial_info import TrialInfo
from archgym.space import Categorical, Designs, DesignSpace, Integer
from tests.helpers import Adder, Batched, Grumpy


def budgeted(env: archgym.Environment, budget: int | None) -> archgym.Environment:
    env.start_trial(TrialInfo(budget=budget))
    return env


def counts(env: archgym.Environment) -> tuple[int, int, int, int]:
    e = env.evaluator
    return e.simulations, e.proposals, e.duplicates, e.illegal


def plain(x: int, y: int) -> dict[str, Any]:
    return {"x": x, "y": y, "mode": "plain"}


def test_a_batch_is_cut_to_what_is_left_and_then_the_budget_is_exhausted() -> None:
    env = budgeted(Adder(), 3)
    designs = [
        plain(0, 0),
        plain(4, 4),
        plain(0, 0),
        plain(0, 1),
        plain(4, 4),
        plain(0, 2),
        plain(0, 3),
    ]
    outcomes = env.evaluate_batch(designs)
    # Illegal designs and the duplicate are free; the seventh does not fit any more.
    assert [o.status for o in outcomes] == ["ok", "illegal", "ok", "ok", "illegal", "ok"]
    assert outcomes.cached.tolist() == [False, False, True, False, False, False]
    assert counts(env) == (3, 6, 1, 2)
    for call in (lambda: env.evaluate_batch(designs), lambda: env.evaluate(plain(0, 0))):
        with pytest.raises(BudgetExhausted, match="budget 3"):
            call()
    with pytest.raises(BudgetExhausted):
        env.step(env.action_space.sample())
    assert counts(env) == (3, 6, 1, 2)
    assert len(env.evaluate_batch([])) == 0


def test_proposals_end_a_search_at_ten_times_the_budget() -> None:
    env = budgeted(Adder(), 2)
    outcomes = env.evaluate_batch([plain(1, 1)] * 50)
    assert len(outcomes) == 20
    assert counts(env) == (1, 20, 19, 0)
    with pytest.raises(BudgetExhausted):
        env.evaluate(plain(0, 1))


def test_how_many_proposals_is_a_setting() -> None:
    env = Adder()
    env.start_trial(TrialInfo(budget=2, proposals_per_budget=3))
    assert len(env.evaluate_batch([plain(1, 1)] * 50)) == 6
    for field in ("budget", "proposals_per_budget"):
        for bad in (0, -1, True, 1.5):
            with pytest.raises(InvalidValueError, match=f"{field} must be an integer"):
                TrialInfo(**cast("dict[str, Any]", {field: bad}))


def test_after_the_end_of_a_trial_a_new_one_without_a_budget_begins() -> None:
    env = budgeted(Adder(), 1)
    env.evaluate(plain(0, 0))
    with pytest.raises(BudgetExhausted):
        env.evaluate(plain(0, 1))
    env.end_trial("finished")
    assert counts(env) == (1, 1, 0, 0)
    assert not env.evaluate(plain(0, 0)).cached
    assert counts(env) == (1, 1, 0, 0)
    assert env.evaluator.budget is None


def test_a_search_ends_when_the_space_is_exhausted() -> None:
    env = budgeted(Adder(), 1000)
    every = np.concatenate([part.codes for part in env.design_space.enumerate()])
    assert len(every) == env.design_space.canonical_cardinality == 72
    assert len(env.evaluate_batch(Designs(env.design_space, every))) == 72
    assert env.evaluator.exhausted
    with pytest.raises(BudgetExhausted):
        env.evaluate(plain(0, 0))


def test_uncovered_designs_count_towards_exhaustion_but_not_towards_the_budget() -> None:
    env = budgeted(Grumpy(), 1000)
    every = np.concatenate([part.codes for part in env.design_space.enumerate()])
    outcomes = env.evaluate_batch(Designs(env.design_space, every))
    uncovered = int((outcomes.designs.values("x") == 3).sum())
    assert counts(env) == (72 - uncovered, 72, 0, uncovered)
    assert env.evaluator.exhausted


def test_failures_are_outcomes_counted_and_remembered() -> None:
    env = budgeted(Grumpy(), None)
    seen = {x: env.evaluate(plain(x, 0)) for x in range(5)}
    assert {x: (o.status, o.reason) for x, o in seen.items()} == {
        0: ("failed", "no x"),
        1: ("timeout", "after 3 s"),
        2: ("ok", ""),
        3: ("illegal", "x = 3 is not modelled"),
        4: ("failed", "ZeroDivisionError: division by zero"),
    }
    assert env.evaluate(plain(4, 1)).reason == "speed_rate is nan, not a finite number"
    for x, outcome in seen.items():
        if x != 2:
            assert (outcome.reward, outcome.metrics, outcome.feasible) == (-1.0, {}, False)
            assert outcome.objectives == (np.inf,)
    assert counts(env) == (5, 6, 0, 1)
    again = {x: env.evaluate(plain(x, 0)) for x in range(5)}
    for x, outcome in again.items():
        assert outcome.cached
        assert (outcome.status, outcome.reason) == (seen[x].status, seen[x].reason)
    assert counts(env) == (5, 11, 5, 2)
    assert len(env.simulated) == 6  # type: ignore[attr-defined]


def test_one_by_one_batches_and_steps_come_to_the_same() -> None:
    for kind in (Adder, Grumpy, Batched):
        one, many, steps = kind(), kind(), kind()
        designs = one.design_space.canonicalise(
            np.random.default_rng(0).integers(0, [5, 5, 2, 2], size=(200, 4))
        )
        together = many.evaluate_batch(designs)
        actions = steps.encoding.encode(designs)
        for i, (design, action) in enumerate(zip(designs, actions, strict=True)):
            single, whole = one.evaluate(design), together[i]
            observation, reward, done, _, info = steps.step(action)
            for field in (
                "design",
                "metrics",
                "objectives",
                "reward",
                "status",
                "reason",
                "cached",
            ):
                assert getattr(single, field) == getattr(whole, field)
            assert np.array_equal(single.violations, whole.violations, equal_nan=True)
            assert (reward, info["metrics"], done) == (single.reward, single.metrics, True)
            assert (observation == many.observe(together)[i]).all()
        assert counts(one) == counts(many) == counts(steps)


def test_designs_are_compared_in_canonical_form() -> None:
    env = Adder()
    env.evaluate({**plain(1, 1), "scale": 2})
    assert env.evaluate(plain(1, 1)).cached
    assert env.simulated == [plain(1, 1)]


def test_simulated_designs_may_be_changed_by_the_simulator() -> None:
    class Careless(Adder):
        def simulate(self, design: dict[str, Any]) -> dict[str, float]:
            metrics = super().simulate(dict(design))
            design.clear()
            return metrics

    assert Careless().evaluate(plain(1, 1)).design == plain(1, 1)


def test_nothing_happened_if_the_simulator_or_the_recorder_raises() -> None:
    class Broken(Adder):
        broken = False

        def simulate_batch(self, designs: Designs) -> list[tuple[Any, float]]:
            if self.broken:
                raise RuntimeError("the whole batch is lost")
            return super().simulate_batch(designs)

    env = Broken()
    env.evaluate(plain(0, 0))
    env.broken = True
    for call in (
        lambda: env.evaluate(plain(0, 1)),
        lambda: env.evaluate_batch([plain(0, 1), plain(0, 2)]),
    ):
        with pytest.raises(RuntimeError):
            call()
    assert counts(env) == (1, 1, 0, 0)
    env.broken = False
    assert not env.evaluate(plain(0, 1)).cached
    assert env.evaluate(plain(0, 0)).cached


def test_limits_make_designs_infeasible_with_a_reason() -> None:
    env = Adder(
        objective={"minimize": "total_ns", "limits": ["total_ns <= 4", "speed_rate >= 0.1"]}
    )
    outcome = env.evaluate(plain(3, 4))
    assert (outcome.status, outcome.feasible) == ("ok", False)
    assert outcome.reason == "limit total_ns <= 4 exceeded by 100.0%"
    assert list(outcome.violations) == pytest.approx([1.0, -0.25])  # speed 0.125: a quarter above
    assert outcome.reward == -0.5
    assert env.evaluate(plain(3, 0)).feasible


def test_a_metric_that_the_simulator_does_not_give_is_none() -> None:
    class Half:
        name, version, metric_names = "half", "1", ("total_ns",)

        def simulate(self, designs: Designs) -> list[tuple[Any, float]]:
            return [({"total_ns": 5.0}, 0.25) for _ in designs]

    env = Adder(simulator=Half())
    assert env.evaluate(plain(0, 0)).metrics == {"total_ns": 5.0, "speed_rate": None}
    assert env.evaluate(plain(0, 1)).simulation_s == 0.25
    observation, *_ = env.step(env.action_space.sample())
    assert env.observation_space.contains(observation)
    with pytest.raises(InvalidValueError, match=r"'half' does not give metric 'speed_rate'"):
        Adder(simulator=Half(), objective="maximize speed_rate")


@pytest.mark.parametrize(
    ("metrics", "reason"),
    [
        ({"total_ns": 1.0}, "the simulator gave no speed_rate"),
        ({"total_ns": -1.0, "speed_rate": 1.0}, "total_ns is -1, below zero"),
        ({"total_ns": float("inf"), "speed_rate": 1.0}, "total_ns is inf, not a finite number"),
        ({"total_ns": "fast", "speed_rate": 1.0}, "total_ns is 'fast', not a number"),
    ],
)
def test_metrics_that_cannot_be_are_failures(metrics: dict[str, Any], reason: str) -> None:
    class Odd(Adder):
        def simulate(self, design: dict[str, Any]) -> dict[str, float]:
            return super().simulate(design) if design == plain(2, 2) else metrics

    outcome = Odd().evaluate(plain(0, 0))
    assert (outcome.status, outcome.reason) == ("failed", reason)

    class OddBaseline(Adder):
        def simulate(self, design: dict[str, Any]) -> dict[str, float]:
            return metrics

    with pytest.raises(SimulationError, match="baseline design cannot be simulated"):
        OddBaseline()


def test_numpy_metrics_become_plain_floats() -> None:
    class Numpy(Adder):
        def simulate(self, design: dict[str, Any]) -> Any:
            return {k: np.float32(v) for k, v in super().simulate(design).items()}

    env = Numpy()
    assert {type(v) for v in env.evaluate(plain(0, 0)).metrics.values()} == {float}
    assert type(env.step(env.action_space.sample())[1]) is float


def test_what_is_not_a_design_is_refused_before_anything_happens() -> None:
    env = Adder()
    with pytest.raises(DesignError, match="'x' cannot be 9"):
        env.evaluate(plain(9, 0))
    with pytest.raises(DesignError, match="level 9 of parameter 'x'"):
        env.step(np.array([9, 0, 0, 0]))
    with pytest.raises(InvalidValueError, match="another design space"):
        env.evaluate_batch(DesignSpace([Integer("x", 0, 1)]).designs([{"x": 1}]))
    assert counts(env) == (0, 0, 0, 0)


def test_keys_beyond_64_bits() -> None:
    class Wide(archgym.Environment):
        design_space = DesignSpace([Categorical(f"p{i}", range(50)) for i in range(20)])
        metrics: ClassVar = (archgym.Metric("sum_count", ""),)
        default_objective = "minimize sum_count"
        baseline: ClassVar = {f"p{i}": 1 for i in range(20)}

        def simulate(self, design: dict[str, Any]) -> dict[str, float]:
            return {"sum_count": float(sum(design.values()))}

    env = Wide()
    designs = env.design_space.sample(3000, np.random.default_rng(0))
    first, second = env.evaluate_batch(designs), env.evaluate_batch(designs)
    assert not first.cached.any()
    assert second.cached.all()
    assert (first.metrics == second.metrics).all()
    assert first[17].metrics["sum_count"] == sum(designs[17].values())


def test_more_designs_than_any_table_starts_with() -> None:
    space = DesignSpace([Integer("x", 0, 4095), Integer("y", 0, 4095)])

    class Large(Batched):
        design_space = space
        baseline: ClassVar = {"x": 1, "y": 1}

        def simulate_batch(self, designs: Designs) -> list[tuple[Any, float]]:
            total = designs.values("x") * 4096.0 + designs.values("y")
            return [({"total_ns": t, "speed_rate": 1.0}, 0.0) for t in total]

    env = Large()
    designs = space.sample(20_000, np.random.default_rng(1))
    env.evaluate_batch(designs)
    again = env.evaluate_batch(designs)
    assert again.cached.all()
    assert (again.metrics[:, 0] == designs.codes @ [4096, 1]).all()
    assert env.evaluator.simulations == len(set(designs.keys()))


def test_a_design_without_metrics_says_why() -> None:
    outcome = pickle.loads(pickle.dumps(Adder().evaluate(plain(4, 4))))
    assert outcome.metrics == {}
    assert outcome.metrics.get("cost_ns") is None
    with pytest.raises(KeyError, match="the design has no cost_ns; it is illegal: "):
        outcome.metrics["cost_ns"]


def test_an_environment_has_a_short_text() -> None:
    assert repr(Adder()) == f"<tests.helpers:Adder: {Adder().design_space!r}>"
