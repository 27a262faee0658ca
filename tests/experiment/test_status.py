"""archgym status: of a run that goes on, was killed, and is over."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from archgym.experiment import RunOptions, run_experiment
from archgym.experiment.folder.live_files import InFlight, LiveFile, live_states
from archgym.experiment.folder.run_folder import RunFolder
from archgym.experiment.results.status import read_status
from tests.experiment.experiments import HELPERS, archgym, small, start, written


def status(folder: Path) -> Any:
    code, out, err = archgym("status", folder, "--json")
    assert code == 0, err
    return json.loads(out)


def test_a_run_from_its_begin_to_its_end(tmp_path: Path) -> None:
    experiment = written(
        tmp_path,
        budget=60,
        seeds=1,
        environments=[{"id": f"{HELPERS}:Slow", "arguments": {"seconds": 0.5}}],
        agents=[{"name": "random"}, {"name": "ga"}],
        simulation={"workers": 2},
    )
    run = tmp_path / "run"
    process = start("run", experiment, "--local", "--out", run)
    try:
        found: Any = {"simulations": 0}
        end = time.monotonic() + 60
        while found["simulations"] < 5 or not found["in_flight"]:
            assert time.monotonic() < end, found
            time.sleep(0.2)
            found = status(run) if (run / "live").exists() else found
        assert found["state"] == "running"
        assert found["trials"] == {"finished": 0, "failed": 0, "running": 1, "waiting": 1}
        assert found["slots"] == 2
        assert 1 <= len(found["in_flight"]) <= 2
        assert {one["trial_id"] for one in found["in_flight"]} == {"Slow.random.s0"}
        assert all(one["worker"] and 0 <= one["seconds"] < 30 for one in found["in_flight"])
        assert found["expected_end"] > found["at"]
        assert 0 < found["utilisation"] <= 1
        code, out, _ = archgym("status", run)
        assert code == 0
        assert "1 running" in out
        assert "in flight" in out
    finally:
        process.kill()
        process.communicate()
    killed = status(run)
    assert killed["state"] == "interrupted"
    assert killed["in_flight"] == []
    assert killed["simulations"] >= found["simulations"]
    assert killed["best"][0]["setting"] == "Slow"
    code, _, err = archgym(
        "run", experiment, "--local", "--out", run, "--resume", "--set", "budget=60"
    )
    assert code == 0, err
    over = status(run)
    assert over["state"] == "finished"
    assert over["trials"]["finished"] == 2
    assert over["simulations"] == over["spent"] == over["budget"] == 120
    assert over["best"][0]["values"] == [f"{_best_of(run):.5g} ns"]
    assert not (run / "live").exists()


def _best_of(run: Path) -> float:
    _, out, _ = archgym("best", run, "--json")
    return float(json.loads(out)[0]["best"]["metrics"]["time_ns"])


def test_the_time_between_a_kill_and_its_resume_is_not_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, agents = tmp_path / "run", [{"name": "random"}]
    run_experiment(small(agents=agents, seeds=1, budget=10), run, RunOptions(True, quiet=True))
    now, now_ns, gap_s = time.time, time.time_ns, 1_000_000
    with monkeypatch.context() as later:
        later.setattr(time, "time", lambda: now() + gap_s)
        later.setattr(time, "time_ns", lambda: now_ns() + gap_s * 10**9)
        again = RunOptions(True, resume=True, quiet=True)
        run_experiment(small(agents=agents, seeds=1, budget=20), run, again)
        found = read_status(run)
    assert found.simulations == 20
    assert found.per_hour is not None
    assert found.per_hour > 10 * 20 / gap_s * 3600


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    code, _, err = archgym("status", tmp_path)
    assert code == 2
    assert "holds no run" in err


def test_a_folder_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    (tmp_path / "core-mcf").mkdir()
    (tmp_path / "core-mcf" / "trials.json").touch()
    code, _, err = archgym("status", tmp_path / "core-mfc")
    assert code == 2
    assert f"core-mfc is not there. Did you mean '{tmp_path / 'core-mcf'}'" in err


def test_a_file_on_another_machine_counts_as_long_as_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(tmp_path)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(socket, "gethostname", lambda: "elsewhere")
        LiveFile(folder, "dead").write("a", 1, [])
    command = f"""
import socket, time
socket.gethostname = lambda: "elsewhere"
from archgym.experiment.folder.live_files import *
from archgym.experiment.folder.run_folder import RunFolder
file = LiveFile(RunFolder({str(tmp_path)!r}), "alive")
while True:
    file.write("b", 2, [InFlight("w", 5.0)])
    time.sleep(0.2)
"""
    with subprocess.Popen([sys.executable, "-c", command]) as process:
        try:
            while not (tmp_path / "live" / "run.alive.json").exists():
                time.sleep(0.05)
            (state,) = live_states(tmp_path)
        finally:
            process.kill()
    assert (state.batch, state.trial_id, state.slots) == ("alive", "b", 2)
    assert list(state.in_flight) == [InFlight("w", 5.0)]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b"[" * 99999, b'{"format": 1, "in_flight": [[1]]}', b"\xff"]
)
def test_damaged_files_are_passed_over(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / "x.json").write_bytes(content)
    (tmp_path / "live" / "link.json").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "live" / "fifo.json")
    assert live_states(tmp_path, 0.0) == []
