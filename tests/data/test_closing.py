"""When journals become Parquet by themselves: on closing an environment, and on reading."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from archgym.data import Dataset, find_datasets, load, validate
from archgym.data.files import seal_if_idle
from archgym.data.journal import Journal
from archgym.errors import DatasetError
from tests.helpers import Adder

WRITER = """
import sys
from tests.helpers import Adder
env = Adder(record=sys.argv[1])
env.evaluate({"x": int(sys.argv[2]), "y": 0, "mode": "plain"})
print("told", flush=True)
sys.stdin.readline()
env.close()
"""


def journals(folder: Path) -> list[Path]:
    return sorted((folder / "journal").glob("*"))


def rows_in_parquet(folder: Path) -> int:
    """As a reader counts that knows nothing of archgym."""
    return int(pq.read_table(folder / "evaluations", partitioning=None).num_rows)


def recorded(folder: Path, *values: int, close: bool = True) -> Adder:
    env = Adder(record=folder)
    for x in values:
        env.evaluate({"x": x, "y": 0, "mode": "plain"})
    if close:
        env.close()
    return env


def left_behind(folder: Path, *values: int) -> Path:
    """The journal of a process that was killed."""
    known = set(journals(folder))
    recorded(folder, *values, close=False).end_trial()
    (journal,) = set(journals(folder)) - known
    return journal


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has recorded a row and goes on when a line is sent to it."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path), "4"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "told\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_closing_leaves_parquet(tmp_path: Path) -> None:
    env = recorded(tmp_path, 0, 1, 2)
    assert not journals(tmp_path)
    assert rows_in_parquet(tmp_path) == 3
    env.evaluate({"x": 3, "y": 0, "mode": "plain"})  # a new trial
    assert Dataset(tmp_path).info()["evaluations"] == 4
    env.close()
    env.close()
    assert rows_in_parquet(tmp_path) == 4
    assert Dataset(tmp_path).trials().num_rows == 2
    assert all(check.passed for check in validate(Dataset(tmp_path)))


def test_closing_without_a_row_writes_nothing(tmp_path: Path) -> None:
    recorded(tmp_path / "data")
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["dataset.json"]


def test_the_last_environment_of_a_process_seals(tmp_path: Path) -> None:
    first = recorded(tmp_path, 0, close=False)
    recorded(tmp_path, 1)
    assert len(journals(tmp_path)) == 1
    assert not (tmp_path / "evaluations").exists()
    first.close()
    assert not journals(tmp_path)
    assert rows_in_parquet(tmp_path) == 2


def test_the_last_process_seals(tmp_path: Path, writer: subprocess.Popen[str]) -> None:
    recorded(tmp_path, 0)
    assert len(journals(tmp_path)) == 2
    assert len(load(tmp_path)) == 2
    assert len(journals(tmp_path)) == 2  # reading does not disturb it
    writer.communicate("\n")
    assert writer.returncode == 0
    assert not journals(tmp_path)
    assert rows_in_parquet(tmp_path) == 2


def test_what_a_killed_process_left_is_sealed_when_it_is_read(
    tmp_path: Path, writer: subprocess.Popen[str]
) -> None:
    recorded(tmp_path, 0)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert Dataset(tmp_path).evaluations().num_rows == 2
    assert len(journals(tmp_path)) == 2  # an object by itself changes nothing
    assert len(load(tmp_path)) == 2
    assert not journals(tmp_path)
    assert rows_in_parquet(tmp_path) == 2
    assert set(Dataset(tmp_path).trials()["state"].to_pylist()) == {"closed", "running"}


@pytest.mark.parametrize("why", ["machine", "name", "user", "tail", "damage"])
def test_what_may_be_somebody_elses_is_left_alone(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = left_behind(tmp_path, 0, 1)
    if why == "machine":
        monkeypatch.setattr("socket.gethostname", lambda: "another")
    elif why == "name":
        journal = journal.rename(journal.with_name("x-y.jsonl"))
    elif why == "user":
        monkeypatch.setattr(os, "geteuid", lambda: journal.stat().st_uid + 1)
    elif why == "tail":
        journal.write_bytes(journal.read_bytes() + bytes(99))
    else:
        journal.write_bytes(journal.read_bytes().replace(b'"plain"', b'"plane"', 1)[:-1] + b"\n")
        content = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join([content[0], *content[2:]]))
    before = journal.read_bytes()
    (found,) = find_datasets(tmp_path)
    assert journals(tmp_path) == [journal]
    assert journal.read_bytes() == before
    if why == "damage":
        with pytest.raises(DatasetError, match="is damaged"):
            found.evaluations()
        with pytest.warns(UserWarning, match="left in journals.*damaged"):
            recorded(tmp_path, 3)
    else:
        assert found.evaluations().num_rows == 2


def test_a_folder_that_may_not_be_written_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_behind(tmp_path, 0, 1)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert len(load(tmp_path)) == 2
    assert len(journals(tmp_path)) == 1


def test_many_closings_leave_each_row_once(tmp_path: Path) -> None:
    for x in range(5):
        left_behind(tmp_path, x)
        recorded(tmp_path, x)
    assert rows_in_parquet(tmp_path) == 10
    assert seal_if_idle(tmp_path)
    assert all(check.passed for check in validate(Dataset(tmp_path)))


def test_another_thread_may_seal_before_a_row_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = recorded(tmp_path, 0, close=False)
    append = Journal.append
    sealing = threading.Thread(target=Dataset(tmp_path).seal)

    def late(journal: Journal, *arguments: Any) -> None:
        if sealing.ident is None:  # the first time: the row is on its way, the journal open
            sealing.start()
            sealing.join()
        append(journal, *arguments)

    monkeypatch.setattr(Journal, "append", late)
    env.evaluate({"x": 1, "y": 0, "mode": "plain"})
    env.evaluate({"x": 2, "y": 0, "mode": "plain"})
    env.close()
    rows = Dataset(tmp_path).evaluations()
    assert rows.sort_by("step")["param.x"].to_pylist() == [0, 1, 2]
    assert len(set(rows["trial_id"].to_pylist())) == 1  # the trial goes on in a new journal
    assert all(check.passed for check in validate(Dataset(tmp_path)))


@pytest.mark.parametrize("rename", range(3))
def test_any_reader_reads_a_folder_whose_writer_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rename: int
) -> None:
    recorded(tmp_path, 0, 1)
    names = {path.name for path in tmp_path.rglob("*")}
    left = left_behind(tmp_path, 2)
    renames = iter(range(rename))
    original = os.replace

    def killed(source: Path, target: Path) -> None:
        if next(renames, None) is None:
            raise KeyboardInterrupt  # nothing tidies up after it
        original(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            load(tmp_path)
    assert rows_in_parquet(tmp_path) == 2
    assert left.exists()
    load(tmp_path)
    assert rows_in_parquet(tmp_path) == 3
    after = {path.name for path in tmp_path.rglob("*")}
    assert len(after) == len(names) + 1  # a file of attempts and one of evaluations, of one name


@pytest.mark.full
def test_kills_while_closing_lose_and_double_nothing(tmp_path: Path) -> None:
    chance, told = random.Random(0), 0
    for x in [0, 1, 2, 3, 4] * 2:
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(x)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "told\n"
        told += 1
        process.stdin.write("\n")
        process.stdin.flush()
        time.sleep(chance.random() * 0.15)
        process.kill()
        process.communicate()
        assert Dataset(tmp_path).evaluations().num_rows == told
    load(tmp_path)
    assert rows_in_parquet(tmp_path) == told
    assert all(check.passed for check in validate(Dataset(tmp_path)))
