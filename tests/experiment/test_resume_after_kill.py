"""A run goes on from wherever it was killed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from archgym.experiment import RunOptions, run_experiment
from tests.experiment.experiments import assert_equal_runs, small

QUIET = RunOptions(local=True, quiet=True)
RESUME = RunOptions(local=True, quiet=True, resume=True)


def only_folder(dataset: Path) -> None:
    for path in sorted(dataset.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def unfinished_sidecar(dataset: Path) -> None:
    only_folder(dataset)
    (dataset / ".sidecar-x1").write_text('{"format": 1, "design')


def no_dataset(dataset: Path) -> None:
    only_folder(dataset)
    dataset.rmdir()


@pytest.mark.parametrize("left", [only_folder, unfinished_sidecar, no_dataset])
def test_killed_before_a_dataset_has_its_sidecar(
    left: Callable[[Path], None], tmp_path: Path
) -> None:
    run_experiment(small(), tmp_path / "whole", QUIET)
    run_experiment(small(), tmp_path / "run", QUIET)
    for name in ("results.json", "best_so_far.png"):
        (tmp_path / "run" / name).unlink()
    for path in (tmp_path / "run" / "log").iterdir():
        path.unlink()
    left(tmp_path / "run" / "datasets" / "Conformance-v0")
    run_experiment(small(), tmp_path / "run", RESUME)
    assert_equal_runs(tmp_path / "run", tmp_path / "whole")
