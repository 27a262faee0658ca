"""``archgym history``, and runs with a library."""

from __future__ import annotations

import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import archgym
from archgym.data import Dataset
from archgym.data.journal import with_checksum
from archgym.history.library import Library
from archgym.history.library_index import INDEX


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    data = {
        "name": "small",
        "budget": 12,
        "environments": [{"id": "Conformance-v0", "space": "finite"}],
        "agents": [{"name": "random"}],
    }
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


def run(call: Any, experiment: Path, out: Path, *more: str | Path) -> Any:
    found = call("run", experiment, "--local", "--out", out, *more)
    assert found.code == 0, found.err
    return found


def learned(out: Path) -> list[Any]:
    """What the trials of a run say of their history."""
    (folder,) = (out / "datasets").iterdir()
    return list(Dataset(folder).trials()["history"].to_pylist())


def test_a_run_joins_its_library_and_the_next_one_learns_from_it(
    call: Any, experiment: Path, tmp_path: Path
) -> None:
    library = tmp_path / "library"
    assert call("history", "add", "--library", library).code == 0
    first = run(call, experiment, tmp_path / "first", "--library", library)
    assert learned(tmp_path / "first") == [None]
    assert "added to the library" in first.err
    second = run(call, experiment, tmp_path / "second", "--library", library)
    assert all(learned(tmp_path / "second"))
    assert "1 source" in second.err
    listed = call("history", "list", "--library", library, "--json").json
    assert [Path(entry["path"]).name for entry in listed] == ["second", "first"]
    assert [entry["rows"] for entry in listed] == [12, 12]


def test_the_library_is_given_by_option_experiment_or_variable(
    call: Any, experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    libraries = [tmp_path / name for name in ("option", "file", "variable")]
    for library in libraries:
        Library.make(library)
    monkeypatch.setenv("ARCHGYM_LIBRARY", str(libraries[2]))

    def entries() -> list[int]:
        return [len(Library(library).entries) for library in libraries]

    run(call, experiment, tmp_path / "a")
    assert entries() == [0, 0, 1]
    run(call, experiment, tmp_path / "b", "--set", f"library={libraries[1]}")
    assert entries() == [0, 1, 1]
    run(
        call, experiment, tmp_path / "c", "--set", f"library={libraries[1]}",
        "--library", libraries[0],
    )  # fmt: skip
    assert entries() == [1, 1, 1]
    run(call, experiment, tmp_path / "d", "--set", "library=''")
    run(call, experiment, tmp_path / "e", "--library", "")
    assert entries() == [1, 1, 1]
    assert "which library" in call("history", "list", "--library", "").err
    assert len(call("history", "list", "--json").json) == 1


def test_a_resumed_run_learns_from_what_it_found_at_first(
    call: Any, experiment: Path, tmp_path: Path
) -> None:
    library = Library.make(tmp_path / "library")
    run(call, experiment, tmp_path / "first", "--library", library.folder)
    run(call, experiment, tmp_path / "second", "--library", library.folder)
    run(call, experiment, tmp_path / "third", "--library", library.folder)
    more = ("--resume", "--set", "seeds=2")
    run(call, experiment, tmp_path / "second", "--library", library.folder, *more)
    one, two = learned(tmp_path / "second")
    assert one == two  # the third run came later
    run(call, experiment, tmp_path / "second", "--resume", "--set", "seeds=3")
    assert learned(tmp_path / "second") == [one] * 3
    newest = Library(library.folder).entries[0]
    assert (Path(newest.path).name, newest.rows) == ("second", 24)  # no library was named
    run(
        call, experiment, tmp_path / "second", "--library", library.folder, "--resume", "--set",
        "seeds=4",
    )  # fmt: skip
    newest = Library(library.folder).entries[0]
    assert (Path(newest.path).name, newest.rows) == ("second", 48)


def test_a_library_that_is_not_there_is_refused_before_anything_runs(
    call: Any, experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ("run", experiment, "--local", "--out", tmp_path / "o")
    found = call(*command, "--library", tmp_path / "x")
    assert found.code == 2
    assert "library: there is no library in" in " ".join(found.err.split())
    Library.make(tmp_path / "library")
    assert f"Did you mean '{tmp_path}/library'?" in call(*command, "--library", "libary").err
    monkeypatch.setenv("ARCHGYM_LIBRARY", str(tmp_path / "nolib"))
    assert "ARCHGYM_LIBRARY: there is no library in" in call(*command).err
    assert not (tmp_path / "o").exists()
    run(call, experiment, tmp_path / "o", "--library", "")
    of_a_run = call("history", "list", "--library", tmp_path / "o")
    assert "/o, which is a run or a dataset: choose another folder" in of_a_run.err


def test_add_list_and_prune(call: Any, experiment: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    for name in ("first", "second"):
        run(call, experiment, tmp_path / name)
    added = call("history", "add", tmp_path / "first", tmp_path / "second", "--library", library)
    assert added.code == 0, added.err
    assert "12 rows of Conformance-v0" in added.out
    assert "2 entries" in added.out
    wrong = call("history", "add", tmp_path / "frist", "--library", library)
    assert wrong.code == 2
    assert "Did you mean" in wrong.err
    fits = call("history", "list", "Conformance-v0", "--library", library, "--json").json
    assert [entry["fits"] for entry in fits] == [True, True]
    other = call("history", "list", "TPE-v0", "--library", library, "--json").json
    assert {(entry["fits"], entry["reason"]) for entry in other} == {
        (False, "it is of Conformance-v0")
    }
    shown = call("history", "list", "Conformance-v0", "--library", library).out
    assert f"{tmp_path / 'second'}\n  12 rows of Conformance-v0, added 20" in shown
    assert shown.count("learned from: yes") == 2
    shown = call("history", "list", "TPE-v0", "--library", library).out
    assert shown.count("learned from: no, it is of Conformance-v0") == 2
    library.rename(tmp_path / "moved")
    shown = call("history", "list", "--library", tmp_path / "moved").out
    assert shown.count("made by somebody else or in another place") == 1
    assert shown.count("it is not followed") == 2
    (tmp_path / "moved").rename(library)
    assert call("history", "list", "--workload", "x", "--library", library).code == 2
    shutil.rmtree(tmp_path / "first")
    dry = call("history", "prune", "--library", library, "--dry-run")
    assert "1 of 2 entries would be removed" in dry.out
    assert "it is not there any more" in " ".join(dry.out.split())
    pruned = call("history", "prune", "--library", library, "--json").json
    assert [Path(one["path"]).name for one in pruned] == ["first"]
    assert len(Library(library).entries) == 1
    same = call("history", "prune", "--library", library, "--edited", "Conformance-v0")
    assert "0 of 1 entry removed" in same.out
    old = call("history", "prune", "--library", library, "--older-than", "0")
    assert "1 of 1 entry removed" in old.out
    assert (tmp_path / "second" / "trials.json").exists()


def test_pruning_counts_damaged_lines(call: Any, tmp_path: Path) -> None:
    library = Library.make(tmp_path / "library").folder
    with (library / "library.jsonl").open("a") as index:
        index.write("cut off")
    dry = call("history", "prune", "--library", library, "--dry-run").out
    assert dry == "0 of 0 entries would be removed\n1 damaged line of the index would be removed\n"
    done = call("history", "prune", "--library", library).out
    assert done == "0 of 0 entries removed\n1 damaged line of the index removed\n"
    assert call("history", "prune", "--library", library).out == "0 of 0 entries removed\n"


def test_a_name_in_data_of_others_cannot_add_lines_to_the_list(call: Any, tmp_path: Path) -> None:
    library = Library.make(tmp_path / "library")
    env = archgym.make("Conformance-v0", record=tmp_path / "run")
    env.evaluate(env.baseline)
    env.close()
    entry = library.add(tmp_path / "run")
    forged = replace(entry.problems[0], workload="x\n  learned from: yes")
    head = library.folder / INDEX
    with head.open("ab") as file:
        file.write(with_checksum(asdict(replace(entry, problems=[forged])), 0)[0])
    shown = call("history", "list", "--library", library.folder).out
    assert len(shown.splitlines()) == 2
    assert r"x\n  learned from: yes" in shown
