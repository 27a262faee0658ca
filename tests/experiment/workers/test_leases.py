"""Workers come, go, die and hang; every ticket arrives once."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archgym.errors import ArchgymError, SimulationError
from archgym.simulators.executor import Arrival
from tests.experiment.workers.queues import Run, collected, wait_until

Make = Callable[..., Run]


def value(arrival: Arrival) -> float:
    assert isinstance(arrival.result, dict), arrival
    return float(arrival.result["time_ns"])


def expected(x: int, y: int) -> float:
    return 1.0 + (x - 40) ** 2 + (y - 17) ** 2 + 100.0


def finished(run: Run) -> int:
    """Results that workers have written."""
    files = (run.folder / "queues").glob("*/*.out")
    return sum(path.read_text().count('"done"') for path in files)


def holder(executor: Any, run: Run, ticket: int = 0) -> int:
    """Number of the process that simulates a ticket, once one does."""
    found: list[str] = []

    def held() -> bool:
        found[:] = [one.worker for one in executor.running() if one.ticket == ticket]
        return bool(found and found[0])

    wait_until(held)
    pids = {process.pid: process for process in run.processes}
    (pid,) = [pid for pid in pids if f"-{pid}-" in found[0]]
    return pid


def test_results_are_those_of_the_designs(run_of: Make) -> None:
    run = run_of(seconds=0.01)
    with run.driver() as executor:
        assert executor.slots == 0
        run.worker("--slots", "2")
        wait_until(lambda: executor.slots == 2)
        designs = {n: (n % 8, n // 8) for n in range(24)}
        for n, (x, y) in designs.items():
            executor.submit(n, [x, y, 0], 1.0)
        arrivals = collected(executor, 24)
        assert {one.ticket: value(one) for one in arrivals} == {
            n: expected(*design) for n, design in designs.items()
        }
        assert executor.collect(5) == [], "nothing is in flight"
        now = time.time()
        for one in arrivals:
            assert one.seconds >= 0.01
            assert now - 60 < one.started < one.ended <= now
            assert one.worker
    run.end()
    assert run.processes[0].wait(60) == 0


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_a_worker_that_is_told_to_end_gives_its_ticket_back_at_once(
    run_of: Make, told: signal.Signals
) -> None:
    run = run_of(seconds=2.0)
    with run.driver(lease_s=600.0) as executor:  # a lost lease would show: the test would hang
        first = run.worker()
        executor.submit(0, [1, 2, 0], 1.0)
        assert holder(executor, run) == first.pid
        first.send_signal(told)
        assert first.wait(60) == 128 + told
        run.worker()
        (arrival,) = collected(executor, 1)
        assert value(arrival) == expected(1, 2)
        assert f"-{run.processes[1].pid}-" in arrival.worker


def test_the_ticket_of_a_killed_worker_goes_to_another_one(run_of: Make) -> None:
    run = run_of(seconds=1.0)
    with run.driver(lease_s=1.5) as executor:
        workers = [run.worker(), run.worker()]
        wait_until(lambda: executor.slots == 2)
        executor.submit(0, [1, 2, 0], 1.0)
        killed = holder(executor, run)
        os.kill(killed, signal.SIGKILL)
        (arrival,) = collected(executor, 1)
        (other,) = [one.pid for one in workers if one.pid != killed]
        assert f"-{other}-" in arrival.worker
        wait_until(lambda: executor.slots == 1)


def test_a_late_result_counts_once(run_of: Make) -> None:
    """A stopped process loses its lease, wakes up, and finishes what another one has finished."""
    run = run_of(seconds=0.3)
    with run.driver(lease_s=1.5) as executor:
        run.worker()
        wait_until(lambda: executor.slots == 1)
        executor.submit(0, [1, 2, 0], 1.0)
        stopped = holder(executor, run)
        os.kill(stopped, signal.SIGSTOP)
        run.worker()
        assert [one.ticket for one in collected(executor, 1)] == [0]
        os.kill(stopped, signal.SIGCONT)
        wait_until(lambda: executor.slots == 2)
        executor.submit(1, [3, 4, 0], 1.0)
        executor.submit(2, [5, 6, 0], 1.0)
        arrivals = collected(executor, 2)
        assert sorted((one.ticket, value(one)) for one in arrivals) == [
            (1, expected(3, 4)),
            (2, expected(5, 6)),
        ]


def test_a_resumed_driver_gets_what_was_finished_and_what_still_runs(
    run_of: Make, tmp_path: Path
) -> None:
    log = tmp_path / "log.txt"
    run = run_of("tests.experiment.workers.queues:Logging", seconds=1.0, log=str(log))
    with run.driver("first") as executor:
        workers = [run.worker(), run.worker()]
        wait_until(lambda: executor.slots == 2)
        executor.submit(0, [0, 0, 0], 1.0)
        collected(executor, 1)
        for n in (1, 2):
            executor.submit(n, [n, n, 0], 1.0)
        holder(executor, run, 1), holder(executor, run, 2)
        executor.collect(0)
    wait_until(lambda: finished(run) == 3)  # two of them while there is no driver
    time.sleep(0.1)
    began = time.time()
    with run.driver("second") as executor:
        for ticket, x in enumerate((2, 1)):
            executor.submit(ticket, [x, x, 0], 1.0)
        arrivals = executor.collect(5)
        assert {one.ticket: value(one) for one in arrivals} == {
            0: expected(2, 2),
            1: expected(1, 1),
        }
        assert all(one.ended <= began for one in arrivals)
        executor.submit(2, [0, 0, 0], 1.0)  # was collected by the first driver
        (again,) = collected(executor, 1)
        assert again.started >= began
        executor.submit(3, [7, 7, 0], 1.0)
        holder(executor, run, 3)
    with run.driver("third") as executor:
        executor.submit(0, [7, 7, 0], 1.0)
        (adopted,) = collected(executor, 1)
        assert value(adopted) == expected(7, 7)
    begun = [line for line in log.read_text().splitlines() if line.startswith("began")]
    assert len(begun) == 5, "something was simulated a second time"
    run.end()
    assert [one.wait(60) for one in workers] == [0, 0]


def test_what_a_lost_worker_of_an_earlier_driver_had_goes_to_another_one(run_of: Make) -> None:
    run = run_of(seconds=30.0)
    with run.driver("first", lease_s=1.0) as executor:
        lost = run.worker()
        wait_until(lambda: executor.slots == 1)
        executor.submit(0, [1, 1, 0], 1.0)
        holder(executor, run, 0)
        lost.kill()
    with run.driver("second", lease_s=1.0) as executor:
        time.sleep(2.0)  # until it counts as lost
        executor.submit(0, [1, 1, 0], 1.0)
        run.worker()
        wait_until(lambda: executor.slots == 1)
        holder(executor, run, 0)


def test_what_is_given_up_is_ended_when_the_next_trial_begins(run_of: Make) -> None:
    run = run_of(seconds=600.0)
    with run.driver() as executor:
        run.worker()
        wait_until(lambda: executor.slots == 1)
        executor.submit(0, [1, 1, 0], 1.0)
        holder(executor, run)
        executor.cancel(0)
        assert executor.running() == []
        assert executor.collect(5) == []
        executor.restart()
        executor.submit(1, [2, 2, 0], 1.0)
        holder(executor, run, 1)  # the worker is free again
        executor.restart()
    assert not any(path.is_dir() for path in (run.folder / "queues").iterdir())


def test_a_result_that_was_not_taken_in_is_there_for_the_next_run(run_of: Make) -> None:
    run = run_of(seconds=0.01)
    with run.driver("first") as executor:
        run.worker()
        executor.submit(0, [1, 1, 0], 1.0)
        collected(executor, 1)
        executor.cancel(0)  # it could not be recorded
    began = time.time()
    with run.driver("second") as executor:
        executor.submit(0, [1, 1, 0], 1.0)
        (arrival,) = executor.collect(5)
        assert value(arrival) == expected(1, 1)
        assert arrival.ended <= began


def test_searches_share_the_workers(run_of: Make) -> None:
    """Two drivers in one run: workers of the one that has many go to the other."""
    run = run_of(seconds=0.05)
    with run.driver("same") as first:
        for _ in range(4):
            run.worker()
        wait_until(lambda: first.slots == 4)
        with run.driver("same") as second:
            wait_until(lambda: second.slots >= 1)
            second.submit(0, [1, 1, 0], 1.0)
            collected(second, 1)
            assert first.slots + second.slots <= 4
        wait_until(lambda: first.slots == 4)


def test_a_worker_waits_for_the_next_search(run_of: Make) -> None:
    run = run_of(seconds=0.01)
    worker = None
    for name in ("a", "b"):
        with run.driver(name) as executor:
            worker = worker or run.worker()
            executor.submit(0, [1, 1, 0], 1.0)
            collected(executor, 1)
    assert worker is not None
    assert worker.poll() is None
    assert [path.name for path in (run.folder / "queues").iterdir()] == ["run.json"]


def test_failures_time_limits_and_crashes(run_of: Make) -> None:
    helpers = "tests.experiment.runner_helpers"
    run = run_of(f"{helpers}:Moody", seconds=0.01, hangs=True, dies=True)
    with run.driver(time_limit_s=1.0, retries=1) as executor:
        run.worker()
        wait_until(lambda: executor.slots == 1)
        designs = {"fine": (1, 2), "raises": (3, 0), "hangs": (7, 1), "dies": (9, 0)}
        for n, (x, y) in enumerate(designs.values()):
            executor.submit(n, [x, y, 0], 1.0)
        arrivals = {list(designs)[one.ticket]: one for one in collected(executor, 4, 120)}
    assert value(arrivals["fine"]) == expected(1, 2)
    results = {name: arrival.result for name, arrival in arrivals.items()}
    assert isinstance(results["raises"], SimulationError)
    assert "cannot be" in str(results["raises"])
    assert isinstance(results["hangs"], TimeoutError)
    assert 1.0 <= arrivals["hangs"].seconds < 5.0
    assert isinstance(results["dies"], SimulationError)
    assert "died, 2 times" in str(results["dies"])


def test_an_environment_that_differs_is_refused_by_the_worker(run_of: Make) -> None:
    run = run_of(seconds=0.01)
    with run.driver(problem={"simulator": "another 2.0"}) as executor:
        worker = run.worker()
        assert worker.wait(60) == 2
        assert "'another 2.0' where the search runs" in run.said.read_text()
        for _ in range(2):
            assert run.worker().wait(60) == 2
        executor.submit(0, [1, 1, 0], 1.0)
        with pytest.raises(ArchgymError, match="workers in a row cannot simulate"):
            collected(executor, 1)
