"""Drivers and workers are killed again and again; the run ends with every design once."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import yaml

from archgym.data import Dataset
from archgym.experiment.folder.lock import acquired
from tests.experiment.workers.queues import wait_until

ENDS = (signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1)


class Chaos:
    """A run whose driver and workers are killed."""

    def __init__(self, folder: Path, seed: int, workers: int, budget: int, agents: list[str]):
        self.random = random.Random(seed)
        self.folder, self.log = folder / "run", folder / "log.txt"
        self.file = folder / "experiment.yaml"
        environment = {
            "id": "tests.experiment.workers.queues:Logging",
            "arguments": {"log": str(self.log), "seconds": 0.2},
        }
        self.trials, self.budget = len(agents), budget
        experiment = {
            "name": "killed",
            "budget": budget,
            "environments": [environment],
            "agents": [{"name": name} for name in agents],
            "simulation": {"executor": "workers", "lease_s": 3, "retries": 0},
        }
        self.file.write_text(yaml.safe_dump(experiment))
        self.folder.mkdir()
        self.said = (folder / "said.txt").open("a")
        self.kills = Counter[str]()
        self.workers = [self._worker() for _ in range(workers)]
        self.driver = self._driver()

    def end_hosts(self, kills: int) -> None:
        """Kills half of the workers at one moment, now and then with the driver."""
        done = 0
        wait_until(self.log.exists, 300)
        while done < kills and self.driver.poll() is None:
            self._wait_for_simulations()
            time.sleep(self.random.uniform(0.0, 0.4))
            half = self.random.sample(range(len(self.workers)), len(self.workers) // 2)
            for number in half:
                self.workers[number].kill()
            done += self._kill_driver() if self.random.random() < 0.3 else 1
            self.kills["worker"] += len(half)
            for number in half:
                self.workers[number].wait()
                self.workers[number] = self._worker()
        assert done == kills

    def disturb(self, kills: int) -> None:
        """Kills a driver or a worker now and then, and starts another one."""
        done = 0
        wait_until(self.log.exists, 300)
        while done < kills and self.driver.poll() is None:
            time.sleep(self.random.uniform(0.3, 1.5))
            if self.random.random() < 0.3:
                done += self._kill_driver()
            else:
                done += 1
                number = self.random.randrange(len(self.workers))
                how = self.random.choice(ENDS)
                self.workers[number].send_signal(how)
                self.kills["worker"] += 1
                if how is not signal.SIGKILL:
                    # Before it has imported anything, it ends as any process.
                    assert self.workers[number].wait(30) in (128 + how, -how)
                self.workers[number].wait()
                self.workers[number] = self._worker()
        assert done == kills

    def finish(self) -> None:
        assert self.driver.wait(1200) == 0
        assert [worker.wait(60) for worker in self.workers] == [0] * len(self.workers)

    def check(self) -> None:
        (path,) = (self.folder / "datasets").iterdir()
        rows = Dataset(path).evaluations().to_pylist()
        for trial in {row["trial_id"] for row in rows}:
            mine = [row for row in rows if row["trial_id"] == trial]
            assert sorted(row["step"] for row in mine) == list(range(len(mine)))
            new = [row for row in mine if row["status"] == "ok" and not row["cached"]]
            designs = {tuple(row[f"param.{name}"] for name in "xyz") for row in new}
            assert len(new) == len(designs) == self.budget, "a design is missing or there twice"
            # The first design is the baseline, which was simulated before the trial.
            assert [bool(row["worker"]) for row in new] == [False] + [True] * (len(new) - 1)
            for row in new:
                x, y, z = (row[f"param.{name}"] for name in "xyz")
                assert row["metric.time_ns"] == 1.0 + (x - 40) ** 2 + (y - 17) ** 2 + 100.0 / z
        assert len({row["trial_id"] for row in rows}) == self.trials
        # One baseline each time that a driver starts; a killed worker loses what it was doing.
        needed = self.trials * (self.budget - 1)
        assert self._begun() <= needed + 1 + self.kills["driver"] + self.kills["worker"]

    def close(self) -> None:
        for process in [self.driver, *self.workers]:
            process.kill()
            process.wait()
        self.said.close()

    def _worker(self) -> subprocess.Popen[bytes]:
        return self._start("worker", str(self.folder))

    def _driver(self) -> subprocess.Popen[bytes]:
        return self._start(
            "run", str(self.file), "--local", "--resume", "--begin", "--out", str(self.folder)
        )

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "archgym", *arguments]
        return subprocess.Popen(command, stdout=self.said, stderr=self.said)

    def _kill_driver(self) -> int:
        """Kills the driver once it searches; whether it did."""
        if not any((self.folder / "log").glob("*.jsonl")) or not self._locked():
            return 0
        self.driver.kill()
        self.driver.wait()
        self.kills["driver"] += 1
        time.sleep(self.random.choice((0.0, 1.0)))
        self.driver = self._driver()
        return 1

    def _wait_for_simulations(self) -> None:
        """Waits until as many simulations have begun as there are workers, or all are over."""
        enough = self._begun() + len(self.workers)
        wait_until(lambda: self._begun() >= enough or self.driver.poll() is not None, 300)

    def _begun(self) -> int:
        return sum(line.startswith("began") for line in self.log.read_text().splitlines())

    def _locked(self) -> bool:
        with (self.folder / ".lock").open("rb+") as file:
            return not acquired(file.fileno(), 0)


def run(
    folder: Path,
    seed: int,
    workers: int,
    budget: int,
    agents: list[str],
    kills: int,
    *,
    hosts: bool,
) -> None:
    chaos = Chaos(folder, seed, workers, budget, agents)
    try:
        if hosts:
            chaos.end_hosts(kills)
        else:
            chaos.disturb(kills)
        chaos.finish()
        chaos.check()
    finally:
        chaos.close()
        sys.stderr.write((folder / "said.txt").read_text())


@pytest.mark.parametrize("hosts", [False, True])
def test_some_kills(tmp_path: Path, hosts: bool) -> None:
    run(tmp_path, 0, workers=3, budget=60, agents=["random"], kills=3 if hosts else 5, hosts=hosts)


@pytest.mark.full
@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("hosts", [False, True])
def test_fifty_kills(tmp_path: Path, hosts: bool) -> None:
    agents, budget = (["random", "ga"], 2000) if hosts else (["random", "ga", "gp"], 1200)
    run(tmp_path, 1, workers=8, budget=budget, agents=agents, kills=50, hosts=hosts)
