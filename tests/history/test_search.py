"""Searches with history in Python, and what their datasets say of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from archgym.analysis.trials import read_trials
from archgym.data import Dataset
from archgym.errors import DatasetError
from archgym.history import History, read_history
from archgym.registry import make_agent
from tests.helpers import Adder


def earlier(folder: Path) -> Path:
    env = Adder(record=folder, objective="maximize total_ns")
    env.evaluate_batch([{"x": x, "y": 1, "mode": "plain"} for x in range(5)])
    env.close()
    return folder


def searched(folder: Path, history: Any) -> Dataset:
    env = Adder(record=folder)
    make_agent("random", env.design_space, seed=1).search(env, 8, history=history)
    env.close()
    return Dataset(folder)


def test_the_best_of_earlier_runs_come_first(tmp_path: Path) -> None:
    source = earlier(tmp_path / "earlier")
    data = searched(tmp_path / "log", source)
    assert data.evaluations(["param.x", "param.y"]).slice(0, 5).to_pylist() == [
        {"param.x": x, "param.y": 1} for x in range(5)
    ]
    (summary,) = read_trials(data)
    assert summary.history is not None
    assert [(s.designs, s.same) for s in summary.history.sources] == [(5, True)]
    assert len(summary.history.first) == 5
    # x = 0, y = 0 is better than all of them, where the search has found it.
    assert summary.best is not None
    assert summary.from_history == (summary.best.design["y"] == 1)
    assert summary.to_json()["history"]["sha256"] == summary.history.sha256


def test_paths_and_what_is_read_from_them_are_the_same(tmp_path: Path) -> None:
    source = earlier(tmp_path / "earlier")
    given = [source, [str(source)], read_history(source, Adder())]
    found = {
        searched(tmp_path / str(n), one).trials()["history"][0].as_py()
        for n, one in enumerate(given)
    }
    assert len(found) == 1


def test_other_history_has_another_digest(tmp_path: Path) -> None:
    history = read_history(earlier(tmp_path / "earlier"), Adder())
    (source,) = history
    more = Adder(record=tmp_path / "earlier")
    more.evaluate({"x": 4, "y": 3, "mode": "plain"})
    more.close()
    other = read_history(tmp_path / "earlier", Adder())
    nothing = source.outcomes.designs[:0]
    assert history.info(nothing).sha256 != other.info(nothing).sha256


@pytest.mark.parametrize("nothing", [None, History(), []])
def test_without_history_nothing_is_recorded_of_it(tmp_path: Path, nothing: Any) -> None:
    data = searched(tmp_path, nothing)
    assert data.trials()["history"].to_pylist() == [None]
    (summary,) = read_trials(data)
    assert summary.history is None
    assert not summary.from_history


def test_a_folder_that_is_not_there_is_told_before_anything_is_recorded(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="nowhere is not there"):
        searched(tmp_path / "log", tmp_path / "nowhere")
    assert not Dataset(tmp_path / "log").trials().num_rows


@pytest.mark.parametrize("text", ["[]", '{"sources": 3}', json.dumps({"sources": []}), "x"])
def test_damaged_descriptions_are_noticed(tmp_path: Path, text: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = searched(tmp_path, earlier(tmp_path / "earlier"))
    data.seal()
    (path,) = (tmp_path / "trials").glob("*.parquet")
    table = pq.read_table(path)
    column = pa.array([text] * table.num_rows, pa.string())
    pq.write_table(table.set_column(table.column_names.index("history"), "history", column), path)
    with pytest.raises(DatasetError, match="history"):
        Dataset(tmp_path).trials()
