from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from archgym.data import Dataset, load, validate
from archgym.data.snapshot import Snapshot
from archgym.errors import DatasetError
from archgym.evaluation.trial_info import TrialInfo
from tests.data.datasets import Loaded, altered, recorded
from tests.helpers import Grumpy


def failed(dataset: Dataset) -> dict[str, list[str]]:
    return {check.name: check.examples for check in validate(dataset) if not check.passed}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    objective = {"minimize": "total_ns", "limits": ["total_ns <= 15"]}
    recorded(tmp_path / "data", budget=12, objective=objective)
    return tmp_path / "data"


def test_what_was_recorded_is_valid(folder: Path, tmp_path: Path) -> None:
    assert failed(Dataset(folder)) == {}
    env = Grumpy(record=tmp_path / "grumpy")
    designs = env.design_space.sample(40, np.random.default_rng(0))
    env.evaluate_batch(designs.concatenate(designs))
    env.evaluate({"x": 4, "y": 4, "mode": "plain"})
    env.close()
    assert failed(Dataset(tmp_path / "grumpy")) == {}
    rows = load(tmp_path / "grumpy").arrow(["status"])["status"].to_pylist()
    assert set(rows) == {"ok", "illegal", "failed", "timeout"}


def test_what_was_filtered_is_valid(folder: Path, tmp_path: Path) -> None:
    load(folder, "x >= 2").write(tmp_path / "some")
    assert failed(Dataset(tmp_path / "some")) == {}


@pytest.mark.parametrize(
    ("column", "value", "check", "message"),
    [
        ("param.x", 7, "designs", "x cannot be 7: an integer from 0 to 4"),
        ("param.mode", "plane", "designs", "mode cannot be 'plane'"),
        ("param.x", None, "designs", "x acts, but has no value"),
        ("metric.total_ns", -1.0, "metrics", "total_ns is -1, below zero"),
        ("metric.total_ns", float("inf"), "metrics", "total_ns is inf"),
        ("metric.total_ns", 3.25, "rewards", "but follows as"),
        ("reward", 0.987, "rewards", "reward is 0.987, but follows as"),
        ("reward", 7.0, "outcomes", "a reward outside"),
        ("status", "failed", "metrics", "has total_ns, with status failed"),
        ("status", "fine", "outcomes", "an unknown status"),
        ("reason", "why not", "outcomes", "feasible, with a reason against it"),
        ("feasible", False, "outcomes", "not feasible, without a reason"),
        ("step", 0, "steps", "step 0 is there twice"),
        ("step", 99, "steps", "after step"),
        ("step", -4, "steps", "step -4 is below 0"),
        ("trial_id", "nobody", "trials", "nobody has evaluations, but is not in the table"),
        ("cached", True, "duplicates", "is cached, but no earlier step has its design"),
    ],
)
def test_one_wrong_value_is_found_and_named(
    folder: Path, column: str, value: Any, check: str, message: str
) -> None:
    rows = load(folder).arrow().to_pylist()
    row = next(
        i
        for i, r in enumerate(rows)
        if r["step"] > 1 and r["feasible"] and not r["cached"] and r["param.mode"] == "plain"
    )
    found = failed(altered(folder, column, row, value))
    assert any(message in text for text in found[check]), found


def test_a_parameter_that_does_not_act_must_be_empty(folder: Path) -> None:
    rows = load(folder).arrow(["param.scale"])["param.scale"].to_pylist()
    found = failed(altered(folder, "param.scale", rows.index(None), 1))
    assert "scale has a value, but does not act" in found["designs"][0]


def test_a_broken_rule_must_be_illegal(folder: Path) -> None:
    rows = load(folder, "status == ok").arrow(["param.y"])["param.y"].to_pylist()
    altered(folder, "param.x", rows.index(4), 4)
    assert "breaks rule 'not_both'" in failed(Dataset(folder))["rules"][0]


def test_rows_that_disagree_are_named(folder: Path) -> None:
    rows = load(folder).arrow().to_pylist()
    seen: dict[tuple[Any, ...], int] = {}
    for i, row in enumerate(rows):
        key = tuple(row[n] for n in ("workload", "param.x", "param.y", "param.mode", "param.scale"))
        if key in seen and rows[seen[key]]["trial_id"] != row["trial_id"]:
            break
        seen[key] = i
    found = failed(altered(folder, "metric.speed_rate", i, 0.5))
    assert f"trial {row['trial_id']}, step {row['step']}" in found["agreement"][0]


def test_a_fixed_value_must_be_kept(tmp_path: Path) -> None:
    env = Loaded(record=tmp_path, fixed={"x": 1})
    env.evaluate_batch([{"y": y, "mode": "plain"} for y in range(3)])
    env.close()
    Dataset(tmp_path).seal()
    assert failed(Dataset(tmp_path)) == {}
    assert "x is not 1, as fixed" in failed(altered(tmp_path, "param.x", 1, 2))["rules"][0]


def test_files_of_another_form_are_named(folder: Path) -> None:
    (path,) = (folder / "evaluations").glob("*.parquet")
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["reward"]).append_column("rewrd", table["reward"]), path)
    found = failed(Dataset(folder))
    assert list(found) == ["files", "checksums"]
    assert "lacks column reward" in found["files"][0]
    assert "unknown column rewrd" in found["files"][1]
    path.write_bytes(b"PAR1 and then nothing")
    assert "cannot be read" in failed(Dataset(folder))["files"][0]


def test_many_problems_are_counted_and_the_first_told(folder: Path) -> None:
    (path,) = (folder / "evaluations").glob("*.parquet")
    table = pq.read_table(path)
    place = table.column_names.index("metric.total_ns")
    wrong = (-table["metric.total_ns"].to_numpy()).tolist()
    pq.write_table(table.set_column(place, "metric.total_ns", [wrong]), path)
    (check,) = [check for check in validate(Dataset(folder)) if check.name == "metrics"]
    assert check.wrong == table.num_rows > len(check.examples) == 10
    assert json.dumps(check.to_json())


def test_a_trial_that_begins_while_its_dataset_is_checked_is_no_damage(folder: Path) -> None:
    class Growing(Dataset):
        def snapshot(self) -> Snapshot:
            env.start_trial(TrialInfo(trial_id="late"))
            env.evaluate(env.baseline_design)
            return super().snapshot()

    env = Loaded(record=folder)
    assert failed(Growing(folder)) == {}
    env.close()


def test_a_forked_process_may_know_what_its_parent_evaluated(tmp_path: Path) -> None:
    env = Loaded(record=tmp_path)
    env.start_trial(TrialInfo(trial_id="parent"))
    env.evaluate(env.baseline_design)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            env.evaluate(env.baseline_design)
            env.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    env.close()
    assert load(tmp_path).arrow(["cached"])["cached"].to_pylist().count(True) == 1
    assert failed(Dataset(tmp_path)) == {}


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("dataset.json", b"[1]", "holds no JSON object"),
        ("dataset.json", b'{"format": 1}', "is damaged: KeyError: 'simulator'"),
        ("dataset.json", b'{"format": 99}', "has format 99"),
        ("trials/part-0.parquet", b"nonsense", "cannot read .*part-0.parquet"),
        ("evaluations/part-0.parquet", b"nonsense", "cannot read .*part-0.parquet"),
        ("provenance.json", b'{"operations": 7}', "cannot read .*provenance.json"),
    ],
)
def test_a_damaged_file_is_named(
    folder: Path, tmp_path: Path, file: str, content: bytes, message: str
) -> None:
    load(folder).write(tmp_path / "copy")
    (tmp_path / "copy" / file).write_bytes(content)
    with pytest.raises(DatasetError, match=message):
        load(tmp_path / "copy").arrow()
