"""Fidelity from end to end: counting, memory, recording, resuming, results."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow.parquet as pq
import pytest

import archgym
from archgym import Fidelity
from archgym.agent import Sampler
from archgym.analysis.trials import read_trials
from archgym.check import check_environment
from archgym.data import Dataset, equal_trajectories
from archgym.enumeration import enumerate_space
from archgym.errors import (
    BudgetExhausted,
    InvalidValueError,
    NotCoveredError,
    ReplayMismatchError,
    SimulationError,
)
from archgym.evaluation.outcome import Outcomes
from archgym.evaluation.trial_info import TrialInfo
from archgym.problem.fidelity import FULL
from archgym.problem.simulator import SimulationResult
from archgym.registry import make_agent
from archgym.space import Designs, DesignSpace, Integer, Rule, param


class Training(archgym.Environment):
    """A number to guess; trained for less, every guess looks worse, and odd ones by more.

    At full fidelity ``error_rate`` is ``x``; below it is larger by ``1 - fidelity``, and by as
    much again where ``x`` is odd. ``x = 7`` fails at once, and ``x = 8`` is not covered.
    """

    design_space = DesignSpace(
        [Integer("x", 0, 9), Integer("y", 0, 1)], [Rule("r", param("x") + param("y") < 10, "no")]
    )
    metrics: ClassVar[tuple[archgym.Metric, ...]] = (archgym.Metric("error_rate", ""),)
    default_objective: ClassVar = "minimize error_rate"
    baseline: ClassVar = {"x": 5, "y": 0}
    fidelities: tuple[Fidelity, ...] = (
        Fidelity(0.1, 0.1, "1 epoch"),
        Fidelity(0.3, 0.3, "3 epochs"),
        FULL,
    )

    def __init__(self, **arguments: Any) -> None:
        self.runs: list[tuple[float, int]] = []
        super().__init__(**arguments)
        self.simulate_baseline()
        self.runs.clear()

    def simulate_batch_at(
        self, designs: Designs, fidelity: float
    ) -> list[tuple[SimulationResult, float]]:
        self.runs.append((fidelity, len(designs)))
        return [(self._one(design["x"], fidelity), 0.5 * fidelity) for design in designs]

    def _one(self, x: int, fidelity: float) -> SimulationResult:
        if x == 7:
            return SimulationError("diverges")
        if x == 8:
            return NotCoveredError("too wide")
        return {"error_rate": x + (1 - fidelity) * (1 + x % 2)}


class Fixed:
    """A simulator that knows of no fidelities."""

    name, version = "fixed", "1"
    metric_names = ("error_rate",)

    def simulate(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        return [({"error_rate": 1.0 + design["x"]}, 0.0) for design in designs]


def at(*xs: int, y: int = 0) -> list[dict[str, Any]]:
    return [{"x": x, "y": y} for x in xs]


def budgeted(budget: int | None, **arguments: Any) -> Training:
    env = Training(**arguments)
    env.start_trial(TrialInfo(trial_id="t", agent="test", budget=budget))
    return env


def counts(env: archgym.Environment) -> tuple[float, int, int, int, int]:
    e = env.evaluator
    return e.spent, e.simulations, e.proposals, e.duplicates, e.illegal


def over(env: archgym.Environment) -> bool:
    return env.evaluator.exhausted


# -- counting ------------------------------------------------------------------------------------


def test_each_fidelity_is_simulated_counted_and_remembered_by_itself() -> None:
    env = budgeted(None)
    design = {"x": 3, "y": 0}
    found = [env.evaluate(design, value) for value in (0.1, 0.3, 1.0)]
    assert [o.metrics["error_rate"] for o in found] == pytest.approx([4.8, 4.4, 3.0])
    assert [o.fidelity for o in found] == [0.1, 0.3, 1.0]
    assert not any(o.cached for o in found)
    assert counts(env) == (1.4, 3, 3, 0, 0)
    again = [env.evaluate(design, value) for value in (1.0, 0.1)]
    assert [o.metrics for o in again] == [found[2].metrics, found[0].metrics]
    assert all(o.cached for o in again)
    assert counts(env) == (1.4, 3, 5, 2, 0)
    assert env.runs == [(0.1, 1), (0.3, 1), (1.0, 1)]


def test_ten_tenths_are_exactly_one() -> None:
    env = budgeted(2)
    assert len(env.evaluate_batch(at(0, 1, 2, 3, 4, 5, 6), 0.1)) == 7
    assert len(env.evaluate_batch(at(0, 1, 2, y=1), 0.1)) == 3
    assert counts(env) == (1.0, 10, 10, 0, 0)
    assert not over(env)
    env.evaluate({"x": 0, "y": 0})
    assert env.evaluator.spent == 2
    assert over(env)
    with pytest.raises(BudgetExhausted, match="budget 2, 2 of it spent"):
        env.evaluate({"x": 4, "y": 1}, 0.1)


def test_a_batch_is_cut_to_what_its_fidelity_costs() -> None:
    env = budgeted(1)
    assert len(env.evaluate_batch(at(0, 1, 0, 2, 3, 4), 0.3)) == 4  # the third is known
    assert counts(env) == (0.9, 3, 4, 1, 0)
    # A tenth is left: too little for a full simulation or three tenths, enough for one tenth.
    for dear in (1.0, 0.3):
        with pytest.raises(BudgetExhausted):
            env.evaluate({"x": 5, "y": 0}, dear)
        with pytest.raises(BudgetExhausted):
            env.evaluate_batch(at(5, 6), dear)
    assert not over(env)
    assert len(env.evaluate_batch(at(5, 6), 0.1)) == 1
    assert over(env)
    assert env.evaluator.spent == 1


def test_failures_cost_and_illegal_designs_do_not_at_any_fidelity() -> None:
    env = budgeted(None)
    outcomes = env.evaluate_batch([{"x": 7, "y": 0}, {"x": 8, "y": 0}, {"x": 9, "y": 1}], 0.3)
    assert [o.status for o in outcomes] == ["failed", "illegal", "illegal"]
    assert outcomes.fidelity.tolist() == [0.3] * 3
    assert counts(env) == (0.3, 1, 3, 0, 2)


def test_proposals_weigh_what_they_would_cost() -> None:
    env = budgeted(1)
    assert len(env.evaluate_batch(at(*[4] * 200), 0.1)) == 100
    with pytest.raises(BudgetExhausted):
        env.evaluate({"x": 4, "y": 0})
    env = budgeted(2)
    assert len(env.evaluate_batch(at(*[4] * 200))) == 20


def test_a_space_is_exhausted_when_all_is_known_fully() -> None:
    env = budgeted(1000)
    every = next(env.design_space.enumerate())
    assert len(every) == env.design_space.canonical_cardinality == 19
    for value in (0.1, 0.3):
        env.evaluate_batch(every, value)
        assert not over(env)
    env.evaluate_batch(every[:-1])
    assert not over(env)
    env.evaluate_batch(every[-1:])
    assert over(env)


def test_steps_are_full() -> None:
    env = budgeted(None)
    env.reset(seed=0)
    env.step(np.array([4, 1]))
    assert env.runs == [(1.0, 1)]


# -- what is possible ----------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [0.2, 0, -1, 2.0, math.nan, "0.1", None])
def test_another_fidelity_is_refused_and_nothing_counted(wrong: Any) -> None:
    env = budgeted(3)
    for call in (
        lambda: env.evaluate(at(1)[0], wrong),
        lambda: env.evaluate_batch(at(1, 2), wrong),
    ):
        with pytest.raises(InvalidValueError, match=r"not among those .*embedded.*: 0.1, 0.3, 1$"):
            call()
    assert counts(env) == (0, 0, 0, 0, 0)


def test_numbers_of_other_types_are_fidelities_too(tmp_path: Path) -> None:
    env = budgeted(None, record=tmp_path)
    for value in (np.float64(0.1), 1, np.float64(0.3)):
        env.evaluate({"x": 1, "y": 0}, value)
    env.close()
    assert Dataset(tmp_path).evaluations()["fidelity"].to_pylist() == [0.1, 1.0, 0.3]


def test_other_simulators_are_full_only(tmp_path: Path) -> None:
    enumerate_space("Conformance-v0", {"space": "finite"}, tmp_path / "table", workers=1)
    table = archgym.make("Conformance-v0", simulator=f"tabular:{tmp_path / 'table'}")
    for env, name in ((Training(simulator=Fixed()), "fixed"), (table, "tabular")):
        assert env.fidelities == (FULL,)
        assert env.evaluate(env.baseline_design, 1.0).status == "ok"
        with pytest.raises(InvalidValueError, match=f"fidelity 0.1 is not among .*'{name}': 1$"):
            env.evaluate(env.baseline_design, 0.1)


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ((Fidelity(0.1, 0.1),), "the last of the fidelities is the full simulation"),
        ((Fidelity(0.1, 0.1), Fidelity(1, 0.5)), "the last of the fidelities"),
        ((), "the last of the fidelities"),
        ((Fidelity(0.3, 0.3), Fidelity(0.1, 0.4), FULL), "ascend in value and cost"),
        ((Fidelity(0.1, 0.3), Fidelity(0.3, 0.1), FULL), "ascend in value and cost"),
        ((Fidelity(0.1, 0.3), Fidelity(0.1, 0.3), FULL), "ascend in value and cost"),
        ((0.1, FULL), "holds 0.1, not a Fidelity"),
    ],
)
def test_impossible_declarations_are_refused(declared: Any, problem: str) -> None:
    class Wrong(Training):
        fidelities = declared

    with pytest.raises(InvalidValueError, match=f"Wrong: .*{problem}"):
        Wrong()


def test_declared_fidelities_have_to_be_simulated() -> None:
    class Forgetful(archgym.Environment):
        design_space = Training.design_space
        metrics: ClassVar = Training.metrics
        default_objective: ClassVar = Training.default_objective
        baseline: ClassVar = Training.baseline
        fidelities = Training.fidelities

        def simulate(self, design: dict[str, Any]) -> dict[str, float]:
            return {"error_rate": float(design["x"])}

    with pytest.raises(InvalidValueError, match=r"Forgetful .*must override simulate_batch_at"):
        Forgetful()


@pytest.mark.parametrize("wrong", [0, 1.1, -0.5, True, "0.5", math.nan, None])
def test_value_and_cost_are_shares(wrong: Any) -> None:
    with pytest.raises(InvalidValueError, match="fidelity: value is a number"):
        Fidelity(wrong, 0.5)
    with pytest.raises(InvalidValueError, match="fidelity: cost is a number"):
        Fidelity(0.5, wrong)


def test_an_instance_may_have_fidelities_and_metrics_of_its_own() -> None:
    class Tasks(Training):
        incidental_arguments: ClassVar = ("tasks",)  # the metrics tell

        def __init__(self, tasks: int, **arguments: Any) -> None:
            names = [f"error_{number}_rate" for number in range(tasks)]
            self.metrics = tuple(archgym.Metric(n, "") for n in names)  # type: ignore[misc]
            self.fidelities = (Fidelity(1 / tasks, 1 / tasks), FULL) if tasks > 1 else (FULL,)
            super().__init__(objective={"minimize": names}, **arguments)

        def _one(self, x: int, fidelity: float) -> SimulationResult:
            return {metric.name: float(x + number) for number, metric in enumerate(self.metrics)}

    for tasks in (1, 3):
        env = Tasks(tasks)
        assert len(env.fidelities) == min(tasks, 2)
        assert list(env.evaluate(at(2)[0], env.fidelities[0].value).metrics.values()) == [
            2.0 + number for number in range(tasks)
        ]
        assert all(result.passed for result in check_environment(env))


def test_the_shipped_check_looks_at_fidelities() -> None:
    class Careless(Training):
        """Gives no metric where it should, at a low fidelity only."""

        def _one(self, x: int, fidelity: float) -> SimulationResult:
            return {"error_rate": 1.0 + x} if fidelity > 0.2 else {}

    def of(target: Any) -> Any:
        return next(r for r in check_environment(target) if r.name == "fidelities")

    assert of(Training).passed
    assert not of(Careless).passed
    assert "gave no error_rate" in of(Careless).detail


# -- recording and resuming ----------------------------------------------------------------------


def visit(env: Training) -> None:
    env.evaluate_batch(at(0, 7, 8, 3), 0.1)
    env.evaluate({"x": 3, "y": 0}, 0.3)
    env.evaluate_batch(at(3, 0))
    env.evaluate_batch(at(3, 4), 0.1)


def test_rows_say_at_which_fidelity(tmp_path: Path) -> None:
    env = budgeted(20, record=tmp_path)
    visit(env)
    env.end_trial("finished")
    dataset = Dataset(tmp_path)
    for _ in range(2):
        table = dataset.evaluations()
        assert table["fidelity"].to_pylist() == [*[0.1] * 4, 0.3, 1.0, 1.0, 0.1, 0.1]
        assert table["cached"].to_pylist() == [*[False] * 7, True, False]
        (row,) = dataset.trials().to_pylist()
        assert json.loads(row["fidelities"]) == [f.to_json() for f in Training.fidelities]
        assert dataset.info()["fidelity"] == {"0.1": 6, "0.3": 1, "1": 2}
        dataset.seal()


def test_a_resumed_trial_knows_each_fidelity(tmp_path: Path) -> None:
    whole = budgeted(20, record=tmp_path / "whole")
    visit(whole)
    whole.close()
    part = budgeted(20, record=tmp_path / "part")
    part.evaluate_batch(at(0, 7, 8, 3), 0.1)
    part.evaluate({"x": 3, "y": 0}, 0.3)
    part.close()
    again = Training(record=tmp_path / "part")
    again.start_trial(TrialInfo(trial_id="t", agent="test", budget=20, resume=True))
    visit(again)
    assert counts(again) == counts(whole)
    again.close()
    assert again.runs == [(1.0, 2), (0.1, 1)]
    tables = [Dataset(tmp_path / name).evaluations() for name in ("whole", "part")]
    assert equal_trajectories(*tables)


def test_resuming_at_another_fidelity_is_refused(tmp_path: Path) -> None:
    env = budgeted(20, record=tmp_path)
    visit(env)
    env.start_trial(TrialInfo(trial_id="t", agent="test", budget=20, resume=True))
    with pytest.raises(ReplayMismatchError, match=r"'x': 0, 'y': 0} at fidelity 0.3, but its log "):
        env.evaluate_batch(at(0, 7), 0.3)
    with pytest.raises(ReplayMismatchError, match=r"holds {'x': 0, 'y': 0} at fidelity 0.1: "):
        env.evaluate({"x": 0, "y": 0})
    env.close()


SEARCH = """
import os, signal, sys
import archgym
env = archgym.make("Conformance-v0", record=sys.argv[1])
agent = archgym.make_agent("hyperband", env.design_space, seed=4)
seen = 0
def die(outcomes):
    global seen
    seen += len(outcomes)
    if seen >= int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
env.on_evaluated = die
agent.search(env, 12, trial_id="t", resume=True)
"""


def test_a_search_killed_twice_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    for kill_at in (7, 26):
        done = subprocess.run(
            [sys.executable, "-c", SEARCH, str(tmp_path / "killed"), str(kill_at)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            check=False,
        )
        assert done.returncode == -signal.SIGKILL
    results = []
    for name in ("killed", "whole"):
        env = archgym.make("Conformance-v0", record=tmp_path / name)
        agent = make_agent("hyperband", env.design_space, seed=4)
        results.append(agent.search(env, 12, trial_id="t", resume=True))
        env.close()
    killed, whole = (Dataset(tmp_path / name).evaluations() for name in ("killed", "whole"))
    assert whole.num_rows > 26
    assert equal_trajectories(killed, whole)
    assert results[0].best is not None
    assert results[1].best is not None
    assert results[0].best.design == results[1].best.design
    assert results[0].spent == results[1].spent


# -- results -------------------------------------------------------------------------------------


class Script(Sampler):
    """Evaluates what it is told to, fidelity by fidelity."""

    name = "script"
    plan: tuple[tuple[float, tuple[int, ...]], ...] = ()

    def ask(self, n: int) -> Designs:
        if not self.plan:
            return self.space.designs(())
        (self.fidelity, xs), *rest = self.plan
        self.plan = tuple(rest)
        return self.space.designs(at(*xs))

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        assert (outcomes.fidelity == self.fidelity).all()


def test_results_are_of_full_simulations(tmp_path: Path) -> None:
    env = Training(record=tmp_path)
    agent = Script(env.design_space)
    agent.plan = ((0.1, (0, 2, 4)), (0.3, (0,)), (1.0, (4, 7)), (0.1, (6,)), (1.0, (2,)))
    result = agent.search(env, 20, trial_id="t")
    env.close()
    # At a tenth x = 0 looked best, but it was never simulated fully.
    assert result.best is not None
    assert (result.best.design["x"], result.best.fidelity) == (2, 1.0)
    assert [o.design["x"] for o in result.front] == [2]
    assert (result.simulations, result.best_at) == (8, 8)
    assert result.spent == pytest.approx(3.7)
    (summary,) = read_trials(Dataset(tmp_path))
    assert summary.best == result.best
    assert (summary.simulations, summary.full_simulations, summary.failed) == (8, 3, 1)
    assert summary.spent == result.spent
    assert summary.better == 2
    # 0.6 is spent before the first full simulation, which ends at 1.6; the last one at 3.7.
    assert summary.curve[:, 0].tolist() == [math.inf, 4.0, 4.0, 2.0]
    assert summary.to_json()["spent"] == result.spent


def test_without_a_full_simulation_there_is_no_best(tmp_path: Path) -> None:
    env = Training(record=tmp_path, objective={"minimize": "error_rate"})
    agent = Script(env.design_space)
    agent.plan = ((0.1, (0, 2)),)
    result = agent.search(env, 20)
    env.close()
    assert (result.best, result.front, result.simulations) == (None, [], 2)
    (summary,) = read_trials(Dataset(tmp_path))
    assert summary.best is None
    assert summary.curve.tolist() == [[math.inf]]


@pytest.mark.parametrize("agent", ["random", "ga", "sobol"])
def test_agents_that_know_of_no_fidelity_search_as_ever(agent: str, tmp_path: Path) -> None:
    class Plain(Training):
        fidelities = (FULL,)

    tables, results = [], []
    for kind in (Training, Plain):
        env = kind(record=tmp_path / kind.__name__)
        results.append(make_agent(agent, env.design_space, seed=2).search(env, 9, trial_id="t"))
        env.close()
        tables.append(Dataset(tmp_path / kind.__name__).evaluations())
    assert equal_trajectories(*tables)
    assert results[0].spent == results[1].spent == results[0].simulations
    assert set(tables[0]["fidelity"].to_pylist()) == {1.0}


def test_a_dataset_from_before_there_were_fidelities_is_read(tmp_path: Path) -> None:
    env = budgeted(20, record=tmp_path)
    env.evaluate_batch(at(0, 2, 4))
    env.close()
    Dataset(tmp_path).seal()
    (path,) = (tmp_path / "trials").glob("*.parquet")
    pq.write_table(pq.read_table(path).drop_columns(["fidelities"]), path)
    (summary,) = read_trials(Dataset(tmp_path))
    assert (summary.spent, summary.simulations) == (3.0, 3)
    assert len(summary.curve) == 3
