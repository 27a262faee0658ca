"""``archgym trace`` as a user runs it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from archgym.envs.dram.traces import recording_recipes
from archgym.envs.dram.traces.workload import load_workload

needs_valgrind = pytest.mark.skipif(
    shutil.which("valgrind") is None, reason="valgrind is not installed (apt-get install valgrind)"
)


@needs_valgrind
def test_record(call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("trace", "record", "--max-requests", "300", "--", "/bin/true", "--ignored")
    assert done.code == 0, done.err
    assert done.out.startswith("300 requests, ")
    assert len(load_workload("true.npz")) == 300
    assert sorted(os.listdir()) == ["true.json", "true.npz"]


@needs_valgrind
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--", "no-such-program"], "the program 'no-such-program' does not exist"),
        (["--", "/bin/false"], "'/bin/false' failed under valgrind with exit status 1"),
        (["--timeout-s", "1", "--", "/bin/sleep", "60"], "did not end within timeout_s=1 s"),
        (["--skip-instructions", "999999999", "--", "/bin/true"], "made no DRAM request after"),
        (["--stdin", "none", "--", "/bin/cat"], "stdin='none' cannot be read"),
        (["--out", "none/a.npz", "--", "/bin/true"], "the folder none does not exist"),
        (["--out", "folder.npz", "--", "/bin/true"], "is a folder"),
    ],
)
def test_what_goes_wrong_is_said_and_leaves_nothing(
    arguments: list[str], message: str, call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.npz").mkdir()
    failed = call("trace", "record", *arguments)
    assert failed.code == 2
    assert message in failed.err
    assert os.listdir() == ["folder.npz"]


def test_without_valgrind(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    failed = call("trace", "record", "--", "/bin/true")
    assert failed.code == 2
    assert "apt-get install valgrind" in failed.err


@needs_valgrind
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_ends_the_program_and_leaves_nothing(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "silence")
    program = ["/bin/sh", "-c", "echo $$ >started; read line <silence"]
    command = ["trace", "record", "--out", "mine.npz", "--", *program]
    run = subprocess.Popen(
        [sys.executable, "-c", "from archgym.cli import main; main()", *command],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        started = tmp_path / "started"
        deadline = time.monotonic() + 60
        while not (started.exists() and started.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        run.send_signal(number)
        assert "interrupted: nothing is written" in run.communicate(timeout=60)[1]
        assert run.returncode == code
    finally:
        run.kill()
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)
    assert sorted(os.listdir(tmp_path)) == ["silence", "started"]


def test_recipe(call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def make(name: str, **settings: Any) -> Any:
        asked.append((name, settings["timeout_s"]))
        settings["progress"](5_000_000, 7)
        trace = load_workload({"generator": "stream", "requests": 100})
        card = {"requests": 100, "write_share": 0.0, "span_ns": 1_000_000}
        return trace, {**card, "cache": {"line_bytes": 64}}

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(recording_recipes, "make", make)
    assert call("trace", "recipe", "xz").code == 0
    assert call("trace", "recipe", "xz", "--out", "mine.npz", "--timeout-s", "9").code == 0
    assert asked == [("xz", 3600.0), ("xz", 9.0)]
    assert sorted(os.listdir()) == ["mine.json", "mine.npz", "xz.json", "xz.npz"]


def test_unknown_recipe(call: Any) -> None:
    failed = call("trace", "recipe", "sqlit")
    assert failed.code == 2
    assert "unknown recipe 'sqlit'. Did you mean 'sqlite'?" in failed.err
