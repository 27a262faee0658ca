"""The baseline is simulated as every design: within limits, tried again, from the cache, once."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from archgym.data import Dataset
from archgym.errors import ArchgymError
from archgym.experiment import RunOptions, run_experiment
from archgym.simulators.shared_cache import SimulationCache
from tests.experiment.experiments import HELPERS, assert_equal_runs, small

LOCAL = RunOptions(local=True, quiet=True)
BASELINE = {"x": 0, "y": 0, "z": 1}
IN_PROCESS = ("slow", "crashes")
ENDS_A_PROCESS = ("hangs", "dies")


def settings(folder: Path, wrong: str, times: int = 1, **simulation: Any) -> dict[str, Any]:
    """An experiment of two trials on an environment that begins badly."""
    folder.mkdir(exist_ok=True)
    arguments = {"seconds": 0, "folder": str(folder), "wrong": wrong, "times": times}
    return {
        "budget": 4,
        "agents": [{"name": "random"}],
        "environments": [{"id": f"{HELPERS}:Starting", "arguments": arguments}],
        "simulation": simulation,
    }


def simulated(folder: Path) -> Sequence[dict[str, Any]]:
    """Designs whose simulation came to its end, in all processes."""
    return [json.loads(line) for line in (folder / "done").read_text().splitlines()]


@pytest.mark.full
@pytest.mark.parametrize("wrong", [*IN_PROCESS, *ENDS_A_PROCESS])
def test_a_baseline_that_goes_wrong_once_loses_nothing(tmp_path: Path, wrong: str) -> None:
    cache = tmp_path / "simulations.sqlite"
    limits: dict[str, Any] = {"retries": 1, "cache": str(cache)}
    if wrong in ENDS_A_PROCESS:
        limits["time_limit_s"] = 1.0
    run = small(**settings(tmp_path / "one", wrong, **limits))
    result = run_experiment(run, tmp_path / "run", LOCAL)
    assert result.failures == {}
    assert result.totals.states == {"finished": 2}
    assert simulated(tmp_path / "one").count(BASELINE) == 1
    # All that was simulated is in the cache, the baseline too: a second run simulates nothing.
    held = SimulationCache(cache)
    assert len(held) == len(simulated(tmp_path / "one"))
    held.close()
    again = run_experiment(run, tmp_path / "again", LOCAL)
    assert again.failures == {}
    assert len(simulated(tmp_path / "one")) == len({str(d) for d in simulated(tmp_path / "one")})
    assert_equal_runs(tmp_path / "run", tmp_path / "again")


def test_without_a_cache_too_it_is_simulated_once_a_run(tmp_path: Path) -> None:
    run = small(**settings(tmp_path / "one", "crashes", workers=2))
    run_experiment(run, tmp_path / "run", LOCAL)
    assert simulated(tmp_path / "one").count(BASELINE) == 1
    path = next((tmp_path / "run" / "datasets").iterdir())
    baselines = Dataset(path).trials()["baseline"].to_pylist()
    # 1 + 40**2 + 17**2 + 100 ns and 1 + 1 um2, by the closed form
    assert [json.loads(text) for text in baselines] == 2 * [{"time_ns": 1990.0, "area_um2": 2.0}]


@pytest.mark.parametrize("limits", [{}, {"workers": 2}])
def test_trials_that_begin_with_it_do_not_simulate_it_again(
    tmp_path: Path, limits: dict[str, Any]
) -> None:
    described = settings(tmp_path / "one", "nothing", **limits) | {"baseline_first": True}
    result = run_experiment(small(**described), tmp_path / "run", LOCAL)
    assert result.failures == {}
    assert simulated(tmp_path / "one").count(BASELINE) == 1
    rows = Dataset(next((tmp_path / "run" / "datasets").iterdir())).evaluations().to_pylist()
    first = [row for row in rows if (row["param.x"], row["param.y"], row["param.z"]) == (0, 0, 1)]
    assert [row["metric.time_ns"] for row in first] == [1990.0, 1990.0]
    assert len(rows) == 8


def test_a_run_that_is_resumed_does_not_simulate_it_again(tmp_path: Path) -> None:
    described = settings(tmp_path / "one", "crashes", workers=2)
    run_experiment(small(**described), tmp_path / "run", LOCAL)
    more = small(**described | {"budget": 6})
    run_experiment(more, tmp_path / "run", dataclasses.replace(LOCAL, resume=True))
    assert len(simulated(tmp_path / "one")) >= 6
    assert simulated(tmp_path / "one").count(BASELINE) == 1


@pytest.mark.parametrize(
    ("wrong", "limits", "reason"),
    [
        ("slow", {}, "sleep did not finish within 0.5 s"),
        ("crashes", {"workers": 1}, "false ended with exit code 1"),
        ("hangs", {"time_limit_s": 1.0}, "the simulation did not end within 1 s"),
        ("dies", {"time_limit_s": 5.0}, "the simulating process died, 2 times in all"),
    ],
)
def test_one_that_cannot_be_simulated_is_refused_before_anything_runs(
    tmp_path: Path, wrong: str, limits: dict[str, Any], reason: str
) -> None:
    run = small(**settings(tmp_path / "one", wrong, times=99, retries=1, **limits))
    place = r"environments\[0\]: the baseline design cannot be simulated: "
    with pytest.raises(ArchgymError, match=place + f".*{reason}"):
        run_experiment(run, tmp_path / "run", LOCAL)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("ray", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_one_that_workers_cannot_simulate_stops_the_run(tmp_path: Path, ray: bool) -> None:
    out, simulation = tmp_path / "run", {"executor": "workers", "retries": 1}
    out.mkdir()
    broken = small(**settings(tmp_path / "one", "crashes", times=99, **simulation))
    options = RunOptions(quiet=True, cpus=2) if ray else LOCAL
    worker = subprocess.Popen([sys.executable, "-m", "archgym", "worker", str(out)])
    message = "Starting': the baseline design cannot be simulated: .*exit code 1"
    with pytest.raises(ArchgymError, match=message):
        run_experiment(broken, out, options)
    # Once it is mended the run goes on, with the worker that waits for it.
    (tmp_path / "one" / "begun").write_text("once\n" * 99)
    result = run_experiment(broken, out, dataclasses.replace(options, resume=True))
    assert result.totals.states == {"finished": 2}
    assert worker.wait(60) == 0


@pytest.mark.nightly
def test_through_ray_no_worker_simulates_it_again(tmp_path: Path) -> None:
    run = small(**settings(tmp_path / "one", "slow"), resources={"max_concurrent": 2})
    result = run_experiment(run, tmp_path / "run", RunOptions(quiet=True, cpus=2))
    assert result.failures == {}
    assert simulated(tmp_path / "one").count(BASELINE) == 1
