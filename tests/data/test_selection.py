from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import archgym
from archgym.data import Dataset, Selection, find_dataset, load, merge
from archgym.errors import ArchgymError, DatasetError, InvalidValueError, UnknownNameError
from archgym.evaluation.trial_info import TrialInfo
from tests.data.datasets import Loaded, recorded, rows_of
from tests.helpers import Grumpy


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("selection") / "data"
    recorded(path)
    return path


@pytest.fixture
def data(folder: Path) -> Selection:
    return load(folder)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("x >= 3", lambda r: r["param.x"] >= 3),
        (
            "param.x < 3 and total_ns <= 5.5",
            lambda r: r["param.x"] < 3 and r["metric.total_ns"] <= 5.5,
        ),
        ("mode == plain", lambda r: r["param.mode"] == "plain"),
        ("mode != 'plain' or x = 0", lambda r: r["param.mode"] != "plain" or r["param.x"] == 0),
        ("x in 0, 2,4", lambda r: r["param.x"] in (0, 2, 4)),
        ("not (x in 0, 2)", lambda r: r["param.x"] not in (0, 2)),
        ("scale == null", lambda r: r["param.scale"] is None),
        ("scale != null", lambda r: r["param.scale"] is not None),
        ("scale > 1", lambda r: (r["param.scale"] or 0) > 1),
        ("not scale > 1", lambda r: r["param.scale"] == 1),
        (
            "not x < 2 or y == 1 and x == 1",
            lambda r: r["param.x"] >= 2 or r["param.x"] == r["param.y"] == 1,
        ),
        ("feasible == true", lambda r: r["feasible"]),
        ("status == ok", lambda r: True),
        ("timestamp > 1999-01-01", lambda r: True),
        ("agent == ga and seed == 1", lambda r: r["agent"] == "ga" and r["seed"] == 1),
        ("reward >= -5e-1", lambda r: r["reward"] >= -0.5),
    ],
)  # fmt: skip
def test_conditions_choose_the_rows_that_meet_them(
    data: Selection, condition: str, holds: Any
) -> None:
    rows = data.arrow().to_pylist()
    wanted = {(row["trial_id"], row["step"]) for row in rows if holds(row)}
    assert rows_of(data.where(condition)) == wanted
    assert len(data.where(condition)) == len(wanted)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("agnt == ga", "Did you mean 'agent'"),
        ("agent == gaa", "unknown agent 'gaa'. Did you mean 'ga'"),
        ("workload in light, hevy", "Did you mean 'heavy'"),
        ("metric.total_n > 1", "Did you mean 'metric.total_ns'"),
        ("mode == plane", "Did you mean 'plain'"),
        ("x == 9", "allowed is an integer from 0 to 4"),
        ("status == good", "unknown status 'good'"),
        ("mode > plain", "goes? with|go with ==, != and in"),
        ("x >= many", "'many' is not a number"),
        ("feasible == 1", "not true or false"),
        ("timestamp > yesterday", "not a time such as"),
        ("scale < null", "null goes with == and !="),
        ("x", "one of == != < <= > >= or in expected before 'the end'"),
        ("x >= ", "a value expected"),
        ("(x >= 1", r"'\)' expected"),
        ("x >= 1 y", "'and' or 'or' expected before 'y'"),
        ("x >= 'abc", "cannot be read"),
        ("", "a condition is a text"),
        ("(" * 5000 + "x > 1", "nested too deeply"),
        ("__import__('os').system('true')", "unknown column"),
    ],
)
def test_conditions_that_cannot_be_are_refused(
    data: Selection, condition: str, message: str
) -> None:
    with pytest.raises(ArchgymError, match=message):
        data.where(condition)


def test_agents_and_workloads_choose_rows(folder: Path) -> None:
    chosen = load(folder, agents="ga", workloads=["light"])
    assert rows_of(chosen) == {row for row in rows_of(load(folder)) if "light.ga" in row[0]}
    assert chosen.whole_trials
    assert not chosen.where("step < 3").whole_trials
    with pytest.raises(UnknownNameError, match="Did you mean 'random'"):
        load(folder, agents="rendom")


def test_distinct_takes_the_first_row_of_a_design_on_a_workload(data: Selection) -> None:
    columns = ["workload", "param.x", "param.y", "param.mode", "param.scale"]
    rows = data.arrow(columns).to_pylist()
    distinct = data.distinct().arrow(columns).to_pylist()
    assert len(distinct) == len({tuple(row.values()) for row in rows}) < len(rows)
    assert distinct[0] == rows[0]
    info = data.dataset.info()
    assert info["distinct_designs"] == len({tuple(row.values())[1:] for row in rows})


def test_samples_are_seeded_nested_and_do_not_depend_on_files(folder: Path, tmp_path: Path) -> None:
    data = load(folder)
    small, large = data.sample(20, 7), data.sample(50, 7)
    assert len(small) == 20
    assert rows_of(small) < rows_of(large)
    assert rows_of(small) != rows_of(data.sample(20, 8))
    backwards = [f"trial_id == {row['trial_id']}" for row in reversed(data.trials)]
    for number, condition in enumerate(backwards):
        data.where(condition).write(tmp_path / str(number))
    merge([Dataset(tmp_path / str(number)) for number in range(len(backwards))], tmp_path / "all")
    assert rows_of(load(tmp_path / "all").sample(20, 7)) == rows_of(small)


def test_a_sample_of_designs_has_all_their_rows(data: Selection) -> None:
    chosen = data.sample_designs(10, 3)
    names = [f"param.{n}" for n in ("x", "y", "mode", "scale")]
    designs = {tuple(row.values()) for row in chosen.arrow(names).to_pylist()}
    assert len(designs) == 10
    everything = data.arrow([*names, "trial_id", "step"]).to_pylist()
    wanted = {
        (r["trial_id"], r["step"]) for r in everything if tuple(r[n] for n in names) in designs
    }
    assert rows_of(chosen) == wanted


@pytest.mark.parametrize("number", [0, -1, 10_000, True, 2.5])
def test_a_sample_must_be_possible(data: Selection, number: Any) -> None:
    for draw in (data.sample, data.sample_designs):
        with pytest.raises(InvalidValueError, match="must be an integer from 1 to"):
            draw(number, 0)


def test_what_is_written_is_what_was_chosen(folder: Path, tmp_path: Path) -> None:
    chosen = load(folder, "x >= 2", agents="ga")
    assert chosen.write(tmp_path / "out") == len(chosen)
    again = load(tmp_path / "out")
    assert again.arrow().to_pylist() == chosen.arrow().to_pylist()
    assert {row["agent"] for row in again.trials} == {"ga"}
    assert again.operations[0]["where"] == ["param.x >= 2", "agent in (ga)"]
    assert not again.whole_trials
    with pytest.raises(DatasetError, match="exists already"):
        chosen.write(tmp_path / "out")
    with pytest.raises(DatasetError, match="no row is left"):
        chosen.where("x == 0").write(tmp_path / "none")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_an_error_while_writing_leaves_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("archgym.data.schema.Sidecar.save", broken)
    with pytest.raises(DatasetError, match="No space left"):
        load(folder).write(tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_selection_reads_the_same_while_others_write_and_seal(tmp_path: Path) -> None:
    env = Loaded(record=tmp_path)
    for y in range(3):
        env.evaluate({"x": 0, "y": y, "mode": "plain"})
    data = load(tmp_path)
    before = data.arrow()
    env.evaluate({"x": 1, "y": 1, "mode": "plain"})
    env.close()
    Dataset(tmp_path).seal()
    assert data.arrow().equals(before)
    assert rows_of(data.where("y >= 1")) == {
        (before["trial_id"][0].as_py(), step) for step in (1, 2)
    }
    assert len(load(tmp_path)) == 4


def test_examples_have_names_and_units(data: Selection) -> None:
    examples = data.examples(["total_ns"], features="values")
    assert examples.feature_names == ("x", "y", "mode", "scale")
    assert (examples.target_names, examples.target_units) == (("total_ns",), ("ns",))
    x, y, _, scale = examples.features.T
    heavy = np.array(examples.workloads)[examples.workload] == "heavy"
    expected = 1.0 + x + y * np.where(np.isnan(scale), 1, scale) + 10.0 * heavy
    assert examples.targets[:, 0].tolist() == expected.tolist()
    assert len(examples) == len(data.distinct())
    assert len(data.examples(distinct=False)) == len(data)
    scaled = data.examples(dtype=np.float32)
    assert scaled.feature_names == ("x", "y", "mode=plain", "mode=scaled", "scale?", "scale")
    assert scaled.features.dtype == np.float32
    assert set(np.unique(scaled.features[:, 2:5])) == {0.0, 1.0}
    pairs = {tuple(row) for row in np.column_stack([x, y, examples.features[:, 2:]]).tolist()}
    assert len(set(examples.groups.tolist())) == len({str(pair) for pair in pairs})


def test_examples_leave_out_what_failed_and_metrics_that_are_not_given(tmp_path: Path) -> None:
    env = Grumpy(record=tmp_path)
    env.evaluate_batch(env.design_space.sample(30, np.random.default_rng(0)))
    env.close()
    data = load(tmp_path)
    examples = data.examples()
    assert 0 < len(examples) == len(data.where("status == ok").distinct())
    assert np.isfinite(examples.targets).all()
    with pytest.raises(InvalidValueError, match="no row with status ok"):
        data.where("status != ok").examples()
    with pytest.raises(UnknownNameError, match="Did you mean 'total_ns'"):
        data.examples(["total_n"])
    with pytest.raises(UnknownNameError, match="form of features"):
        data.examples(features="scled")


def test_pandas_and_torch(data: Selection) -> None:
    import torch
    from torch.utils.data import DataLoader

    from archgym.data.torch_examples import ExampleStream

    frame = data.pandas(["agent", "param.x", "metric.total_ns"])
    assert frame["param.x"].tolist() == data.arrow(["param.x"])["param.x"].to_pylist()
    examples = data.examples(["total_ns"])
    features, targets = next(iter(DataLoader(examples.torch(), batch_size=len(examples))))
    assert torch.equal(features, torch.as_tensor(examples.features, dtype=torch.float32))
    assert torch.equal(targets, torch.as_tensor(examples.targets, dtype=torch.float32))
    stream = ExampleStream(data, ["total_ns"], batch_size=7, seed=1)
    streamed = [row for _, y in DataLoader(stream, batch_size=None) for row in y.tolist()]
    everything = data.examples(["total_ns"], distinct=False)
    assert sorted(streamed) == sorted(everything.targets.astype(np.float32).tolist())
    with pytest.raises(InvalidValueError, match="batch_size"):
        ExampleStream(data, batch_size=0)


def test_a_run_with_several_datasets_asks_which(folder: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        load(folder).write(tmp_path / "datasets" / name)
    with pytest.raises(DatasetError, match=r"several datasets, name one of them: .*a, .*b"):
        find_dataset(tmp_path)
    with pytest.raises(DatasetError, match="holds neither a run nor a dataset"):
        find_dataset(tmp_path / "datasets")


def test_the_same_design_has_one_fingerprint_in_journal_and_parquet(tmp_path: Path) -> None:
    env = archgym.make("Conformance-v0", record=tmp_path)
    env.start_trial(TrialInfo(trial_id="t"))
    env.evaluate_batch(env.design_space.sample(50, np.random.default_rng(1)))
    env.close()
    before = [keys.tolist() for _, keys in load(tmp_path).fingerprints()]
    Dataset(tmp_path).seal()
    after = [keys.tolist() for _, keys in load(tmp_path).fingerprints()]
    assert before == after
    assert len(set(before[0])) == 50


def test_loading_imports_no_learning_library(folder: Path) -> None:
    code = (
        f"import sys, archgym; d = archgym.data.load({str(folder)!r}, 'x >= 1'); d.arrow()\n"
        "d.examples()\n"
        "print([m for m in ('torch', 'sklearn', 'optuna', 'minari') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_empty_choice_still_has_its_columns(data: Selection) -> None:
    table = data.where("step < 0").arrow()
    assert table.num_rows == 0
    assert table.column_names == data.columns
    assert isinstance(table, pa.Table)
