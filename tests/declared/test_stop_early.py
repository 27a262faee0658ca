"""Runs are stopped early whatever simulates, and a kill loses nothing of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from archgym.data import Dataset, validate
from tests.declared.conftest import Write
from tests.declared.test_partial import DECLARATION, SIMULATOR

BUDGET = 40
COMMAND = (sys.executable, "-m", "archgym")


@pytest.fixture
def experiment(write: Write, tmp_path: Path) -> Path:
    """The experiment's file, beside the environment's."""
    (tmp_path / "simulator.txt").write_text(SIMULATOR)
    write(text=DECLARATION)
    return tmp_path / "experiment.yaml"


def started(*words: str | Path, pause: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *map(str, words)],
        env={**os.environ, "PAUSE": pause},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def ended(process: subprocess.Popen[str]) -> str:
    said = process.communicate(timeout=300)[0]
    assert process.returncode == 0, said
    return said


def written(path: Path, **simulation: Any) -> None:
    (name,) = [one.name for one in path.parent.glob("*.yaml") if one != path]
    data = {
        "name": "stop",
        "budget": BUDGET,
        "baseline_first": False,
        "environments": [{"id": name}],
        "agents": [{"name": "ga"}],
        "simulation": {"workers": 2, "stop_early": True, **simulation},
    }
    path.write_text(yaml.safe_dump(data), encoding="utf-8")


def only_dataset(run: Path) -> Dataset:
    (folder,) = (run / "datasets").iterdir()
    return Dataset(folder)


def check(run: Path) -> None:
    """All designs are there once, some were stopped, and none of them is better than the best."""
    dataset = only_dataset(run)
    table = dataset.evaluations().to_pylist()
    new = [row for row in table if not row["cached"]]
    assert len({(row["param.x"], row["param.y"]) for row in new}) == len(new) == BUDGET
    finals = {
        status: [
            10 + (row["param.x"] - 7) ** 2 + (row["param.y"] - 3) ** 2
            for row in new
            if row["status"] == status
        ]
        for status in ("ok", "stopped")
    }
    assert len(finals["stopped"]) >= 8
    assert min(finals["ok"]) < min(finals["stopped"])
    assert all(one.passed for one in validate(dataset))


@pytest.mark.full
@pytest.mark.parametrize(
    "how", ["processes", pytest.param("ray", marks=pytest.mark.nightly), "workers"]
)
def test_runs_are_stopped_whatever_simulates(how: str, experiment: Path, tmp_path: Path) -> None:
    changes: dict[str, dict[str, Any]] = {
        "processes": {},
        "ray": {"workers": 1},
        "workers": {"executor": "workers"},
    }
    written(experiment, **changes[how])
    run = tmp_path / "run"
    run.mkdir()
    flags = ["-q"] if how == "ray" else ["-q", "--local"]
    workers = []
    if how == "workers":
        workers = [started("worker", run, "--max-wait", "60", "-q") for _ in range(2)]
    try:
        ended(started("run", experiment, "--out", run, *flags))
        for worker in workers:
            ended(worker)
    finally:
        for worker in workers:
            worker.kill()
    check(run)


@pytest.mark.nightly
def test_a_kill_loses_no_run_that_had_ended_or_was_stopped(
    experiment: Path, tmp_path: Path
) -> None:
    written(experiment)
    run, before = tmp_path / "run", 0
    for _ in range(4):
        words = ("run", experiment, "--out", run, "--local", "-q", "--resume", "--begin")
        old = set((run / "datasets").glob("*/journal/*.jsonl"))
        process = started(*words, pause="0.01")
        until = time.monotonic() + 120
        while time.monotonic() < until and process.poll() is None:
            held = set((run / "datasets").glob("*/journal/*.jsonl")) - old
            if sum(path.read_bytes().count(b"\n[") for path in held) >= 6:
                break
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if (run / "datasets").exists():
            rows = len(only_dataset(run).evaluations())
            assert rows >= before
            before = rows
    assert before >= 12
    ended(started("run", experiment, "--out", run, "--local", "-q", "--resume"))
    check(run)
