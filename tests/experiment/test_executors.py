"""Executors: processes on this machine, which die and take too long, and a simulated clock."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psutil
import pytest

from archgym.errors import ArchgymError, InvalidValueError, SimulationError, UnknownNameError
from archgym.experiment.simulate.durations import Durations
from archgym.experiment.simulate.process_executor import ProcessExecutor
from archgym.experiment.simulate.simulators import Simulators
from archgym.experiment.spec.simulation import SimulationSettings
from archgym.problem.fidelity import FULL, Fidelity
from archgym.registry import make, make_agent
from archgym.simulators.executor import Arrival, Attempts, Executor
from archgym.simulators.recall import CachedExecutor
from archgym.simulators.shared_cache import SimulationCache
from tests.experiment.experiments import HELPERS


@pytest.fixture
def opened() -> Iterator[list[Executor]]:
    made: list[Executor] = []
    yield made
    for executor in made:
        executor.close()


def pool(
    opened: list[Executor], workers: int, attempts: Attempts, name: str = "Moody", **arguments: Any
) -> ProcessExecutor:
    executor = ProcessExecutor(f"{HELPERS}:{name}", {"seconds": 0, **arguments}, workers, attempts)
    opened.append(executor)
    return executor


def gather(executor: Executor, n: int) -> dict[int, Arrival]:
    found: dict[int, Arrival] = {}
    while len(found) < n:
        for arrival in executor.collect(60.0):
            assert arrival.ticket not in found
            found[arrival.ticket] = arrival
    return found


def test_processes_give_every_result_once_and_the_fast_ones_first(opened: list[Executor]) -> None:
    executor = pool(opened, 2, Attempts(), "Uneven")
    assert executor.slots == 2
    used: set[str] = set()
    tickets = iter(range(100, 200))
    while len(used) < 2:  # until both have started
        for ticket in (next(tickets), next(tickets)):
            executor.submit(ticket, [1, 0, 0], 1.0)  # x is how many tenths of a second it takes
        used |= {arrival.worker for arrival in gather(executor, 2).values()}
    for ticket, x in ((12, 9), (13, 0), (14, 1)):
        executor.submit(ticket, [x, 0, 0], 1.0)
    running = executor.running()
    assert [one.ticket for one in running] == [12, 13, 14]
    assert [bool(one.worker) for one in running] == [True, True, False]
    order = [arrival.ticket for arrival in _until_empty(executor)]
    assert order == [13, 14, 12]
    assert executor.collect(None) == []
    assert executor.running() == []


def _until_empty(executor: Executor) -> Iterator[Arrival]:
    while found := executor.collect(None):
        yield from found


def test_a_worker_that_is_killed_costs_one_attempt(opened: list[Executor]) -> None:
    executor = pool(opened, 1, Attempts(retries=1), "Uneven")
    executor.submit(1, [0, 0, 0], 1.0)
    gather(executor, 1)
    for times, expected in ((1, dict), (2, SimulationError)):
        executor.submit(10 + times, [5, 0, 0], 1.0)
        killed: set[int] = set()
        while len(killed) < times:
            executor.collect(0.3)
            busy = any(one.worker for one in executor.running())
            for child in psutil.Process().children():
                fresh = child.pid not in killed and "worker_process" in " ".join(child.cmdline())
                if busy and fresh and executor.running():
                    os.kill(child.pid, signal.SIGKILL)
                    killed.add(child.pid)
                    time.sleep(0.1)
        (arrival,) = gather(executor, 1).values()
        assert isinstance(arrival.result, expected), arrival
    assert str(arrival.result) == "the simulating process died, 2 times in all"


def test_a_time_limit_ends_one_simulation_and_nothing_else(opened: list[Executor]) -> None:
    executor = pool(opened, 2, Attempts(time_limit_s=0.5), "Uneven")
    for ticket, x in ((1, 60), (2, 0), (3, 1)):
        executor.submit(ticket, [x, 0, 0], 1.0)
    found = gather(executor, 3)
    assert isinstance(found[1].result, TimeoutError)
    assert str(found[1].result) == "the simulation did not end within 0.5 s"
    assert isinstance(found[2].result, dict)
    assert isinstance(found[3].result, dict)


def test_what_concerns_every_design_is_raised(opened: list[Executor]) -> None:
    executor = ProcessExecutor("Nothing-v0", {}, 2, Attempts())
    opened.append(executor)
    executor.submit(1, [0], 1.0)
    with pytest.raises(ArchgymError, match="Nothing-v0"):
        executor.collect(60.0)


def test_a_cancelled_ticket_never_arrives(opened: list[Executor]) -> None:
    executor = pool(opened, 1, Attempts(), "Uneven")
    executor.submit(1, [3, 0, 0], 1.0)
    executor.submit(2, [1, 0, 0], 1.0)
    executor.submit(3, [2, 0, 0], 1.0)
    executor.cancel(3)
    executor.cancel(1)
    executor.cancel(99)
    assert set(gather(executor, 1)) == {2}
    assert executor.collect(0.2) == []


def test_a_cache_keeps_each_result_when_it_arrives(tmp_path: Path, opened: list[Executor]) -> None:
    env = make(f"{HELPERS}:Uneven")
    cache = SimulationCache(tmp_path / "cache.sqlite")
    inner = pool(opened, 1, Attempts(), "Uneven")
    executor = CachedExecutor(inner, env.description, cache)
    executor.submit(1, [0, 1, 1], 1.0)
    executor.submit(2, [2, 1, 1], 1.0)
    (first,) = executor.collect(None)
    assert (first.ticket, len(cache)) == (1, 1)
    gather(executor, 1)
    assert len(cache) == 2
    executor.submit(3, [0, 1, 1], 1.0)
    (again,) = executor.collect(None)
    assert (again.result, again.worker) == (first.result, "")


def test_what_a_cache_holds_outlives_an_error_of_the_executor(
    tmp_path: Path, opened: list[Executor]
) -> None:
    env = make(f"{HELPERS}:Uneven")
    cache = SimulationCache(tmp_path / "cache.sqlite")
    filled = CachedExecutor(pool(opened, 1, Attempts(), "Uneven"), env.description, cache)
    filled.submit(1, [0, 1, 1], 1.0)
    gather(filled, 1)
    broken = Mock(collect=Mock(side_effect=[ArchgymError("no workers"), []]), now=lambda: 0.0)
    executor = CachedExecutor(broken, env.description, cache)
    executor.submit(2, [0, 1, 1], 1.0)
    with pytest.raises(ArchgymError, match="no workers"):
        executor.collect(60.0)
    assert [arrival.ticket for arrival in executor.collect(60.0)] == [2]


# -- a simulated clock -----------------------------------------------------------------------------


def on_clock(workers: int, duration: Any, agent: str = "ga", budget: int = 60, **more: Any) -> Any:
    env = make("Conformance-v0", space="finite")
    settings = SimulationSettings(workers=workers, clock="simulated", duration=duration, **more)
    Simulators(settings).serve(env, "Conformance-v0", {})
    told: list[tuple[Sequence[int], float]] = []
    env.on_evaluated = lambda outcomes: told.append(
        (tuple(outcomes.designs.codes[0].tolist()), env.evaluator.now)
    )
    make_agent(agent, env.design_space, seed=3).search(env, budget)
    return env, told


def test_a_simulated_clock_is_the_same_every_time_and_faster_with_more_workers() -> None:
    duration = {"log_normal": {"median": 3600, "sigma": 1}}
    began = time.perf_counter()
    env, told = on_clock(8, duration)
    assert time.perf_counter() - began < 60.0
    assert on_clock(8, duration)[1] == told
    assert [now for _, now in told] == sorted(now for _, now in told)
    alone, _ = on_clock(1, duration)
    assert alone.evaluator.now == pytest.approx(alone.evaluator.spent_hours * 3600)
    assert env.evaluator.now < 0.3 * alone.evaluator.now


def test_one_worker_searches_as_no_executor_does() -> None:
    env = make("Conformance-v0", space="finite")
    plain: list[Any] = []
    env.on_evaluated = lambda outcomes: plain.extend(map(tuple, outcomes.designs.codes.tolist()))
    make_agent("ga", env.design_space, seed=3).search(env, 60)
    clocked = make("Conformance-v0", space="finite")
    settings = SimulationSettings(workers=1, clock="simulated", duration=5)
    Simulators(settings).serve(clocked, "Conformance-v0", {})
    found: list[Any] = []
    clocked.on_evaluated = lambda outcomes: found.extend(
        map(tuple, outcomes.designs.codes.tolist())
    )
    make_agent("ga", clocked.design_space, seed=3).search(clocked, 60)
    assert found == plain
    assert clocked.evaluator.now == 300.0


def test_a_time_limit_holds_on_a_simulated_clock() -> None:
    env, _ = on_clock(2, {"uniform": {"low": 1, "high": 9}}, "random", 40, time_limit_s=5.0)
    statuses = [env.evaluate(env.design_space.design(codes)) for codes, _ in _[:10]]
    assert {outcome.status for outcome in statuses} >= {"timeout"}


def test_durations_come_from_a_number_a_metric_or_a_distribution() -> None:
    tenth = Fidelity(0.1, 0.1)
    levels = (tenth, FULL)
    assert Durations(5, levels, {}).of([1], 0.1, {}) == pytest.approx(0.5)
    baseline = {"time_ns": 40.0}
    by_metric = Durations("time_ns", levels, baseline)
    assert by_metric.of([1], 1.0, {"time_ns": 7.0}) == 7.0
    assert by_metric.of([1], 1.0, SimulationError("broken")) == 40.0
    scaled = Durations({"metric": {"name": "time_ns", "times": 0.5}}, levels, baseline)
    assert scaled.of([1], 1.0, {"time_ns": 7.0}) == 3.5
    drawn = Durations({"log_normal": {"median": 60, "sigma": 1, "seed": 4}}, levels, {})
    logs = sorted(drawn.of([i, -1], 1.0, {}) for i in range(400))
    assert 50 < logs[200] < 72
    assert logs[-1] / logs[0] > 50
    with pytest.raises(UnknownNameError, match="time_ns"):
        Durations("time_n", levels, baseline)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"clock": "simulated"}, "needs a duration"),
        ({"duration": 5}, "needs clock: simulated"),
        ({"clock": "simulated", "duration": -1}, "seconds above 0"),
        ({"clock": "simulated", "duration": {"log_normal": {"mean": 5}}}, "median"),
        ({"clock": "simulated", "duration": {"uniform": {"low": 5, "high": 4}}}, "above low"),
        ({"clock": "simulated", "duration": 5, "cache": "x"}, "no cache"),
    ],
)
def test_wrong_settings_are_explained(given: dict[str, Any], message: str) -> None:
    from tests.experiment.experiments import small

    with pytest.raises(InvalidValueError, match=message):
        small(simulation=given)
