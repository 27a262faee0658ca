"""Making tables: journals are continued and merged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from archgym.envs.nas.accuracy.tabulate import collect, main, train_all
from archgym.envs.nas.accuracy.tabulated import TabulatedAccuracy
from archgym.envs.nas.accuracy.training_loop import RECIPES
from archgym.envs.nas.data import load
from archgym.envs.nas.tasks import TASKS
from archgym.errors import DatasetError, InvalidValueError

SMALLEST = "4-8s0-8s0"
LINE = {
    "architecture": SMALLEST,
    "seeds": [0, 1],
    "percent": [[10.0, 20.0, 30.0, 70.0], [10.0, 20.0, 30.0, 72.0]],
}


def write(path: Path, *lines: Any, cut_off: str = "", **fields: Any) -> Path:
    recipe = RECIPES["digits"]
    header = {
        "task": "digits",
        "data": load("digits").digest,
        "networks": 1,
        "recipe": {**vars(recipe), "epochs": list(recipe.epochs)},
        "machine": {"torch": "2.0", "numpy": "2.0", "processor": "abacus", "device": "cpu"},
        **fields,
    }
    text = "".join(json.dumps(line) + "\n" for line in [header, *lines])
    path.write_text(text + cut_off, encoding="utf-8")
    return path


def test_journals_become_one_table(tmp_path: Path) -> None:
    other = {**LINE, "architecture": "4-8s0-8s1"}
    journals = [
        write(tmp_path / "a.jsonl", LINE),
        write(tmp_path / "b.jsonl", other, machine={"torch": "2.1"}),
    ]
    table = tmp_path / "digits.parquet"
    assert main(["collect", *map(str, journals), "--out", str(table)]) == 0
    found = TabulatedAccuracy(tmp_path).table(TASKS["digits"])
    assert list(found.rows) == [SMALLEST, "4-8s0-8s1"]
    assert found.mean(27).tolist() == [71.0, 71.0]
    assert [machine["torch"] for machine in found.made["machines"]] == ["2.0", "2.1"]


def test_a_line_that_was_cut_off_is_dropped(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole.jsonl", LINE).read_bytes()
    path = write(tmp_path / "a.jsonl", LINE, cut_off='{"architecture": "4-8s')
    assert collect([path], tmp_path / "digits.parquet") == 1
    # The smallest network alone is asked for, and is there: nothing is trained.
    assert train_all(TASKS["digits"], path, sample=1) == 0
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"data": "0123456789abcdef"}, r"data is '0123456789abcdef'.*digest.*other data"),
        ({"recipe": {"epochs": [1]}}, "recipe is.*different ways"),
        ({"networks": 0}, "networks is 0.*version of the family"),
    ],
)
def test_other_data_and_recipes_are_refused(tmp_path: Path, fields: Any, words: str) -> None:
    path = write(tmp_path / "a.jsonl", LINE, **fields)
    with pytest.raises(DatasetError, match=words):
        collect([path], tmp_path / "digits.parquet")
    with pytest.raises(DatasetError, match=words):
        train_all(TASKS["digits"], path, sample=1)


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ({**LINE, "architecture": "5-8s0-8s1"}, "5-8s0-8s1 is no architecture"),
        ({**LINE, "architecture": "4-8s0-8s1", "seeds": [0, 2]}, r"seeds \[0, 2\]"),
        ({"architecture": "4-8s0-8s1"}, "fields are missing"),
    ],
)
def test_lines_that_do_not_fit_are_refused(tmp_path: Path, second: Any, words: str) -> None:
    path = write(tmp_path / "a.jsonl", LINE, second)
    with pytest.raises(DatasetError, match=words):
        collect([path], tmp_path / "digits.parquet")


def test_files_that_are_no_journals_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("no journal\n")
    with pytest.raises(DatasetError, match="not a journal"):
        collect([path], tmp_path / "digits.parquet")
    with pytest.raises(DatasetError, match="no network is trained yet"):
        collect([write(path)], tmp_path / "digits.parquet")


def test_tasks_without_data_have_no_table(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="no data"):
        train_all(TASKS["imagenet_mbconv"], tmp_path / "a.jsonl")


@pytest.mark.nightly
def test_what_is_missing_is_trained(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", cut_off='{"arch')
    assert train_all(TASKS["digits"], path, sample=1, seeds=[0]) == 0
    _, line = (json.loads(text) for text in path.read_text().splitlines())
    assert line["architecture"] == SMALLEST
    assert line["percent"][0][-1] > 60
    assert train_all(TASKS["digits"], path, sample=1, seeds=[0]) == 0
    assert len(path.read_text().splitlines()) == 2
