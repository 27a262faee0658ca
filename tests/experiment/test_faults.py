"""Whatever goes wrong, a run goes on or resumes, and says what failed and why."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from archgym.data import Dataset
from archgym.experiment import RunOptions, expand, run_experiment
from archgym.experiment.folder.lock import locked
from archgym.experiment.folder.run_folder import RunFolder
from archgym.experiment.folder.trial_states import TrialLog, read_ends
from archgym.experiment.results.tables import run_tables
from archgym.experiment.run.context import RunContext
from archgym.experiment.run.progress import Progress
from archgym.experiment.run.run_batch import run_batch
from archgym.experiment.run.trial_batches import TrialBatch
from tests.experiment.chaos import LOCAL, RAY, Chaos, moody
from tests.experiment.experiments import HELPERS, archgym, assert_equal_runs, slow, small, written

QUIET = RunOptions(local=True, quiet=True)


def statuses(run: Path) -> dict[str, set[str]]:
    """The reasons of each status."""
    found: dict[str, set[str]] = {}
    for path in (run / "datasets").iterdir():
        for row in Dataset(path).evaluations(["status", "reason"]).to_pylist():
            found.setdefault(row["status"], set()).add(row["reason"])
    return found


def moody_settings(**arguments: Any) -> dict[str, Any]:
    return {
        "budget": 120,
        "seeds": 1,
        "agents": [{"name": "random"}],
        "environments": [
            {
                "id": f"{HELPERS}:Moody",
                "arguments": {"seconds": 0, **arguments},
                "initial": [{"x": 7, "y": 1, "z": 1}],
            }
        ],
    }


@pytest.mark.full
def test_designs_that_raise_hang_die_or_give_nan_are_rows(tmp_path: Path) -> None:
    experiment = small(
        **moody_settings(hangs=True, dies=True),
        simulation={"workers": 3, "time_limit_s": 1.0, "retries": 1},
    )
    result = run_experiment(experiment, tmp_path / "run", QUIET)
    assert not result.failures
    found = statuses(tmp_path / "run")
    assert found["timeout"] == {"the simulation did not end within 1 s"}
    assert found["failed"] == {
        "ValueError: this design cannot be",
        "time_ns is nan, not a finite number",
        "the simulating process died, 2 times in all",
    }
    assert result.totals.states == {"finished": 1}
    text = io.StringIO()
    Console(file=text, width=100).print(run_tables(result))
    shown = text.getvalue()
    (summary,) = result.summaries.values()
    assert f"{summary.failed} designs could not be simulated:" in shown
    assert re.search(r"\d+ x ValueError: this design cannot be\n", shown)
    counts = [int(n) for n in re.findall(r"^  (\d+) x ", shown, re.MULTILINE)]
    assert sum(counts) == summary.failed
    assert re.search(r"^  \d+ x 1 other reason *$", shown, re.MULTILINE)


def test_processes_that_simulate_change_no_result(tmp_path: Path) -> None:
    run_experiment(small(**moody_settings()), tmp_path / "inside", QUIET)
    simulation = {"workers": 2, "asynchronous": False}
    beside = small(**moody_settings(), simulation=simulation)
    run_experiment(beside, tmp_path / "beside", QUIET)
    assert_equal_runs(tmp_path / "inside", tmp_path / "beside")


def test_a_cache_is_shared_between_runs(tmp_path: Path) -> None:
    log = tmp_path / "simulations.log"
    settings = moody_settings()
    settings["environments"][0]["arguments"]["log"] = str(log)
    cached = small(**settings, simulation={"cache": str(tmp_path / "cache" / "all.sqlite")})
    run_experiment(cached, tmp_path / "one", QUIET)
    first = len(log.read_text().splitlines())
    run_experiment(cached, tmp_path / "two", QUIET)
    again = len(log.read_text().splitlines()) - first
    assert_equal_runs(tmp_path / "one", tmp_path / "two")
    table = Dataset(next((tmp_path / "one" / "datasets").iterdir())).evaluations(["status"])
    failed = table["status"].to_pylist().count("failed")
    assert first == 121  # the baseline, once
    assert again == failed  # failures are not kept


def test_a_trial_that_ends_its_worker_is_given_up(tmp_path: Path) -> None:
    trials = expand(small(budget=5))
    folder = RunFolder(tmp_path / "run")
    with locked(folder) as run_id:
        log = TrialLog(folder.log_file(run_id, "0"))
        for _ in range(3):
            log.begin(trials[0].trial_id)
        log.close()
        batch = TrialBatch("0", tuple(trials))
        ends = run_batch(batch, RunContext(folder, run_id), Progress(trials, {}))
    assert [ends[trial.trial_id].state for trial in trials] == ["failed"] + 3 * ["finished"]
    assert "its worker process died 3 times" in ends[trials[0].trial_id].error
    assert read_ends(folder.logs) == ends


def test_the_summary_lists_what_failed_and_why(tmp_path: Path) -> None:
    agents = [{"name": f"{HELPERS}:Failing"}]
    code, out, _ = archgym(
        "run", written(tmp_path, agents=agents), "--local", "--out", tmp_path / "run", "-q"
    )
    assert code == 1
    assert "1 finished, 1 failed" in out
    summary = json.loads((tmp_path / "run" / "results" / "summary.json").read_text())
    assert summary["trials"] == {"total": 2, "finished": 1, "failed": 1}
    assert summary["failures"] == [
        {
            "trial_id": "Conformance-v0.Failing.s1",
            "error": "RuntimeError: odd seeds fail",
            "traceback_file": "errors/Conformance-v0.Failing.s1.txt",
        }
    ]


@pytest.mark.full
def test_three_faults(tmp_path: Path) -> None:
    chaos = Chaos(moody(tmp_path), tmp_path / "run", seed=0)
    for fault in ("disk full", "Ctrl-C", "driver killed"):
        chaos.session(LOCAL, [fault])
    assert chaos.happened.total() == 3
    chaos.finish(*LOCAL)
    assert chaos.check(tmp_path) > 200


TINY_DISK = """
mount -t tmpfs -o size=400k none "$1" || exit 77
shift
"$@"; echo "first: $?"
mount -o remount,size=64m "$(dirname "$OUT")"
"$@" --resume; echo "then: $?"
cp -r "$OUT" "$KEPT"
"""
"""Runs a command on a disk of its own that is too small, and again once it has grown."""


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_a_disk_that_is_really_full_through_ray(tmp_path: Path) -> None:
    namespace = shutil.which("unshare")
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    experiment = slow(
        tmp_path,
        budget=300,
        seeds=4,
        environments=[{"id": f"{HELPERS}:Slow", "arguments": {"seconds": 0.001}}],
        agents=[{"name": "random"}, {"name": "ga"}],
    )
    out = disk / "run"
    run = [sys.executable, "-m", "archgym", "run", experiment, "--out", out, "-q", *RAY]
    words = [namespace or "unshare", "-rm", "sh", "-c", TINY_DISK, "sh", disk, *run]
    if namespace is None or subprocess.run([namespace, "-rm", "true"], check=False).returncode:
        pytest.skip("mount namespaces are not allowed here")
    found = subprocess.run(
        list(map(str, words)),
        env={**os.environ, "OUT": str(out), "KEPT": str(kept)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    if found.returncode == 77:
        pytest.skip("a tmpfs cannot be mounted here")
    assert "first: 2" in found.stdout, found.stderr
    assert "there is no room to write in" in found.stderr
    assert "Traceback" not in found.stderr, found.stderr
    assert "then: 0" in found.stdout, found.stderr
    code, _, err = archgym("run", experiment, "--local", "--out", tmp_path / "whole", "-q")
    assert code == 0, err
    assert_equal_runs(tmp_path / "whole", kept)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_fifty_faults(tmp_path: Path) -> None:
    chaos = Chaos(moody(tmp_path, budget=400, seeds=4), tmp_path / "run", seed=1)
    while chaos.happened.total() < 50 and not chaos.finished:
        if chaos.random.random() < 0.25:
            kills = ["worker killed", "simulator killed"]
            faults = [chaos.random.choice(kills) for _ in range(chaos.random.randint(2, 5))]
            chaos.session(RAY, [*faults, chaos.random.choice(["driver killed", "Ctrl-C"])])
        else:
            last = chaos.random.choice(["driver killed", "Ctrl-C", "disk full"])
            chaos.session(LOCAL, [*chaos.random.choice([[], ["simulator killed"]]), last])
    print(dict(chaos.happened))  # noqa: T201 - shown with -s
    assert chaos.happened.total() >= 50
    chaos.finish(*RAY)
    assert chaos.check(tmp_path) > 1000
