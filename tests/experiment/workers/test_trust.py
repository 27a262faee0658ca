"""What lies in the folder of a run is data: a driver and a worker take only what has its form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from archgym.experiment.workers.line_files import LineReader, append_line
from archgym.experiment.workers.queue_folder import FORMAT, write_run_file
from tests.experiment.workers.queues import Run, collected, wait_until

Make = Callable[..., Run]

HOSTILE = [
    b"[" * 100_000,
    b"{}",
    b"[1, 2]",
    b"\xff\xfe",
    b'{"done": 0}',
    b'{"done": 0, "answer": {"metrics": []}, "elapsed": 1, "started": 1}',
    b'{"done": "0", "answer": {"metrics": {}, "seconds": 1}, "elapsed": 1, "started": 1}',
    b'{"done": 0, "answer": {"metrics": {}, "seconds": "1"}, "elapsed": 1, "started": 1}',
    b'{"done": 0, "answer": {"metrics": {}, "seconds": 1}, "elapsed": 1' + b"0" * 999 + b"}",
    b'{"done": 0, "answer": {"error": "other", "reason": "", "seconds": 1}, "elapsed": 1, "sta'
    b'rted": 1}',
    b'{"hello": 1, "slots": -5}',
    b'{"hello": 1, "slots": 1e300}',
]


def test_a_driver_passes_over_what_is_no_answer(run_of: Make) -> None:
    run = run_of(seconds=0.01)
    with run.driver(lease_s=600.0) as executor:
        (queue,) = [path for path in (run.folder / "queues").iterdir() if path.is_dir()]
        (queue / "evil.in").touch()
        (queue / "evil.out").write_bytes(b"\n".join(HOSTILE) + b"\nhalf a line\n")
        (queue / "fifo.in").touch()
        os.mkfifo(queue / "fifo.out")
        (queue / "link.in").touch()
        (queue / "link.out").symlink_to("/dev/zero")
        (queue / "folder.out").mkdir()
        (queue / ".. .out").touch()
        wait_until(lambda: executor.slots == 1)  # the evil one has said hello
        executor.submit(0, [1, 1, 0], 1.0)
        wait_until(lambda: (queue / "evil.in").read_bytes())
        assert executor.collect(0.3) == []
        append_line(queue / "evil.out", {"bye": "enough"})
        for name in ("fifo.out", "link.out"):  # a worker refuses a folder with these
            (queue / name).unlink()
        run.worker()
        assert [one.ticket for one in collected(executor, 1)] == [0]


def test_a_worker_makes_only_environments_of_the_run(run_of: Make, tmp_path: Path) -> None:
    run = run_of(seconds=0.01)
    (tmp_path / "planted.py").write_text("open('imported', 'w')\n")
    with run.driver():
        (file,) = (run.folder / "queues").glob("*/queue.json")
        data = json.loads(file.read_text())
        data["job"]["environment"] = "planted:Anything"
        file.write_text(json.dumps(data))
        command = [sys.executable, "-m", "archgym", "worker", str(run.folder)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "with other arguments than" in done.stderr
    assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda folder: None, "there is no folder"),
        (lambda folder: (folder.mkdir(), (folder / "thesis.tex").touch()), "holds no run"),
        (
            lambda folder: (
                Run(folder),
                (folder / "experiment.yaml").write_text("simulation: {workers: 2}\n"),
            ),
            "simulates its designs itself",
        ),
        (
            lambda folder: (
                (folder / "queues").mkdir(parents=True),
                (folder / "queues" / "run.json").write_text(
                    json.dumps({"format": FORMAT, "archgym": "0.0.9", "state": "running"})
                ),
            ),
            "is one of archgym 0.0.9",
        ),
    ],
)
def test_a_worker_says_what_is_wrong_with_a_folder(
    tmp_path: Path, prepare: Callable[[Path], object], message: str
) -> None:
    folder = tmp_path / "run"
    prepare(folder)
    command = [sys.executable, "-m", "archgym", "worker", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_worker_does_not_wait_for_ever(tmp_path: Path) -> None:
    write_run_file(tmp_path, "", "any", "stopped")
    command = [sys.executable, "-m", "archgym", "worker", str(tmp_path), "--max-wait", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "nothing to do for 1 s" in done.stderr


def test_a_worker_waits_for_a_run_that_is_being_prepared(tmp_path: Path) -> None:
    """What a driver has written before its list of trials: a lock, its history, and more."""
    (tmp_path / ".lock").touch()
    (tmp_path / "history").mkdir()
    (tmp_path / "experiment.yaml").write_text("simulation: {executor: workers}\n")
    (tmp_path / "initial_designs.json").write_text("{}\n")
    command = [sys.executable, "-m", "archgym", "worker", str(tmp_path), "--max-wait", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "nothing to do for 1 s" in done.stderr


def test_half_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b'{"a": 1}\n{"b"')
    reader = LineReader(path)
    assert reader.read() == [{"a": 1}]
    assert reader.read() == []
    with path.open("ab") as file:
        file.write(b": 2}\n")
    assert reader.read() == [{"b": 2}]
    assert reader.changes == 1
