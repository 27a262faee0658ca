"""Runs in parts with a library, and what of a run is found in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from archgym.data import Dataset
from archgym.experiment import RunOptions, read_experiment, run_experiment
from archgym.history.library import Library


def run(
    out: Path, library: Path | None, *, seeds: int = 2, quiet: bool = True, **options: Any
) -> None:
    data = {
        "name": "small",
        "budget": 10,
        "seeds": seeds,
        "library": library and str(library),
        "environments": [
            {"id": "Conformance-v0", "space": "finite"},
            {"id": "Conformance-v0", "objective": "minimize energy_pj"},
        ],
        "agents": [{"name": "random"}],
    }
    run_experiment(read_experiment(data), out, RunOptions(local=True, quiet=quiet, **options))


def histories(out: Path) -> list[str | None]:
    return [
        text
        for folder in sorted((out / "datasets").iterdir())
        for text in Dataset(folder).trials()["history"].to_pylist()
    ]


def test_a_run_in_parts_joins_when_its_last_part_has_ended(tmp_path: Path) -> None:
    library = Library.make(tmp_path / "library")
    run(tmp_path / "first", library.folder)
    run(tmp_path / "parts", library.folder, shard=(1, 2))
    assert len(Library(library.folder).entries) == 1  # half of it is missing
    run(tmp_path / "other", library.folder)  # the second part does not learn from this
    run(tmp_path / "parts", library.folder, shard=(2, 2))
    assert [Path(entry.path).name for entry in Library(library.folder).entries] == [
        "parts",
        "other",
        "first",
    ]
    found = histories(tmp_path / "parts")
    assert len(found) == 4
    assert len(set(found)) == 2  # one an environment
    assert None not in found


def test_a_library_that_fails_at_the_end_spoils_no_run(tmp_path: Path) -> None:
    library = Library.make(tmp_path / "library")
    (tmp_path / "library").rename(tmp_path / "moved")
    run(tmp_path / "run", tmp_path / "moved", seeds=1)
    assert (tmp_path / "run" / "results" / "summary.json").exists()
    assert Library(tmp_path / "moved").entries == library.entries == []


def test_a_run_goes_on_when_its_library_is_gone(tmp_path: Path) -> None:
    library = Library.make(tmp_path / "library")
    run(tmp_path / "first", library.folder)
    run(tmp_path / "run", library.folder)
    found = histories(tmp_path / "run")
    (tmp_path / "library").rename(tmp_path / "moved")
    run(tmp_path / "run", library.folder, seeds=3, resume=True)
    assert set(histories(tmp_path / "run")) == set(found)
    assert None not in found


def test_the_folder_of_a_run_does_not_decide_which_library_is_written_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "received", None)
    library = Library.make(tmp_path / "library")
    experiment = tmp_path / "received" / "experiment.yaml"
    experiment.write_text(f"library: {library.folder}\n{experiment.read_text()}")
    (tmp_path / "received" / "checksums.json").unlink()
    capsys.readouterr()
    run(tmp_path / "received", None, seeds=3, resume=True, quiet=False)
    assert Library(library.folder).entries == []
    said = " ".join(capsys.readouterr().err.split())
    assert f"not added to the library '{library.folder}', which is named in the folder" in said
    run(tmp_path / "received", library.folder, seeds=3, resume=True)
    assert len(Library(library.folder).entries) == 1


def test_what_a_library_gives_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library = Library.make(tmp_path / "library")
    run(tmp_path / "first", library.folder)
    run(tmp_path / "gone", library.folder)
    (tmp_path / "gone").rename(tmp_path / "elsewhere")
    capsys.readouterr()
    run(tmp_path / "run", library.folder, quiet=False)
    said = " ".join(capsys.readouterr().err.split())
    assert "searches learn from 1 of 2 entries, 1 of which cannot be read" in said


@pytest.mark.full
def test_learners_learn_from_a_library_while_designs_are_in_flight(tmp_path: Path) -> None:
    library = Library.make(tmp_path / "library")
    data = {
        "name": "learners",
        "budget": 30,
        "library": str(library.folder),
        "environments": [{"id": "Conformance-v0", "space": "finite"}],
        "agents": [{"name": name} for name in ("ppo", "dqn", "sac", "ippo")],
        "simulation": {"workers": 2},
    }
    options = RunOptions(local=True, quiet=True)
    for name in ("first", "second"):
        result = run_experiment(read_experiment(data), tmp_path / name, options)
        assert not result.failures
    assert None not in histories(tmp_path / "second")
