"""What a simulator finished is not lost: interruptions, removed folders, disks, limits, names."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from archgym.data import Dataset, TrialRecorder, load, validate
from archgym.errors import DatasetError
from archgym.evaluation.outcome_builder import OutcomeBuilder
from tests.helpers import Adder

MANY = """
import resource, sys
from tests.helpers import Adder
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (40, hard))
design = {"x": 1, "y": 0, "mode": "plain"}
open_ = [Adder(record=f"{sys.argv[1]}/{i}") for i in range(60)]
for env in open_:
    env.evaluate(design)
for env in open_:
    env.close()
"""


def designs(*values: int) -> list[dict[str, Any]]:
    return [{"x": x, "y": 0, "mode": "plain"} for x in values]


def recorded_x(folder: Path) -> list[int]:
    return sorted(Dataset(folder).evaluations()["param.x"].to_pylist())


def is_sound(folder: Path) -> bool:
    return all(check.passed for check in validate(Dataset(folder)))


@pytest.mark.parametrize("whole", [True, False])
def test_an_interruption_while_a_row_is_written_loses_and_damages_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    env = Adder(record=tmp_path)
    env.evaluate_batch(designs(0, 1))
    write, calls = os.pwrite, itertools.count()

    def interrupted(file: int, data: bytes, at: int) -> int:
        if next(calls):
            return write(file, data, at)
        write(file, data if whole else data[: len(data) // 2], at)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "pwrite", interrupted)
    with pytest.raises(KeyboardInterrupt):
        env.evaluate_batch(designs(2, 3))
    assert recorded_x(tmp_path) == [0, 1, 2, 3]
    env.evaluate_batch(designs(3, 4))  # of the same trial
    env.close()
    assert recorded_x(tmp_path) == [0, 1, 2, 3, 3, 4]
    assert is_sound(tmp_path)


@pytest.mark.parametrize("begun", [True, False])
def test_an_interruption_while_a_trial_begins_leaves_no_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    env = Adder(record=tmp_path)
    rename, calls = os.rename, itertools.count()

    def interrupted(old: Path, new: Path) -> None:
        first = not next(calls)
        if begun or not first:
            rename(old, new)
        if first:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        env.evaluate_batch(designs(0))
    env.evaluate_batch(designs(0, 1))
    env.close()
    assert recorded_x(tmp_path) == [0, 0, 1]
    assert is_sound(tmp_path)


def test_what_an_interruption_kept_from_the_dataset_is_simulated_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = Adder(record=tmp_path)
    env.evaluate_batch(designs(0))
    with monkeypatch.context() as patch:
        patch.setattr(TrialRecorder, "write", interrupted_call)
        with pytest.raises(KeyboardInterrupt):
            env.evaluate_batch(designs(1))
    with monkeypatch.context() as patch:
        patch.setattr(OutcomeBuilder, "one", interrupted_call)
        with pytest.raises(KeyboardInterrupt):
            env.evaluate_batch(designs(2))
    assert not env.evaluate(designs(2)[0]).cached
    assert not env.evaluate(designs(1)[0]).cached
    env.close()
    assert is_sound(tmp_path)


def interrupted_call(*_: object) -> None:
    raise KeyboardInterrupt


def test_threads_record_in_one_folder_each_with_an_environment(tmp_path: Path) -> None:
    threads, problems = 6, list[BaseException]()
    together = threading.Barrier(threads)

    def work(env: Adder) -> None:
        try:
            together.wait()
            for _ in range(10):
                env.evaluate_batch(designs(0, 1))
                env.end_trial()
        except BaseException as error:
            problems.append(error)

    envs = [Adder(record=tmp_path) for _ in range(threads)]
    workers = [threading.Thread(target=work, args=(env,)) for env in envs]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(interval)
    for env in envs:
        env.close()
    assert not problems
    assert len(recorded_x(tmp_path)) == 120
    assert is_sound(tmp_path)


def add_until_there(env: Adder, folder: Path, first: int) -> int:
    """Evaluates one design after another until the folder is there: a removed one is noticed within
    ``SYNC_S``. Gives the number of the next design."""
    n = first
    while not folder.exists():
        env.evaluate_batch(designs(n))
        n += 1
        time.sleep(0.01)
    return n


def test_rows_of_a_removed_folder_are_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archgym.data.journal.writing.SYNC_S", 0.01)
    folder = tmp_path / "data"
    env = Adder(record=folder)
    env.evaluate_batch(designs(0, 1))
    shutil.rmtree(folder)
    told = r"data was removed .* made again with the \d+ rows"
    with pytest.warns(UserWarning, match=told):
        n = add_until_there(env, folder, first=2)
    env.evaluate_batch(designs(n))
    env.close()
    assert recorded_x(folder) == list(range(n + 1))
    assert is_sound(folder)


def test_closing_says_that_a_removed_folder_took_rows(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    env = Adder(record=folder)
    env.evaluate_batch(designs(0, 1))
    shutil.rmtree(folder)
    with pytest.warns(UserWarning, match="data was removed: 2 rows recorded in it are lost"):
        env.close()
    assert not folder.exists()


def test_rows_that_the_disk_refused_are_told_and_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archgym.data.journal.writing.SYNC_S", 0.01)
    env = Adder(record=tmp_path)
    env.evaluate_batch(designs(0))
    time.sleep(0.2)  # these are on disk
    fsync, refused = os.fsync, list[int]()

    def broken(handle: int) -> None:
        refused.append(handle)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    (journal,) = (tmp_path / "journal").glob("*.jsonl")
    before = journal.stat().st_size
    env.evaluate_batch(designs(1, 2))
    while not refused:
        time.sleep(0.01)
    time.sleep(0.05)
    with pytest.raises(DatasetError, match="last 3 rows may not be on disk"):
        env.evaluate_batch(designs(3))
    os.truncate(journal, before)  # what a system does that drops the pages
    monkeypatch.setattr(os, "fsync", fsync)
    env.evaluate_batch(designs(4))
    assert recorded_x(tmp_path) == [0, 1, 2, 3, 4]
    env.close()
    assert is_sound(tmp_path)


def test_a_full_disk_loses_no_row_when_journals_become_parquet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever file it is that has no room."""
    env = Adder(record=tmp_path)
    env.evaluate_batch(designs(0, 1))
    env.close()
    fsync = os.fsync
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for room in range(4):  # attempts, evaluations, trials and the sidecar
        env = Adder(record=tmp_path)
        env.evaluate_batch(designs(2 + room % 3))
        synced = itertools.count()

        def full(handle: int, room: int = room, synced: Any = synced) -> None:
            path = os.readlink(f"/proc/self/fd/{handle}")
            whole = path.endswith((".tmp", ".pending")) or ".sidecar-" in path
            if whole and next(synced) >= room:
                raise OSError(28, "No space left on device")
            fsync(handle)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.warns(UserWarning, match="left in journals: .*No space left"):
                env.close()
        assert len(recorded_x(tmp_path)) == 3 + room
        assert not list(tmp_path.glob(".sidecar-*"))
        assert all(path.is_file() for path in files)
    assert len(load(tmp_path)) == 6
    assert is_sound(tmp_path)
    assert not list(tmp_path.rglob("*.tmp"))


def test_more_journals_are_open_than_the_soft_limit_allows(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", MANY, str(tmp_path)], check=True, timeout=120)
    for number in range(60):
        assert len(list((tmp_path / str(number) / "evaluations").iterdir())) == 1


def test_containers_that_share_a_folder_have_trials_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 1)
    monkeypatch.setattr(time, "strftime", lambda _: "20260101T000000")
    for x in range(2):
        monkeypatch.setattr("archgym.data.trial_recorder._counter", itertools.count())
        env = Adder(record=tmp_path)
        env.evaluate_batch(designs(x))
        env.close()
    assert Dataset(tmp_path).trials().num_rows == 2
    assert is_sound(tmp_path)


ELSEWHERE = """
import sys, warnings
from pathlib import Path
warnings.filterwarnings("error", category=EncodingWarning, module="archgym")
from archgym.data import export, load
from tests.helpers import Adder

folder = Path(sys.argv[1])
env = Adder(record=folder / "data")
env.evaluate({"x": 1, "y": 0, "mode": "plain"})
env.close()
chosen = load(folder / "data").where("reason != 'Größe in µm'")
assert chosen.write(folder / "chosen") == 1
options = {"licence": "mit", "title": "Größe in µm"}
assert export(load(folder / "chosen"), folder / "card.md", "card", **options) == 1
assert "Größe in µm" in (folder / "card.md").read_text("utf-8")
"""


def test_files_are_utf8_whatever_the_locale_says(tmp_path: Path) -> None:
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment = {**os.environ, **locale, "PYTHONWARNDEFAULTENCODING": "1"}
    script = tmp_path / "script.py"
    script.write_text(ELSEWHERE, "utf-8")
    subprocess.run([sys.executable, script, tmp_path], env=environment, check=True, timeout=120)
