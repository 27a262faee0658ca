"""Killed at any moment, a run goes on to exactly the result of an undisturbed one."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from archgym.data import Dataset
from tests.experiment.experiments import archgym, assert_equal_runs, slow, start


def kill_after(seconds: float, experiment: Path, out: Path, *options: str) -> bool:
    """Starts or resumes the run and kills it some time after it has begun to evaluate."""
    diary = out.with_name(f"{out.name}-diary")
    diary.mkdir(exist_ok=True)
    for page in diary.iterdir():
        page.unlink()
    process = start("run", experiment, "--out", out, "--resume", *options, ARCHGYM_DIARY=str(diary))
    while process.poll() is None and not list(diary.iterdir()):
        time.sleep(0.02)
    time.sleep(seconds)
    process.kill()
    process.communicate()
    if "--local" in options:
        check_that_nothing_told_is_lost(out, diary)
    return process.returncode != 0


def check_that_nothing_told_is_lost(out: Path, diary: Path) -> None:
    """The dataset can be read, has no gaps, and holds every row that an agent was told of."""
    table = Dataset(out / "datasets" / "Slow").evaluations(["trial_id", "step"])
    steps: dict[str, list[int]] = {}
    for row in table.to_pylist():
        steps.setdefault(row["trial_id"], []).append(row["step"])
    for trial, found in steps.items():
        assert found == list(range(len(found))), trial
    for page in diary.iterdir():
        told, seed = page.read_text(), page.name.rpartition("-")[2]
        if told:  # killed while it was written: the file is empty
            assert int(told) <= len(steps[f"Slow.Diary.s{seed}"])


def undisturbed(tmp_path: Path, experiment: Path) -> Path:
    code, _, err = archgym(
        "run", experiment, "--local", "--out", tmp_path / "undisturbed", "--quiet"
    )
    assert code == 0, err
    return tmp_path / "undisturbed"


def finish(experiment: Path, out: Path, *options: str) -> None:
    code, _, err = archgym("run", experiment, "--out", out, "--resume", "--quiet", *options)
    assert code == 0, err


@pytest.mark.full
def test_three_kills(tmp_path: Path) -> None:
    experiment = slow(tmp_path)
    out = tmp_path / "run"
    moments = random.Random(0)
    kills = sum(kill_after(moments.uniform(0, 0.6), experiment, out, "--local") for _ in range(3))
    assert kills
    finish(experiment, out, "--local")
    assert_equal_runs(undisturbed(tmp_path, experiment), out)


@pytest.mark.nightly
def test_twenty_kills(tmp_path: Path) -> None:
    experiment = slow(tmp_path, budget=400, seeds=4)
    out = tmp_path / "run"
    moments = random.Random(1)
    kills = sum(kill_after(moments.uniform(0, 0.6), experiment, out, "--local") for _ in range(20))
    assert kills == 20
    finish(experiment, out, "--local")
    assert_equal_runs(undisturbed(tmp_path, experiment), out)


@pytest.mark.nightly
def test_five_kills_through_ray(tmp_path: Path) -> None:
    experiment = slow(tmp_path, budget=600, seeds=4)
    out = tmp_path / "run"
    moments = random.Random(2)
    kills = sum(
        kill_after(moments.uniform(0, 2.0), experiment, out, "--cpus", "2") for _ in range(5)
    )
    assert kills >= 3
    finish(experiment, out, "--cpus", "2")
    assert_equal_runs(undisturbed(tmp_path, experiment), out)
