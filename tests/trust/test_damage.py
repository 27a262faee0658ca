"""Damage to a run is noticed: by validate, and by resuming, which refuses or makes it whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from archgym.data import Dataset, equal_trajectories
from archgym.errors import ArchgymError
from archgym.experiment import Experiment, RunOptions, run_experiment
from archgym.experiment.run import run as module
from tests.cli.conftest import Called
from tests.experiment.experiments import assert_equal_runs, small
from tests.trust.damages import FINISHED, INTERRUPTED, NAME, Damage, journal, lines

QUIET = RunOptions(local=True, quiet=True)
RESUME = RunOptions(local=True, quiet=True, resume=True)
REASONS = ("damaged", "cannot read", "is not JSON", "symbolic link", "pipe", "no run to resume")
MANIFESTED = ("experiment.yaml", "trials.json", "initial_designs.json")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damage") / "whole"
    run_experiment(small(), folder, QUIET)
    return folder


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was killed before its journals became Parquet."""
    folder = tmp_path_factory.mktemp("damage") / "interrupted"
    interrupt(small(), folder)
    return folder


def interrupt(experiment: Experiment, folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        seen = [0]

        def killed(*arguments: object) -> dict[str, str]:
            seen[0] += 1
            if seen[0] > 1:
                raise KeyboardInterrupt
            return {}

        patch.setattr(module, "_sealed_states", killed)
        with pytest.raises(KeyboardInterrupt):
            run_experiment(experiment, folder, QUIET)
    assert any((folder / NAME / "journal").iterdir())


@pytest.fixture(scope="module")
def other_whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damage") / "other_whole"
    run_experiment(small(seeds=[5, 6]), folder, QUIET)
    return folder


@pytest.fixture(scope="module")
def other_interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damage") / "other_interrupted"
    interrupt(small(seeds=[5, 6]), folder)
    return folder


def damaged(run: Path, another: Path, place: Path, damage: Damage) -> Path:
    """A copy of a run with damage to it."""
    shutil.copytree(another, place / "another")
    copy = shutil.copytree(run, place / "run")
    damage(copy)
    return copy


def noticed(run: Path, whole: Path, call: Callable[..., Called]) -> None:
    """Validate says so; resuming is right, or refused with the reason."""
    shown = call("dataset", "validate", run)
    assert shown.code in (1, 2), shown.out
    assert len(shown.err.splitlines()) <= 5
    refused = ""
    try:
        run_experiment(small(), run, RESUME)
    except ArchgymError as error:
        refused = str(error)
    if refused:
        assert any(words in refused for words in REASONS), refused
    else:
        assert_equal_runs(run, whole)
        again = call("dataset", "validate", run)
        # A damaged log stays one: it is the only record of when trials ran.
        assert again.code == 0 or "run: log/" in again.out, again.out


def repaired(run: Path, whole: Path, call: Callable[..., Called]) -> int:
    """Repairs a dataset and goes on with its run; how many evaluations were kept.

    What lies beside datasets is not repaired, but written anew.
    """
    shown = call("dataset", "repair", run, "--json")
    kept = 0
    if shown.code == 2:  # nothing can be kept
        assert len(shown.err.splitlines()) <= 5
        shutil.rmtree(run / NAME, ignore_errors=True)
    else:
        ((kept, aside),) = [[one["kept"], one["set_aside"]] for one in shown.json]
        checks = call("dataset", "validate", run / NAME)
        assert checks.code == 0, checks.out
        assert aside is None or (run / NAME / "damaged").is_dir()
    for name in MANIFESTED:  # as whoever knows what it was would put it back
        if (run / name).is_dir():
            (run / name).rmdir()
        (run / name).unlink(missing_ok=True)
        shutil.copy(whole / name, run / name)
    (run / "checksums.json").unlink(missing_ok=True)
    run_experiment(small(), run, RESUME)
    assert_equal_runs(run, whole)
    return kept


def short(damages: dict[str, Damage]) -> list[Any]:
    """Every eighth in the short tests, the others in the nightly ones."""
    return [
        name if number % 8 == 0 else pytest.param(name, marks=pytest.mark.nightly)
        for number, name in enumerate(damages)
    ]


@pytest.mark.parametrize("damage", short(FINISHED))
def test_damage_to_a_finished_run(
    damage: str, whole: Path, other_whole: Path, tmp_path: Path, call: Callable[..., Called]
) -> None:
    noticed(damaged(whole, other_whole, tmp_path, FINISHED[damage]), whole, call)


@pytest.mark.parametrize("damage", short(INTERRUPTED))
def test_damage_to_an_interrupted_run(
    damage: str,
    interrupted: Path,
    other_interrupted: Path,
    whole: Path,
    tmp_path: Path,
    call: Callable[..., Called],
) -> None:
    noticed(damaged(interrupted, other_interrupted, tmp_path, INTERRUPTED[damage]), whole, call)


def test_there_are_enough_kinds_of_damage() -> None:
    assert len(FINISHED) >= 60
    assert len(INTERRUPTED) >= 40


def test_an_interrupted_run_goes_on(interrupted: Path, whole: Path, tmp_path: Path) -> None:
    run = shutil.copytree(interrupted, tmp_path / "run")
    run_experiment(small(), run, RESUME)
    assert_equal_runs(run, whole)


def test_a_sound_dataset_is_left_alone(
    whole: Path, tmp_path: Path, call: Callable[..., Called]
) -> None:
    run = shutil.copytree(whole, tmp_path / "run")
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for _ in range(2):
        shown = call("dataset", "repair", run)
        assert shown.code == 0
        assert "nothing is damaged" in shown.out
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_a_removed_dataset_is_run_again(whole: Path, tmp_path: Path) -> None:
    run = shutil.copytree(whole, tmp_path / "run")
    shutil.rmtree(run / NAME)
    run_experiment(small(), run, RESUME)
    assert_equal_runs(run, whole)


ROWS = 48


@pytest.mark.parametrize("damage", short(FINISHED))
def test_a_finished_run_is_repaired(
    damage: str, whole: Path, other_whole: Path, tmp_path: Path, call: Callable[..., Called]
) -> None:
    run = damaged(whole, other_whole, tmp_path, FINISHED[damage])
    kept = repaired(run, whole, call)
    if damage == "evaluations twice":
        assert kept >= ROWS


@pytest.mark.parametrize("damage", short(INTERRUPTED))
def test_an_interrupted_run_is_repaired(
    damage: str,
    interrupted: Path,
    other_interrupted: Path,
    whole: Path,
    tmp_path: Path,
    call: Callable[..., Called],
) -> None:
    run = damaged(interrupted, other_interrupted, tmp_path, INTERRUPTED[damage])
    kept = repaired(run, whole, call)
    if not damage.startswith(
        ("journal", "sidecar", "zeros", "a byte", "rows of two", "beginnings")
    ):
        assert kept >= ROWS - 12  # only one trial is touched


def test_a_repair_may_be_interrupted(
    interrupted: Path,
    whole: Path,
    tmp_path: Path,
    call: Callable[..., Called],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for moves in range(4):
        run = shutil.copytree(interrupted, tmp_path / str(moves))
        INTERRUPTED["a row lost"](run)
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


@pytest.fixture(scope="module")
def several() -> Experiment:
    """Three workers whose outcomes come in any order; rows say which worker and when."""
    duration = {"log_normal": {"median": 60, "sigma": 1, "seed": 0}}
    return small(simulation={"workers": 3, "clock": "simulated", "duration": duration})


OF_WORKERS: dict[str, Damage] = {
    "": lambda run: None,
    "another worker": partial(
        lines,
        lambda found: found.__setitem__(
            5, found[5].replace(",3,", ",4,").replace("worker 1", "worker 2")
        ),
    ),
    "a field lost": partial(
        lines, lambda found: found.__setitem__(5, found[5].rpartition(",")[0] + "]\n")
    ),
    **{name: INTERRUPTED[name] for name in ("a row lost", "a row doubled", "rows swapped")},
    **{name: INTERRUPTED[name] for name in ("a digit", "another seed", "a row cut", "another end")},
}


@pytest.mark.parametrize("damage", OF_WORKERS)
def test_damage_to_a_run_of_several_workers(
    damage: str, several: Experiment, tmp_path: Path, call: Callable[..., Called]
) -> None:
    run, whole = tmp_path / "run", tmp_path / "whole"
    run_experiment(several, whole, QUIET)
    interrupt(several, run)
    before = journal(run).read_text()
    OF_WORKERS[damage](run)
    changed = journal(run).read_text() != before
    shown = call("dataset", "validate", run)
    assert (shown.code != 0) == changed, shown.out
    call("dataset", "repair", run)
    kept = Dataset(run / NAME).evaluations()
    assert ROWS - 12 * changed <= len(kept) <= ROWS  # only one trial is touched
    run_experiment(several, run, RESUME)
    assert call("dataset", "validate", run).code == 0
    for folder in (run, whole):  # the simulated clock begins anew, so what follows may differ
        rows = Dataset(folder / NAME).evaluations()
        assert len(rows) == ROWS
        first = pa.concat_tables(
            rows.filter(pc.field("trial_id") == one["values"]).slice(0, one["counts"])
            for one in kept["trial_id"].value_counts().to_pylist()
        )
        assert equal_trajectories(first, kept)
