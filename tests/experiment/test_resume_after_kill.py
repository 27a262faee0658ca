"""A run goes on from wherever it was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from archgym.data import Dataset
from archgym.experiment import RunOptions, run_experiment
from tests.experiment.experiments import HELPERS, archgym, assert_equal_runs, small, start, written

QUIET = RunOptions(local=True, quiet=True)
RESUME = RunOptions(local=True, quiet=True, resume=True)


def only_folder(dataset: Path) -> None:
    for path in sorted(dataset.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def unfinished_sidecar(dataset: Path) -> None:
    only_folder(dataset)
    (dataset / ".sidecar-x1").write_text('{"format": 1, "design')


def no_dataset(dataset: Path) -> None:
    only_folder(dataset)
    dataset.rmdir()


@pytest.mark.parametrize("left", [only_folder, unfinished_sidecar, no_dataset])
def test_killed_before_a_dataset_has_its_sidecar(
    left: Callable[[Path], None], tmp_path: Path
) -> None:
    run_experiment(small(), tmp_path / "whole", QUIET)
    run_experiment(small(), tmp_path / "run", QUIET)
    for name in ("results.json", "best_so_far.png"):
        (tmp_path / "run" / name).unlink()
    for path in (tmp_path / "run" / "log").iterdir():
        path.unlink()
    left(tmp_path / "run" / "datasets" / "Conformance-v0")
    run_experiment(small(), tmp_path / "run", RESUME)
    assert_equal_runs(tmp_path / "run", tmp_path / "whole")


def test_what_ended_while_the_agent_computed_is_not_lost(tmp_path: Path) -> None:
    log, ponder, out = tmp_path / "log", tmp_path / "ponder", tmp_path / "run"
    arguments = {"seconds": 1.2, "log": str(log), "pace": 0}
    experiment = written(
        tmp_path,
        budget=5,
        seeds=1,
        environments=[{"id": f"{HELPERS}:Uneven", "arguments": arguments}],
        agents=[{"name": f"{HELPERS}:Pondering"}],
        simulation={"workers": 3},
    )
    ponder.touch()
    driver = start("run", experiment, "--local", "--out", out, ARCHGYM_PONDER=str(ponder))
    kill_after_three(driver, log)
    code, _, error = archgym("run", experiment, "--local", "--out", out, "--resume")
    assert code == 0, error
    simulated = Counter(line.partition(" ")[2] for line in log.read_text().splitlines())
    assert set(simulated.values()) == {1}
    assert len(simulated) == 1 + 5
    assert not (out / "finished").exists()


SEARCH = f"""
import sys
from archgym.experiment import environment_with_workers
from archgym.registry import make_agent

if __name__ == "__main__":
    found, log = sys.argv[1:]
    settings = {{"workers": 3}}
    with environment_with_workers(
        "{HELPERS}:Uneven", settings, record=found, seconds=1.2, log=log, pace=0.02
    ) as env:
        make_agent("{HELPERS}:Pondering", env.design_space, seed=3).search(env, 5)
"""


def test_in_python_too_what_ended_while_the_agent_computed_is_not_lost(tmp_path: Path) -> None:
    log, ponder, found = tmp_path / "log", tmp_path / "ponder", tmp_path / "found"
    script = tmp_path / "search.py"
    script.write_text(SEARCH)
    command = [sys.executable, str(script), str(found), str(log)]
    folder = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": folder, "ARCHGYM_PONDER": str(ponder)}
    ponder.touch()
    kill_after_three(subprocess.Popen(command, env=environment, text=True), log)
    columns = [f"param.{name}" for name in "xyz"]
    recorded = [
        " ".join(str(row[name]) for name in columns)
        for row in Dataset(found).evaluations(columns).to_pylist()
    ]
    assert len(recorded) < 3
    assert len(list((found / "finished").rglob("*.json"))) >= 3 - len(recorded)
    ponder.unlink()
    subprocess.run(command, env=environment, check=True, timeout=60)
    simulated = Counter(line.partition(" ")[2] for line in log.read_text().splitlines())
    assert {design for design, times in simulated.items() if times > 1} <= {"0 0 1", *recorded}
    assert len(simulated) == 1 + 5
    assert not (found / "finished").exists()


def kill_after_three(driver: subprocess.Popen[str], log: Path) -> None:
    """Kills a search when the baseline and three designs have been simulated."""
    until = time.monotonic() + 60
    while not (log.exists() and len(log.read_text(encoding="utf-8").splitlines()) == 1 + 3):
        assert driver.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)
    time.sleep(0.5)
    driver.kill()
    driver.communicate()
