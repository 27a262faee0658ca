"""What is in the files of a dataset once its journals have been turned into Parquet."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from archgym.data import Dataset, load, merge, parts, validate
from archgym.data import dataset as module
from archgym.data.parts import write_parquet
from archgym.evaluation.trial_info import TrialInfo
from tests.data.datasets import recorded
from tests.helpers import Grumpy

DESIGNS = [{"x": x, "y": 0, "mode": "plain"} for x in range(5)]


def attempt(folder: Path, stop: int, *, resume: bool = False, state: str = "closed") -> None:
    """A process that works on a trial of the dataset."""
    env = Grumpy(record=folder)
    env.start_trial(TrialInfo(trial_id="t", agent="test", seed=3, budget=20, resume=resume))
    env.evaluate_batch(DESIGNS[:stop])
    env.end_trial(state)


def joined(folder: Path) -> int:
    """Rows of a join of the files, as somebody makes it who knows nothing of archgym."""
    tables = [pq.read_table(folder / name, partitioning=None) for name in ("evaluations", "trials")]
    rows, trials = (
        table.set_column(
            table.column_names.index("trial_id"),
            "trial_id",
            table["trial_id"].cast("string"),
        ).select(["trial_id"])
        for table in tables
    )
    return int(rows.join(trials, "trial_id").num_rows)


def test_a_trial_that_was_resumed_has_one_row(tmp_path: Path) -> None:
    for stop in (2, 4):
        attempt(tmp_path, stop, resume=stop > 2)
        Dataset(tmp_path).seal()
    attempt(tmp_path, 5, resume=True, state="finished")
    Dataset(tmp_path).seal()
    (file,) = (tmp_path / "trials").glob("*.parquet")
    assert pq.read_table(file)["state"].to_pylist() == ["finished"]
    assert joined(tmp_path) == 5
    attempts = pq.read_table(tmp_path / "attempts", partitioning=None).to_pylist()
    assert [row["state"] for row in attempts] == ["closed", "closed", "finished"]
    assert len({row["started"] for row in attempts}) == 3
    assert Dataset(tmp_path).trials()["started"].to_pylist() == [attempts[0]["started"]]
    assert all(check.passed for check in validate(Dataset(tmp_path)))


def test_tables_of_an_earlier_version_become_one(tmp_path: Path) -> None:
    attempt(tmp_path, 2)
    Dataset(tmp_path).seal()
    shutil.move(tmp_path / "trials" / "trials.parquet", tmp_path / "trials" / "000.parquet")
    shutil.rmtree(tmp_path / "attempts")
    assert Dataset(tmp_path).trials().num_rows == 1
    attempt(tmp_path, 4, resume=True)
    Dataset(tmp_path).seal()
    assert [path.name for path in (tmp_path / "trials").glob("*")] == ["trials.parquet"]
    assert joined(tmp_path) == 4


@pytest.mark.parametrize("writes", range(3))
def test_sealing_may_be_interrupted_anywhere(
    writes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt(tmp_path, 2)
    Dataset(tmp_path).seal()
    attempt(tmp_path, 4, resume=True, state="finished")
    before = Dataset(tmp_path).trials(), Dataset(tmp_path).evaluations()
    done, write = [0], write_parquet

    def killed(*arguments: object, **options: object) -> int:
        if done[0] == writes:
            raise KeyboardInterrupt
        done[0] += 1
        return write(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "write_parquet", killed)
    with pytest.raises(KeyboardInterrupt):
        Dataset(tmp_path).seal()
    monkeypatch.undo()
    for _ in range(2):
        found = Dataset(tmp_path)
        assert found.trials() == before[0]
        assert found.evaluations() == before[1]
        found.seal()
    assert joined(tmp_path) == 4


def test_a_part_of_a_dataset_can_be_merged(tmp_path: Path) -> None:
    data = recorded(tmp_path / "all")
    for agent in ("ga", "random"):
        data.where(agents=agent).write(tmp_path / agent)
        assert all(check.passed for check in validate(Dataset(tmp_path / agent)))
    parts = [Dataset(tmp_path / agent) for agent in ("ga", "random")]
    assert merge(parts, tmp_path / "merged").evaluations == len(data)
    assert len(load(tmp_path / "merged")) == len(data)


@pytest.mark.parametrize("reading", ["listed_parts", "_listed_attempts"])
@pytest.mark.parametrize("first", [True, False])
def test_what_another_process_seals_meanwhile_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reading: str, first: bool
) -> None:
    attempt(tmp_path, 2)
    Dataset(tmp_path).seal()
    env = Grumpy(record=tmp_path)
    env.evaluate_batch(DESIGNS)
    env.end_trial()
    read, left = getattr(parts, reading), [1]

    def read_while_another_seals(directory: Path) -> Any:
        found = None if first else read(directory)
        while left:
            left.pop()
            Dataset(directory).seal()
        return read(directory) if first else found

    monkeypatch.setattr(parts, reading, read_while_another_seals)
    assert parts.problems_of_parts(tmp_path) == []
    assert not left
    assert len(load(tmp_path)) == 7


def test_a_table_that_is_being_written_is_no_damage(tmp_path: Path) -> None:
    attempt(tmp_path, 5)
    Dataset(tmp_path).seal()
    (tmp_path / "attempts" / ".one.parquet.12.tmp").write_bytes(b"PAR1")
    assert all(check.passed for check in validate(Dataset(tmp_path)))
