"""Nothing outside a received folder is read, written or deleted, and nothing is waited for."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

import archgym
from archgym.data import Dataset
from archgym.enumeration import enumerate_space
from archgym.errors import DatasetError
from archgym.experiment.spec.load import experiment_yaml
from archgym.reading.folders import strange_entry
from tests.cli.conftest import Called
from tests.experiment.experiments import small
from tests.trust.received import received_run

COMMANDS = [
    ["best", "RUN"],
    ["status", "RUN"],
    ["worker", "RUN", "--max-wait", "1", "-q"],
    ["report", "RUN"],
    ["dataset", "info", "RUN"],
    ["dataset", "validate", "RUN"],
    ["dataset", "export", "RUN", "OUT/rows.csv"],
    ["dataset", "filter", "RUN", "OUT/new", "--agent", "ga"],
    ["proxy", "train", "RUN", "--out", "OUT/proxy"],
    ["run", "RUN/experiment.yaml", "--local", "--resume", "--out", "RUN", "-q"],
    ["evaluate", "Conformance-v0", "--set", "space=finite", "--record", "DATASET"],
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which every file and folder of one is there, also a journal and an error."""
    folder = received_run(tmp_path_factory.mktemp("links") / "run")
    (folder / "errors").mkdir()
    (folder / "errors" / "Conformance-v0.ga.s1.txt").write_text("why")
    journal = folder / "datasets" / "Conformance-v0" / "journal"
    (journal / "left.jsonl").write_text("")
    (folder / "ray" / "1-of-2").mkdir(parents=True)
    (folder / "report_data").mkdir()
    for path in ("live/run.1.json", "queues/run.json", "queues/q/queue.json", "queues/q/w.out"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("{}\n")
    return folder


class _HangsError(BaseException):
    """Not caught by what turns exceptions into messages."""


@pytest.fixture
def no_waiting() -> Iterator[None]:
    def late(number: int, frame: FrameType | None) -> None:
        raise _HangsError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def contents(folder: Path) -> dict[str, str]:
    """A hash of every file below a folder, by path."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    } | {str(path): "" for path in sorted(folder.rglob("*")) if path.is_dir()}


def entries(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def planted(run: Path, name: str, form: str, place: Path) -> tuple[Path, Path]:
    """A copy of a run in which an entry leads out of it; the copy, and the place outside."""
    copy, outside = shutil.copytree(run, place / "run"), place / "outside"
    outside.mkdir()
    path = copy / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if form == "pipe":
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        os.mkfifo(path)
    else:
        target = outside / "target"
        if path.exists():
            shutil.move(path, target)
        else:
            target.write_text("a file of the user")
        path.symlink_to(target)
    return copy, outside


def check(
    run: Path, name: str, form: str, place: Path, call: Callable[..., Called], command: list[str]
) -> None:
    copy, outside = planted(run, name, form, place)
    before = contents(outside)
    (place / "out").mkdir()
    words = [
        word.replace("RUN", str(copy))
        .replace("OUT", str(place / "out"))
        .replace("DATASET", str(copy / "datasets" / "Conformance-v0"))
        for word in command
    ]
    ended = call(*words)
    assert contents(outside) == before
    looked_at = copy / "datasets" / "Conformance-v0" if "--record" in words else copy
    if strange_entry(looked_at):
        assert ended.code == 2
        assert "symbolic link" in ended.err or "pipe" in ended.err
        assert len(ended.err.splitlines()) <= 5
        assert not any((place / "out").iterdir())


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("trials.json", "link"),
        ("datasets/Conformance-v0/journal", "link"),
        ("datasets/Conformance-v0/evaluations", "pipe"),
    ],
)
def test_a_link_or_a_pipe_is_refused(
    command: list[str], name: str, form: str, run: Path, tmp_path: Path, call: Callable[..., Called]
) -> None:
    check(run, name, form, tmp_path, call, command)


NEW = (".lock", ".workers", "report.html", "ray", "errors", ".lock-1-of-2", "comparison.html")


@pytest.mark.nightly
@pytest.mark.parametrize("form", ["link", "pipe"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_no_entry_leads_out(
    command: list[str], form: str, run: Path, tmp_path: Path, call: Callable[..., Called]
) -> None:
    for number, name in enumerate({*entries(run), *NEW, "new/file"}):
        if "DATASET" in command and name in ("datasets", "datasets/Conformance-v0"):
            continue  # on the way to the folder that the user names
        place = tmp_path / str(number)
        place.mkdir()
        check(run, name, form, place, call, command)
        shutil.rmtree(place)


@pytest.mark.usefixtures("no_waiting")
def test_a_recording_does_not_leave_its_folder(tmp_path: Path) -> None:
    env = archgym.make("Conformance-v0", record=tmp_path / "data")
    env.evaluate(env.baseline)
    env.close()
    Dataset(tmp_path / "data").seal()
    (tmp_path / "outside").mkdir()
    journal = tmp_path / "data" / "journal"
    shutil.rmtree(journal)
    journal.symlink_to(tmp_path / "outside")
    with pytest.raises(DatasetError, match="journal is a symbolic link"):
        archgym.make("Conformance-v0", record=tmp_path / "data")
    with pytest.raises(DatasetError, match="journal is a symbolic link"):
        Dataset(tmp_path / "data")
    assert not any((tmp_path / "outside").iterdir())


def test_a_folder_that_the_user_names_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "disk")
    env = archgym.make("Conformance-v0", record=tmp_path / "data")
    env.evaluate(env.baseline)
    env.close()
    assert Dataset(tmp_path / "data").evaluations().num_rows == 1


@pytest.mark.usefixtures("no_waiting")
def test_an_enumeration_does_not_leave_its_folder(tmp_path: Path) -> None:
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / ".lock").symlink_to(tmp_path / "kept")
    with pytest.raises(DatasetError, match="a symbolic link"):
        enumerate_space("Conformance-v0", {"space": "finite"}, tmp_path / "table", workers=1)
    assert not (tmp_path / "kept").exists()
    os.mkfifo(tmp_path / "pipe.parquet")
    with pytest.raises(DatasetError, match="there is no table"):
        archgym.make("Conformance-v0", simulator=f"tabular:{tmp_path / 'pipe.parquet'}")


@pytest.mark.usefixtures("no_waiting")
def test_no_command_waits_for_a_pipe(tmp_path: Path, call: Callable[..., Called]) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    os.mkfifo(tmp_path / "pipe.parquet")
    (tmp_path / "plain.yaml").write_text(experiment_yaml(small()))
    for words in (
        ["run", pipe, "--local"],
        ["run", tmp_path / "plain.yaml", "--local", "--out", pipe],
        ["evaluate", "DRAM-v0", "--workload", pipe],
        ["evaluate", "DRAM-v0", "--set", f"memory={pipe}"],
        ["evaluate", "Conformance-v0", "--simulator", f"proxy:{pipe}"],
        ["evaluate", "Conformance-v0", "--simulator", f"tabular:{pipe}"],
        ["evaluate", "Accelerator-v0", "--workload", pipe],
        ["evaluate", "TPE-v0", "--set", f"technology={pipe}"],
        ["dataset", "info", pipe],
        ["best", pipe],
        ["validate", "DRAM-v0", "--reference", pipe],
        ["validate", "LLMServing-v0", "--reference", tmp_path / "pipe.parquet"],
        ["proxy", "evaluate", pipe, tmp_path],
    ):
        ended = call(*words)
        assert ended.code == 2, words
        assert len(ended.err.splitlines()) <= 5
