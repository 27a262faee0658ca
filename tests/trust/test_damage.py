"""Damage to a run is noticed: by validate, and by resuming, which refuses or makes it whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from archgym.errors import ArchgymError
from archgym.experiment import RunOptions, run_experiment
from archgym.experiment.run import run as module
from tests.cli.conftest import Called
from tests.experiment.experiments import assert_equal_runs, small

QUIET = RunOptions(local=True, quiet=True)
RESUME = RunOptions(local=True, quiet=True, resume=True)
NAME = "datasets/Conformance-v0"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damage") / "whole"
    run_experiment(small(), folder, QUIET)
    return folder


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was killed before its journals became Parquet."""
    folder = tmp_path_factory.mktemp("damage") / "interrupted"
    with pytest.MonkeyPatch.context() as patch:
        seen = [0]

        def killed(*arguments: object) -> dict[str, str]:
            seen[0] += 1
            if seen[0] > 1:
                raise KeyboardInterrupt
            return {}

        patch.setattr(module, "_sealed_states", killed)
        with pytest.raises(KeyboardInterrupt):
            run_experiment(small(), folder, QUIET)
    assert any((folder / NAME / "journal").iterdir())
    return folder


def part(run: Path) -> Path:
    (path,) = (run / NAME / "evaluations").glob("*.parquet")
    return path


def journal(run: Path) -> Path:
    (path,) = (run / NAME / "journal").glob("*.jsonl")
    return path


def changed_byte(share: float, run: Path) -> None:
    """Changes the byte at that share of the length of the file of evaluations."""
    content = bytearray(part(run).read_bytes())
    content[int(share * (len(content) - 1))] ^= 0x15
    part(run).write_bytes(content)


def altered_lines(run: Path, change: Callable[[list[str]], object]) -> None:
    lines = journal(run).read_text().splitlines(keepends=True)
    change(lines)
    journal(run).write_text("".join(lines))


def with_digit(lines: list[str]) -> None:
    """One digit of a metric is another one."""
    number = next(i for i, line in enumerate(lines) if line.startswith("[") and i > 4)
    place = lines[number].index("],[") + 5
    while not lines[number][place].isdigit():
        place += 1
    digit = str((int(lines[number][place]) + 1) % 10)
    lines[number] = lines[number][:place] + digit + lines[number][place + 1 :]


FINISHED: dict[str, Callable[[Path], object]] = {
    "a file of evaluations deleted": lambda run: part(run).unlink(),
    "all evaluations deleted": lambda run: shutil.rmtree(run / NAME / "evaluations"),
    "the table of trials deleted": lambda run: shutil.rmtree(run / NAME / "trials"),
    "the sidecar deleted": lambda run: (run / NAME / "dataset.json").unlink(),
    "a file twice": lambda run: shutil.copy(part(run), part(run).with_name("other.parquet")),
    "a file renamed": lambda run: part(run).rename(part(run).with_name("other.parquet")),
    "a file cut": lambda run: part(run).write_bytes(part(run).read_bytes()[:-100]),
    "a file empty": lambda run: part(run).write_bytes(b""),
    **{f"a byte at {s}": partial(changed_byte, s) for s in (0.1, 0.4, 0.7, 0.95)},
}
INTERRUPTED: dict[str, Callable[[list[str]], object]] = {
    "a line lost": lambda lines: lines.pop(5),
    "a line doubled": lambda lines: lines.insert(5, lines[5]),
    "lines swapped": lambda lines: lines.insert(5, lines.pop(6)),
    "the last rows of a trial lost": lambda lines: lines.pop(12),
    "a digit changed": with_digit,
    "a beginning changed": lambda lines: lines.__setitem__(
        0, lines[0].replace('"seed":0', '"seed":9')
    ),
    "a line cut in the middle": lambda lines: lines.__setitem__(7, lines[7][:20]),
    "a line emptied": lambda lines: lines.__setitem__(7, "\n"),
    "an end says something else": lambda lines: lines.__setitem__(
        13, lines[13].replace("finished", "closed")
    ),
}


def noticed(run: Path, whole: Path, call: Callable[..., Called]) -> None:
    shown = call("dataset", "validate", run)
    assert shown.code in (1, 2), shown.out
    refused = ""
    try:
        run_experiment(small(), run, RESUME)
    except ArchgymError as error:
        refused = str(error)
    if refused:
        assert any(words in refused for words in ("damaged", "cannot read", "is not JSON"))
    else:
        assert_equal_runs(run, whole)


@pytest.mark.parametrize("damage", FINISHED)
def test_damage_to_a_finished_run(
    damage: str, whole: Path, tmp_path: Path, call: Callable[..., Called]
) -> None:
    run = shutil.copytree(whole, tmp_path / "run")
    FINISHED[damage](run)
    noticed(run, whole, call)


@pytest.mark.parametrize("damage", INTERRUPTED)
def test_damage_to_an_interrupted_run(
    damage: str, interrupted: Path, whole: Path, tmp_path: Path, call: Callable[..., Called]
) -> None:
    run = shutil.copytree(interrupted, tmp_path / "run")
    altered_lines(run, INTERRUPTED[damage])
    noticed(run, whole, call)


def test_an_interrupted_run_goes_on(interrupted: Path, whole: Path, tmp_path: Path) -> None:
    run = shutil.copytree(interrupted, tmp_path / "run")
    run_experiment(small(), run, RESUME)
    assert_equal_runs(run, whole)


def test_a_removed_dataset_is_run_again(whole: Path, tmp_path: Path) -> None:
    run = shutil.copytree(whole, tmp_path / "run")
    shutil.rmtree(run / NAME)
    run_experiment(small(), run, RESUME)
    assert_equal_runs(run, whole)


def repaired(run: Path, whole: Path, call: Callable[..., Called]) -> int:
    """Repairs a run and goes on with it; how many evaluations were kept."""
    shown = call("dataset", "repair", run, "--json")
    if shown.code == 2:  # nothing can be kept
        shutil.rmtree(run / NAME)
        kept = 0
    else:
        ((kept,),) = [[one["kept"]] for one in shown.json]
        assert call("dataset", "validate", run).code == 0
        assert (run / NAME / "damaged").is_dir()
    run_experiment(small(), run, RESUME)
    assert_equal_runs(run, whole)
    return kept


ROWS = 48


@pytest.mark.parametrize("damage", [name for name in FINISHED if name != "the sidecar deleted"])
def test_a_finished_run_is_repaired(
    damage: str, whole: Path, tmp_path: Path, call: Callable[..., Called]
) -> None:
    run = shutil.copytree(whole, tmp_path / "run")
    FINISHED[damage](run)
    kept = repaired(run, whole, call)
    if damage == "a file twice":
        assert kept >= ROWS


@pytest.mark.parametrize("damage", INTERRUPTED)
def test_an_interrupted_run_is_repaired(
    damage: str, interrupted: Path, whole: Path, tmp_path: Path, call: Callable[..., Called]
) -> None:
    run = shutil.copytree(interrupted, tmp_path / "run")
    altered_lines(run, INTERRUPTED[damage])
    assert repaired(run, whole, call) >= ROWS - 12  # only one trial is touched


def test_a_repair_may_be_interrupted(
    interrupted: Path,
    whole: Path,
    tmp_path: Path,
    call: Callable[..., Called],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for moves in range(4):
        run = shutil.copytree(interrupted, tmp_path / str(moves))
        left, rename = [moves], os.rename

        def killed(
            source: Path, target: Path, left: list[int] = left, rename: Any = rename
        ) -> None:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            rename(source, target)

        with monkeypatch.context() as patch:
            patch.setattr("archgym.validation.repair.os.rename", killed)
            call("dataset", "repair", run)
        repaired(run, whole, call)
