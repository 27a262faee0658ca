"""A library of runs: what is found in it, what is not followed, what several processes leave."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import archgym
from archgym.data.journal import with_checksum
from archgym.errors import DatasetError, InvalidValueError
from archgym.history.library import Library
from archgym.history.library_index import INDEX
from tests.helpers import Adder


class Edited(Adder):
    """The same under another version."""

    version = "99"


class Scaled(Adder):
    """The same with a setting."""

    def __init__(self, *, factor: int = 1, **arguments: Any) -> None:
        self.factor = factor
        super().__init__(**arguments)

    @property
    def settings(self) -> dict[str, Any]:
        return {**super().settings, "factor": self.factor}


def record(folder: Path, kind: type[Adder] = Adder, **arguments: Any) -> Path:
    env = kind(record=folder, **arguments)
    designs = [{"x": x, "y": 1, "mode": "plain"} for x in range(3)]
    env.evaluate_batch(designs)
    env.close()
    return folder


def conformance(folder: Path, **arguments: Any) -> Path:
    env = archgym.make("Conformance-v0", record=folder, **arguments)
    env.evaluate_batch([dict(env.baseline)])
    env.close()
    return folder


def names(library: Library, env: archgym.Environment, **keywords: Any) -> list[str]:
    return [path.name for path in library.find(env, **keywords)]


def append(library: Path, data: dict[str, Any]) -> None:
    with (library / INDEX).open("ab") as file:
        file.write(with_checksum(data, 0)[0])


def test_an_entry_says_what_a_folder_holds(tmp_path: Path) -> None:
    library = Library.make(tmp_path / "library")
    entry = library.add(record(tmp_path / "run"))
    (held,) = entry.problems
    assert entry.path == str(tmp_path / "run")
    assert (held.rows, entry.rows) == (3, 3)
    assert held.environment == Adder().name
    assert held.parameters == list(Adder.design_space.names)
    assert held.metrics == {metric.name: metric.unit for metric in Adder.metrics}
    assert Library(tmp_path / "library").entries == [entry]


def test_the_same_problem_comes_first_and_then_the_newest(tmp_path: Path) -> None:
    library = Library.make(tmp_path / "library")
    library.add(record(tmp_path / "double", Scaled, factor=2))
    library.add(record(tmp_path / "old", Scaled))
    library.add(record(tmp_path / "new", Scaled, objective="maximize total_ns"))
    library.add(record(tmp_path / "double-2", Scaled, factor=2))
    library.add(conformance(tmp_path / "other"))
    assert names(library, Scaled()) == ["new", "old", "double-2", "double"]
    double = Scaled(factor=2)
    assert names(library, double) == ["double-2", "double", "new", "old"]
    assert names(library, double, limit=2) == ["double-2", "double"]
    assert names(library, double, without=[tmp_path / "double-2"])[0] == "double"
    assert names(library, archgym.make("Conformance-v0")) == ["other"]
    library.add(tmp_path / "old")  # again: it is the newest now, and there once
    assert names(library, Scaled())[:2] == ["old", "new"]
    assert len(library.entries) == 5
    with pytest.raises(InvalidValueError, match="limit is 0"):
        library.find(double, limit=0)


def test_why_an_entry_does_not_fit_is_said(tmp_path: Path) -> None:
    library = Library.make(tmp_path / "library")
    entry = library.add(record(tmp_path / "run"))
    assert library.misfit(entry, Adder()) == ""
    assert library.misfit(entry, archgym.make("Conformance-v0")) == f"it is of {Adder().name}"
    held = record(tmp_path / "open", Adder)
    env = Adder(record=held)
    env.evaluate({"x": 4, "y": 1, "mode": "plain"})  # its journal is open
    with pytest.raises(DatasetError, match="a process still writes to it"):
        library.add(held)
    env.close()
    library.add(held)
    shutil.rmtree(held)
    gone = library.entries[0]
    assert library.misfit(gone, Adder()) == "it is not there any more"
    (tmp_path / "run" / "dataset.json").write_text("{")
    assert "it is damaged" in library.misfit(entry, Adder())
    assert library.find(Adder()) == []


def test_pruning_removes_entries_only(tmp_path: Path) -> None:
    library = Library.make(tmp_path / "library")
    for name in ("gone", "kept"):
        library.add(record(tmp_path / name))
    library.add(record(tmp_path / "edited", Edited))
    library.add(conformance(tmp_path / "else"))
    shutil.rmtree(tmp_path / "gone")
    (gone,) = library.prunable()
    assert gone[1] == "it is not there any more"
    of_adder = list(library.prunable(environment=Adder()))
    assert [Path(entry.path).name for entry, _ in of_adder] == ["gone"]
    of_edited = {Path(e.path).name: why for e, why in library.prunable(environment=Edited())}
    assert of_edited.keys() == {"gone"}  # edited is of another environment name
    library.remove([entry for entry, _ in of_adder])
    assert [Path(entry.path).name for entry in library.entries] == ["else", "edited", "kept"]
    assert len(list(library.prunable(days=0.0))) == 3
    assert not list(library.prunable(days=1.0))
    assert (tmp_path / "kept" / "dataset.json").exists()


def test_entries_of_another_version_of_a_simulator_are_found_by_pruning(tmp_path: Path) -> None:
    library = Library.make(tmp_path / "library")
    library.add(record(tmp_path / "run"))
    lines = (tmp_path / "library" / INDEX).read_bytes().splitlines(keepends=True)
    data = json.loads(lines[1])
    del data["crc"]
    data["problems"][0]["source_sha256"] = "0" * 64
    (tmp_path / "library" / INDEX).write_bytes(lines[0])
    append(tmp_path / "library", data)
    ((_, why),) = Library(tmp_path / "library").prunable(environment=Adder())
    assert why == "the source of the simulator has changed since"


def test_a_moved_library_follows_only_what_lies_inside(tmp_path: Path) -> None:
    library = Library.make(tmp_path / "library")
    library.add(record(tmp_path / "outside"))
    inside = library.add(record(tmp_path / "library" / "runs" / "inside"))
    assert inside.path == "runs/inside"
    assert names(library, Adder()) == ["inside", "outside"]
    (tmp_path / "library").rename(tmp_path / "moved")
    moved = Library(tmp_path / "moved")
    assert names(moved, Adder()) == ["inside"]
    outside = next(entry for entry in moved.entries if entry.path != inside.path)
    assert "it is not followed" in moved.problem_of(outside)
    with pytest.raises(DatasetError, match="made by somebody else or in another place"):
        moved.add(tmp_path / "outside")
    assert not list(moved.prunable())  # what is not followed is not looked at


def test_paths_lead_nowhere_by_links_or_dots(tmp_path: Path) -> None:
    library = Library.make(tmp_path / "library")
    entry = library.add(record(tmp_path / "outside"))
    (tmp_path / "library" / "link").symlink_to(tmp_path / "outside")
    problems = json.loads(
        (tmp_path / "library" / INDEX).read_bytes().splitlines()[1],
    )["problems"]
    library.remove([entry])
    for path in ("../outside", "link"):
        append(tmp_path / "library", {"path": path, "added": "", "problems": problems})
    again = Library(tmp_path / "library")
    assert [bool(again.problem_of(one)) for one in again.entries] == [True, True]
    assert again.find(Adder()) == []


def test_an_index_that_is_a_link_is_neither_read_nor_written(tmp_path: Path) -> None:
    library = Library.make(tmp_path / "library")
    victim = tmp_path / "victim"
    shutil.copy(tmp_path / "library" / INDEX, victim)
    before = victim.read_bytes()
    (tmp_path / "library" / INDEX).unlink()
    (tmp_path / "library" / INDEX).symlink_to(victim)
    with pytest.raises(DatasetError, match="cannot write to the library"):
        library.add(record(tmp_path / "run"))
    with pytest.raises(DatasetError, match="cannot read the library"):
        Library(tmp_path / "library")
    assert victim.read_bytes() == before


def test_damaged_lines_are_passed_over_and_pruned(tmp_path: Path) -> None:
    library = Library.make(tmp_path / "library")
    for name in ("a", "b", "c"):
        library.add(record(tmp_path / name))
    index = tmp_path / "library" / INDEX
    lines = index.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"rows":3', b'"rows":9')  # changed
    index.write_bytes(b"".join(lines)[:-7])  # and cut off
    again = Library(tmp_path / "library")
    assert (again.damaged, names(again, Adder())) == (2, ["a"])
    again.add(tmp_path / "c")  # what was cut off does not spoil it
    assert names(again, Adder()) == ["c", "a"]
    again.remove([])
    assert (again.damaged, names(again, Adder())) == (0, ["c", "a"])
    wrong = {"path": 5, "added": "", "problems": []}
    append(tmp_path / "library", wrong)
    assert Library(tmp_path / "library").damaged == 1
    index.write_bytes(b"\0" * 1000)
    assert Library(tmp_path / "library").entries == []


def test_what_is_no_library_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"there is no library in .*archgym history add"):
        Library(tmp_path)
    run = record(tmp_path / "run")
    with pytest.raises(DatasetError, match="is a run or a dataset, not a library"):
        Library.make(run)
    library = Library.make(tmp_path / "library")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match="neither a run nor a dataset"):
        library.add(tmp_path / "empty")


def add_some(library: str, folder: str, times: int) -> None:
    for _ in range(times):
        Library(library).add(folder)


def test_several_processes_add_at_a_time(tmp_path: Path) -> None:
    Library.make(tmp_path / "library")
    folders = [record(tmp_path / name) for name in ("a", "b", "c")]
    start = multiprocessing.get_context("fork").Process
    library = str(tmp_path / "library")
    adding = [start(target=add_some, args=(library, str(one), 5)) for one in folders]
    for process in adding:
        process.start()
    for process in adding:
        process.join(60)
        assert process.exitcode == 0
    lines = (tmp_path / "library" / INDEX).read_bytes().splitlines()
    assert len(lines) == 16
    found = Library(tmp_path / "library")
    assert (found.damaged, len(found.entries)) == (0, 3)
    assert sorted(os.listdir(tmp_path / "library")) == [".library.lock", INDEX]


def test_a_folder_whose_rows_were_changed_is_not_found(tmp_path: Path) -> None:
    library = Library.make(tmp_path / "library")
    for name in ("sound", "changed"):
        library.add(record(tmp_path / name))
    assert names(library, Adder()) == ["changed", "sound"]
    (part,) = (tmp_path / "changed").glob("evaluations/*.parquet")
    pq.write_table(pq.read_table(part), part)  # other bytes, though the same rows
    assert names(library, Adder()) == ["sound"]
    assert "its checksum is another one" in library.misfit(library.entries[0], Adder())
