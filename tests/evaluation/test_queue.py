"""Designs in flight: submitted, collected, counted and recorded once, and replayed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import archgym
from archgym.check.agents.in_flight import ShuffledExecutor
from archgym.data import Dataset, equal_trajectories
from archgym.errors import BudgetExhausted, DatasetError, InvalidValueError, NotCoveredError
from archgym.evaluation.trial_info import TrialInfo
from archgym.experiment.simulate.simulators import Simulators
from archgym.experiment.spec.simulation import SimulationSettings
from archgym.problem.fidelity import FULL, Fidelity
from archgym.problem.simulator import SimulationResult
from archgym.registry import make_agent
from archgym.simulators.executor import Arrival
from archgym.space import Designs, DesignSpace, Integer, Rule, param

TENTH = Fidelity(0.1, 0.1)


class Sums(archgym.Environment):
    """The sum of two numbers; one design in ten is not covered, some break a rule."""

    design_space = DesignSpace(
        [Integer("x", 0, 19), Integer("y", 0, 19)],
        [Rule("small", param("x") + param("y") <= 36, "too large together")],
    )
    metrics: ClassVar = (archgym.Metric("time_ns", "ns", "minimize"),)
    default_objective: ClassVar = "minimize time_ns"
    baseline: ClassVar = {"x": 1, "y": 1}
    fidelities: tuple[Fidelity, ...] = (TENTH, FULL)

    def simulate_batch_at(
        self, designs: Designs, fidelity: float
    ) -> list[tuple[SimulationResult, float]]:
        return [(self.of(design), 0.5) for design in designs]

    def of(self, design: dict[str, Any]) -> SimulationResult:
        if design["x"] % 10 == 7:
            return NotCoveredError("x is 7 or 17")
        return {"time_ns": 1.0 + design["x"] + design["y"]}


def rows(folder: Path, trial: str = "t") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Dataset(folder).evaluations(trial_id=trial).to_pylist()
    return found


def collect_all(env: archgym.Environment) -> list[tuple[int, Any]]:
    found = []
    while got := env.collect():
        found += [(ticket, outcomes[0]) for ticket, outcomes in got]
    return found


def test_every_ticket_arrives_once_and_is_recorded_before_it_is_told(tmp_path: Path) -> None:
    env = Sums(record=tmp_path / "data")
    ShuffledExecutor(env)
    env.start_trial(TrialInfo(trial_id="t"))
    designs = [{"x": i, "y": i} for i in range(18)] + [{"x": 18, "y": 19}, {"x": 3, "y": 3}]
    tickets = env.submit(designs)
    assert tickets == list(range(20))
    told: list[int] = []
    while got := env.collect():
        told += [ticket for ticket, _ in got]
        kept = [row["proposal"] for row in rows(tmp_path / "data")]
        assert kept == told
    assert sorted(told) == tickets
    assert told != tickets
    found = {row["proposal"]: row for row in rows(tmp_path / "data")}
    assert found[18]["status"] == "illegal"
    assert (found[19]["cached"], found[19]["metric.time_ns"]) == (True, 7.0)
    assert found[5]["worker"].startswith("worker ")
    assert found[19]["worker"] is None
    counts = env.evaluator
    assert (counts.simulations, counts.proposals, counts.duplicates, counts.illegal) == (
        16,
        20,
        1,
        3,
    )


def test_a_design_in_flight_is_not_sent_twice() -> None:
    env = Sums()
    executor = ShuffledExecutor(env)
    first, second = env.submit([{"x": 2, "y": 2}]), env.submit([{"x": 2, "y": 2}])
    arrived = dict(collect_all(env))
    assert executor.sent.count((2, 2)) == 1
    assert [arrived[ticket].cached for ticket in first + second] == [False, True]
    other = env.submit([{"x": 2, "y": 2}], 0.1)  # another fidelity is another simulation
    assert not dict(collect_all(env))[other[0]].cached


def test_designs_in_flight_count_against_the_budget() -> None:
    env = Sums()
    ShuffledExecutor(env)
    env.start_trial(TrialInfo(budget=3))
    assert len(env.submit([{"x": i, "y": 0} for i in range(5)])) == 3
    assert env.evaluator.exhausted
    assert env.evaluator.spent == 0
    with pytest.raises(BudgetExhausted):
        env.submit([{"x": 9, "y": 9}])
    collect_all(env)
    assert env.evaluator.spent == 3
    env.start_trial(TrialInfo(budget=1))
    env.submit([{"x": 7, "y": 0}])
    assert env.evaluator.exhausted
    collect_all(env)
    assert not env.evaluator.exhausted  # it was not covered, which costs nothing


class Joining(ShuffledExecutor):
    """A second worker joins while the first simulates; nothing ends until both have a design."""

    slots_change = True

    def collect(self, timeout_s: float | None) -> list[Arrival]:
        if timeout_s == 0 or self.most_in_flight == 2:
            return super().collect(timeout_s)
        assert timeout_s is not None, "the search would wait for the first worker"
        self.slots = 2
        return []


def test_a_worker_that_joins_gets_a_design_while_others_simulate() -> None:
    env = Sums()
    env.evaluate(env.baseline_design)
    executor = Joining(env)
    executor.slots = 1
    make_agent("random", env.design_space, seed=0).search(env, 2)
    assert executor.most_in_flight == 2


def test_no_more_designs_are_in_flight_than_there_are_slots() -> None:
    env = Sums()
    executor = ShuffledExecutor(env, slots=3)
    env.submit([{"x": i, "y": 0} for i in range(12)])
    assert executor.most_in_flight == 3
    assert len(env.evaluator.in_flight) == 12
    assert {one.worker for one in env.evaluator.in_flight if one.started is not None} == {
        one.worker for one in executor.running()
    } or len(executor.running()) == 3
    assert len(collect_all(env)) == 12
    assert executor.most_in_flight == 3
    assert env.evaluator.in_flight == []


def test_a_batch_keeps_its_order_whatever_arrives_first(tmp_path: Path) -> None:
    designs = [{"x": i % 9, "y": i} for i in range(15)] + [{"x": 0, "y": 0}, {"x": 19, "y": 19}]
    tables = []
    for seed in range(3):
        env = Sums(record=tmp_path / str(seed))
        if seed:
            ShuffledExecutor(env, seed)
        env.start_trial(TrialInfo(trial_id="t"))
        outcomes = env.evaluate_batch(designs)
        assert [o.design for o in outcomes] == designs
        tables.append(Dataset(tmp_path / str(seed)).evaluations())
    assert equal_trajectories(tables[1], tables[2])
    plain = [column for column in tables[0].column_names if column not in ("cached", "worker")]
    timing = ("simulation_s", "agent_s", "timestamp", "started")
    for name in plain:
        if name not in timing:
            assert tables[0][name].to_pylist() == tables[1][name].to_pylist(), name


def test_without_an_executor_designs_are_simulated_when_they_are_collected() -> None:
    env = Sums()
    env.submit([{"x": 1, "y": 2}, {"x": 1, "y": 2}])
    assert env.evaluator.simulations == 0
    assert [ticket for ticket, _ in collect_all(env)] == [0, 1]
    assert env.collect() == []
    with pytest.raises(InvalidValueError, match="fidelity"):
        env.submit([{"x": 1, "y": 2}], 0.3)


def searched(
    folder: Path, agent: str, *, seed: int, budget: int, resume: bool, **hyperparameters: Any
) -> None:
    env = Sums(record=folder)
    ShuffledExecutor(env, seed, changing=True)
    searcher = make_agent(agent, env.design_space, seed=5, **hyperparameters)
    try:
        searcher.search(env, budget, trial_id="t", resume=resume)
    finally:
        env.end_trial()


def cut(folder: Path, shortened: Path, n: int) -> None:
    """A copy of a dataset with the journal of a trial that was killed after ``n`` rows."""
    (shortened / "journal").mkdir(parents=True)
    (shortened / "dataset.json").write_bytes((folder / "dataset.json").read_bytes())
    (journal,) = (folder / "journal").glob("*.jsonl")
    lines = [line for line in journal.read_text().splitlines(True) if '"end"' not in line]
    (shortened / "journal" / journal.name).write_text("".join(lines[: n + 1]))


@pytest.mark.parametrize("agent", ["random", "ga", "sa", "local", "aco", "hyperband", "optuna"])
def test_a_resumed_search_goes_on_from_what_had_arrived(agent: str, tmp_path: Path) -> None:
    searched(tmp_path / "whole", agent, seed=1, budget=40, resume=False)
    whole = Dataset(tmp_path / "whole").evaluations()
    for n in (1, 17, 33):
        cut(tmp_path / "whole", tmp_path / str(n), n)
        searched(tmp_path / str(n), agent, seed=100 + n, budget=40, resume=True)
        table = Dataset(tmp_path / str(n)).evaluations()
        assert equal_trajectories(table[:n], whole[:n])
        assert table["step"].to_pylist() == list(range(table.num_rows))
        assert sorted(table["proposal"].to_pylist()) == list(range(table.num_rows))
        assert 39 < simulated(table) <= 40


@pytest.mark.parametrize("form", ["design", "stepwise"])
def test_a_resumed_learner_goes_on_whatever_number_of_workers_there_is(
    form: str, tmp_path: Path
) -> None:
    settings = {"rollout": 8, "n_envs": 2, "form": form}
    searched(tmp_path / "whole", "a2c", seed=1, budget=40, resume=False, **settings)
    whole = Dataset(tmp_path / "whole").evaluations()
    for n in (17, 33):
        cut(tmp_path / "whole", tmp_path / str(n), n)
        searched(tmp_path / str(n), "a2c", seed=n, budget=40, resume=True, **settings)
        table = Dataset(tmp_path / str(n)).evaluations()
        assert equal_trajectories(table[:n], whole[:n])
        assert simulated(table) == 40


@pytest.mark.parametrize("agent", ["random", "ga", "hyperband"])
def test_on_a_simulated_clock_a_resumed_search_is_the_same_as_one_that_was_not_killed(
    agent: str, tmp_path: Path
) -> None:
    duration = {"log_normal": {"median": 60, "sigma": 1}}
    settings = SimulationSettings(workers=5, clock="simulated", duration=duration)

    def search(folder: Path, *, resume: bool) -> pa.Table:
        env = Sums(record=folder)
        Simulators(settings).serve(env, "", {})
        make_agent(agent, env.design_space, seed=5).search(env, 40, trial_id="t", resume=resume)
        env.end_trial()
        return Dataset(folder).evaluations()

    whole = search(tmp_path / "whole", resume=False)
    for n in (1, 17, 33):
        cut(tmp_path / "whole", tmp_path / str(n), n)
        table = search(tmp_path / str(n), resume=True)
        assert equal_trajectories(table, whole)
        for column in ("started", "timestamp"):
            times, expected = (
                [one and one.timestamp() for one in found[column].to_pylist()]
                for found in (table, whole)
            )
            assert times == pytest.approx(expected, abs=1e-4)


def simulated(table: pa.Table) -> float:
    kept = [
        row["fidelity"]
        for row in table.to_pylist()
        if not row["cached"] and row["status"] != "illegal"
    ]
    return round(float(sum(kept)), 6)


def test_a_resumed_search_with_another_seed_is_refused(tmp_path: Path) -> None:
    searched(tmp_path / "whole", "random", seed=1, budget=40, resume=False)
    cut(tmp_path / "whole", tmp_path / "cut", 9)
    env = Sums(record=tmp_path / "cut")
    ShuffledExecutor(env)
    with pytest.raises(DatasetError, match="seed was 5 there and is 6 now"):
        make_agent("random", env.design_space, seed=6).search(env, 40, trial_id="t", resume=True)


def test_a_batch_that_was_killed_is_finished_by_the_next_run(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    designs = [{"x": i, "y": 1} for i in range(7)]
    env = Sums(record=folder)
    executor = ShuffledExecutor(env)
    env.start_trial(TrialInfo(trial_id="t"))
    env.evaluate_batch(designs[:2])
    arrivals = iter([1])
    collect = executor.collect

    def dying(timeout_s: float | None) -> Any:
        next(arrivals)  # the second time it raises
        return collect(timeout_s)

    executor.collect = dying  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="StopIteration"):
        env.evaluate_batch(designs[2:])
    held = {row["step"] for row in rows(folder)}
    assert {0, 1} < held < set(range(7))
    env.end_trial()
    again = Sums(record=folder)
    new = ShuffledExecutor(again, seed=3)
    again.start_trial(TrialInfo(trial_id="t", resume=True))
    again.evaluate_batch(designs[:2])
    again.evaluate_batch(designs[2:])
    assert len(new.sent) == 1 + 7 - len(held)  # the baseline too
    again.close()
    assert [row["step"] for row in rows(folder)] == list(range(7))
    assert [row["param.x"] for row in rows(folder)] == list(range(7))


def test_hours_end_a_search() -> None:
    env = Sums()
    env.start_trial(TrialInfo(hours=5 * 0.5 / 3600))
    for n in range(5):
        assert not env.evaluator.exhausted
        env.evaluate({"x": n, "y": 0})
    assert env.evaluator.exhausted
    with pytest.raises(BudgetExhausted, match="hours of simulation"):
        env.evaluate({"x": 9, "y": 0})
    with pytest.raises(InvalidValueError, match="hours"):
        TrialInfo(hours=0)


class Alone(archgym.Environment):
    """Simulates one design after another in this process; ends the process at the tenth."""

    design_space = DesignSpace([Integer("x", 0, 99)])
    metrics: ClassVar = (archgym.Metric("time_ns", "ns", "minimize"),)
    default_objective: ClassVar = "minimize time_ns"
    baseline: ClassVar = {"x": 50}

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        if design["x"] == 9:
            raise KeyboardInterrupt  # as an interrupt or a kill in the middle of a batch
        time.sleep(0.03)
        return {"time_ns": 1.0 + design["x"]}


def test_a_slow_simulator_in_this_process_loses_nothing_of_a_batch(tmp_path: Path) -> None:
    env = Alone(record=tmp_path)
    env.start_trial(TrialInfo(trial_id="t"))
    with pytest.raises(KeyboardInterrupt):
        env.evaluate_batch([{"x": x} for x in range(20)])
    assert [row["param.x"] for row in rows(tmp_path)] == list(range(9))


def test_a_search_that_was_interrupted_did_not_fail(tmp_path: Path) -> None:
    env = Alone(record=tmp_path)
    agent = make_agent("random", env.design_space, ["minimize"])
    with pytest.raises(KeyboardInterrupt):
        agent.search(env, 100, initial=[{"x": 1}, {"x": 9}])
    env.close()
    assert Dataset(tmp_path).trials()["state"].to_pylist() == ["closed"]
