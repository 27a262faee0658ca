from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

import archgym
from archgym.data import Dataset, load, merge, validate
from archgym.data.merging import differences
from archgym.errors import DatasetError
from archgym.evaluation.trial_info import TrialInfo
from archgym.space import Categorical, DesignSpace, Integer, Rule, param
from tests.data.datasets import Loaded, altered, recorded, rows_of

DESIGNS = [{"x": x, "y": 1, "mode": "plain"} for x in (0, 1, 1, 3)]


def write(
    folder: Path, kind: type[Loaded] = Loaded, trial_id: str = "t", **arguments: Any
) -> Dataset:
    env = kind(record=folder, **arguments)
    env.start_trial(TrialInfo(trial_id=trial_id, agent="test"))
    env.evaluate_batch([{k: v for k, v in d.items() if k in env.design_space} for d in DESIGNS])
    env.close()
    return Dataset(folder)


def test_all_rows_and_trials_are_there(tmp_path: Path) -> None:
    one, two = (
        write(tmp_path / "1", trial_id="a"),
        write(tmp_path / "2", trial_id="b", workload="heavy"),
    )
    merged = merge([one, two], tmp_path / "all")
    assert (merged.evaluations, merged.trials, merged.repeated, merged.renamed) == (8, 2, 0, ())
    both = load(tmp_path / "all")
    for source, name in ((one, "a"), (two, "b")):
        mine = both.where(f"trial_id == {name}").arrow()
        assert mine.to_pylist() == load(source.directory).arrow().to_pylist()
    assert both.dataset.sidecar.workloads == {"light": "hash of light", "heavy": "hash of heavy"}
    assert all(check.passed for check in validate(both.dataset))
    assert [s["dataset"] for s in both.operations[0]["sources"]] == [
        str(tmp_path / "1"),
        str(tmp_path / "2"),
    ]


def test_two_trials_of_one_name_stay_two(tmp_path: Path) -> None:
    one, two = write(tmp_path / "1"), write(tmp_path / "2")
    merged = merge([one, two], tmp_path / "all")
    assert merged.renamed == ((str(tmp_path / "2"), "t", "t~2"),)
    assert rows_of(load(tmp_path / "all")) == {(name, i) for name in ("t", "t~2") for i in range(4)}


def test_what_is_in_two_datasets_is_written_once(tmp_path: Path) -> None:
    data = recorded(tmp_path / "whole")
    data.where("step < 12").write(tmp_path / "early")
    data.where("step >= 6").write(tmp_path / "late")
    early, late = Dataset(tmp_path / "early"), Dataset(tmp_path / "late")
    merged = merge([early, late], tmp_path / "all")
    assert merged.repeated == len(data.where("step >= 6 and step < 12"))
    assert rows_of(load(tmp_path / "all")) == rows_of(data)
    changed = altered(tmp_path / "late", "metric.total_ns", 0, 123.0)
    with pytest.raises(
        DatasetError, match=r"step 6 of trial .* is not what an earlier dataset has"
    ):
        merge([early, changed], tmp_path / "bad")
    assert not (tmp_path / "bad").exists()


class Newer(Loaded):
    version = "2"


class OtherUnits(Loaded):
    metrics: ClassVar = (
        archgym.Metric("total_ns", "ns", signed=True),
        archgym.Metric("speed_rate", "", "minimize"),
    )


class OtherSpace(Loaded):
    design_space = DesignSpace(
        [
            Integer("x", 0, 5),
            Integer("y", 0, 4, unit="bits", doc="said otherwise"),
            Categorical("mode", ["plain", "scaled"]),
            Integer("more", 0, 1),
        ],
        [Rule("not_both", param("x") + param("y") < 9, "x + y stays below 8")],
    )
    baseline: ClassVar = {"x": 2, "y": 2, "mode": "plain", "more": 0}


class OtherContent(Loaded):
    def hash_workload(self) -> str:
        return "another hash"


class Documented(Loaded):
    metrics: ClassVar = (
        archgym.Metric("total_ns", "ns", doc="said now"),
        archgym.Metric("speed_rate", "", "maximize"),
    )


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        (Newer, ["simulator's version: 1 | 2"]),
        (
            OtherUnits,
            [
                "signed of metric 'total_ns': false | true",
                "direction of metric 'speed_rate': maximize | minimize",
            ],
        ),
        (
            OtherSpace,
            [
                "high of parameter 'x': 4 | 5",
                "unit of parameter 'y': none | bits",
                "parameter 'scale': there | missing",
                "parameter 'more': missing | there",
                "expression of rule 'not_both'",
            ],
        ),
        (OtherContent, ["content of workload 'light'", "hash of light | another hash"]),
    ],
)
def test_every_difference_is_named(tmp_path: Path, kind: type[Loaded], named: list[str]) -> None:
    one = write(tmp_path / "1")
    env = kind(record=tmp_path / "2")
    env.evaluate(env.baseline_design)
    env.close()
    with pytest.raises(DatasetError) as caught:
        merge([one, Dataset(tmp_path / "2")], tmp_path / "all")
    for text in named:
        assert text in str(caught.value)
    assert not (tmp_path / "all").exists()


def test_differences_that_do_not_matter_are_notes(tmp_path: Path) -> None:
    one = write(tmp_path / "1", trial_id="a")
    two = write(tmp_path / "2", Documented, trial_id="b", objective="maximize speed_rate")
    merged = merge([one, two], tmp_path / "all")
    whats = [note.what for note in merged.notes]
    assert "doc of metric 'total_ns'" in whats
    assert any(what.startswith("objectives") for what in whats)
    assert all(not difference.apart for difference in differences(one, two))
    assert differences(one, one) == []


def test_one_dataset_cannot_be_merged(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="two datasets or more"):
        merge([write(tmp_path / "1")], tmp_path / "all")
