"""Killed at any moment, a run goes on to exactly the result of an undisturbed one."""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from archgym.data import Dataset
from tests.experiment.experiments import HELPERS, archgym, assert_equal_runs, slow, start, written


def kill_after(seconds: float, experiment: Path, out: Path, *options: str) -> bool:
    """Starts or resumes the run and kills it some time after it has begun to evaluate."""
    diary = out.with_name(f"{out.name}-diary")
    diary.mkdir(exist_ok=True)
    for page in diary.iterdir():
        page.unlink()
    process = start(
        "run", experiment, "--out", out, "--resume", "--begin", *options, ARCHGYM_DIARY=str(diary)
    )
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
    code, _, err = archgym(
        "run",
        experiment,
        "--out",
        out,
        "--resume",
        "--begin",
        "--quiet",
        *options,
        limit_s=1200,
    )
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
@pytest.mark.timeout(3600)
def test_fifty_kills(tmp_path: Path) -> None:
    experiment = slow(tmp_path, budget=1000, seeds=4)
    out = tmp_path / "run"
    moments = random.Random(1)
    kills = sum(kill_after(moments.uniform(0, 0.6), experiment, out, "--local") for _ in range(50))
    assert kills == 50
    finish(experiment, out, "--local")
    assert_equal_runs(undisturbed(tmp_path, experiment), out)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_fifty_kills_through_ray(tmp_path: Path) -> None:
    experiment = slow(tmp_path, budget=4000, seeds=4)
    out = tmp_path / "run"
    moments = random.Random(2)
    kills = sum(
        kill_after(moments.uniform(0, 2.0), experiment, out, "--cpus", "2") for _ in range(50)
    )
    assert kills == 50
    finish(experiment, out, "--cpus", "2")
    assert_equal_runs(undisturbed(tmp_path, experiment), out)


def kill_while_simulations_run(
    tmp_path: Path, kills: int, budget: int, seed: int, *, node: bool = False
) -> None:
    """Kills runs while eight processes simulate, and then lets the run finish.

    The simulators write down each simulation that has ended.

    Args:
        tmp_path: folder of the run.
        kills: how many runs are killed.
        budget: of each of three trials.
        seed: of the moments.
        node: kill a run and its processes at one moment; else one of the processes, and some time
            later the run.
    """
    log, out, moments = tmp_path / "ended", tmp_path / "run", random.Random(seed)
    experiment = written(
        tmp_path,
        budget=budget,
        seeds=1,
        environments=[{"id": f"{HELPERS}:Uneven", "arguments": {"log": str(log), "pace": 0.004}}],
        agents=[{"name": "random"}, {"name": "ga"}, {"name": "local"}],
        simulation={"workers": 8},
    )
    killed = 0
    while killed < kills:
        before = set(out.glob("datasets/*/journal/*"))
        known = len(log.read_text().splitlines()) if log.exists() else 0
        process = start(
            "run", experiment, "--out", out, "--resume", "--begin", "--local", "--quiet"
        )
        while process.poll() is None and not set(out.glob("datasets/*/journal/*")) - before:
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.4))
        if not node:
            kill_a_worker(process.pid, moments)
        time.sleep(moments.uniform(0, 0.4))
        if node:
            kill_with_its_processes(process.pid)
        else:
            process.kill()
        _, err = process.communicate()
        assert "Traceback" not in err, err
        if process.returncode == 0:
            break
        killed += 1
        check_that_every_ended_simulation_is_kept(out, log, known)
    assert killed == kills
    finish(experiment, out, "--local")
    rows = Dataset(out / "datasets" / "Uneven").evaluations().to_pylist()
    simulated = [row for row in rows if not row["cached"] and row["status"] == "ok"]
    keys = ("trial_id", "param.x", "param.y", "param.z")
    assert (
        len({tuple(row[key] for key in keys) for row in simulated}) == len(simulated) == 3 * budget
    )
    # The baseline once a start, and at most what was in flight is simulated again: a killed worker
    # may have ended its simulation without a chance to say so.
    assert len(log.read_text().splitlines()) <= len(simulated) + (kills + 1) + (8 + 1) * kills


def kill_a_worker(driver: int, moments: random.Random) -> None:
    """Kills one of the processes that simulate, if there are any."""
    with contextlib.suppress(psutil.Error, IndexError):
        children = psutil.Process(driver).children()
        moments.choice([c for c in children if "worker_process" in " ".join(c.cmdline())]).kill()


def kill_with_its_processes(driver: int) -> None:
    """Kills a run and all processes that it started, as when their machine goes down."""
    process = psutil.Process(driver)
    for one in [process, *process.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()


def check_that_every_ended_simulation_is_kept(out: Path, log: Path, known: int) -> None:
    """What a run had simulated before it was killed is in the dataset.

    A process gets its next design when the result of the one before is in the dataset. So of each
    process, all but the last design that it had ended are there.

    Args:
        out: folder of the run.
        log: what the simulators wrote.
        known: lines that it had before the run.
    """
    table = Dataset(out / "datasets" / "Uneven").evaluations().to_pylist()
    kept = Counter(tuple(int(row[f"param.{name}"]) for name in "xyz") for row in table)
    ended: dict[str, list[tuple[int, ...]]] = {}
    for line in log.read_text(encoding="utf-8").splitlines()[known:]:
        process, *design = line.split()
        ended.setdefault(process, []).append(tuple(map(int, design)))
    for designs in ended.values():
        for one in designs[:-1]:
            assert kept[one] or one == (0, 0, 1), one  # the baseline has no row


def test_the_readme_promises_what_is_tested_here() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    promise = (
        "each result is kept when its simulation ends: a run that is killed loses only what was"
    )
    assert f"{promise} running" in " ".join(readme.split())


@pytest.mark.full
def test_five_kills_lose_no_simulation_that_had_ended(tmp_path: Path) -> None:
    kill_while_simulations_run(tmp_path, kills=5, budget=60, seed=3)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_fifty_kills_lose_no_simulation_that_had_ended(tmp_path: Path) -> None:
    kill_while_simulations_run(tmp_path, kills=50, budget=1000, seed=4)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_fifty_ends_of_a_node_lose_no_simulation_that_had_ended(tmp_path: Path) -> None:
    kill_while_simulations_run(tmp_path, kills=50, budget=1000, seed=6, node=True)
