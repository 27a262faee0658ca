"""Live export: what a dataset holds is in TensorBoard's and MLflow's files too."""

from __future__ import annotations

import importlib.util
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archgym.data import Dataset
from archgym.errors import InvalidValueError, MissingDependencyError
from archgym.experiment import RunOptions, run_experiment
from archgym.experiment.run import live_logs
from tests.experiment.experiments import small

LOCAL = RunOptions(local=True, quiet=True)


def scalars(folder: Path) -> dict[str, dict[int, float]]:
    """Values by name and step in all event files of a folder: length, crc, event, crc."""
    from tensorboardX.proto.event_pb2 import Event

    found: dict[str, dict[int, float]] = {}
    for path in sorted(folder.iterdir(), key=lambda one: one.stat().st_mtime_ns):
        data, at = path.read_bytes(), 0
        while at < len(data):
            (length,) = struct.unpack_from("<Q", data, at)
            event = Event.FromString(data[at + 12 : at + 12 + length])
            at += 16 + length
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    found.setdefault(value.tag, {})[event.step] = value.simple_value
    return found


def test_tensorboard_has_what_the_dataset_has(tmp_path: Path) -> None:
    result = run_experiment(small(log="tensorboard"), tmp_path / "run", LOCAL)
    (dataset,) = (tmp_path / "run" / "datasets").iterdir()
    rows = Dataset(dataset).evaluations().to_pylist()
    for trial in result.trials:
        shown = scalars(tmp_path / "run" / "tensorboard" / trial.trial_id)
        new = [
            row
            for row in rows
            if row["trial_id"] == trial.trial_id
            and not row["cached"]
            and row["status"] != "illegal"
        ]
        assert shown["simulations"] == {n: n for n in range(1, len(new) + 1)}
        (goal,) = (name.partition("/")[2] for name in shown if name.startswith("value/"))
        ok = {n: row for n, row in enumerate(new, start=1) if row["status"] == "ok"}
        values = {n: row[f"metric.{goal}"] for n, row in ok.items()}
        assert shown[f"value/{goal}"] == pytest.approx(values, rel=1e-6)
        feasible = [row[f"metric.{goal}"] for row in ok.values() if row["feasible"]]
        best = shown[f"best/{goal}"]
        assert best[max(best)] == pytest.approx(min(feasible), rel=1e-6)
        assert (np.diff([best[n] for n in sorted(best)]) <= 0).all()


def test_an_export_that_fails_does_not_stop_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise ConnectionError("no such server")

    monkeypatch.setitem(live_logs._MAKERS, "tensorboard", broken)
    with pytest.warns(UserWarning, match="no such server"):
        result = run_experiment(small(log="tensorboard", seeds=1), tmp_path / "run", LOCAL)
    assert not result.failures
    assert result.totals.states == {"finished": 2}


def test_a_missing_library_is_named_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'archgym\[mlflow\]'"):
        run_experiment(small(log=["mlflow"]), tmp_path / "run", LOCAL)
    assert not (tmp_path / "run").exists()


def test_another_export_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="log"):
        small(log="wandb")


def test_mlflow_has_what_the_dataset_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    result = run_experiment(small(log="mlflow"), tmp_path / "run", LOCAL)
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'run' / 'mlflow.db'}")
    runs = client.search_runs([client.get_experiment_by_name("run").experiment_id])
    assert {run.info.run_name for run in runs} == {trial.trial_id for trial in result.trials}
    assert {run.info.status for run in runs} == {"FINISHED"}
    for run in runs:
        summary = result.summaries[run.info.run_name]
        assert run.data.metrics["simulations"] == summary.simulations
        (best,) = (v for name, v in run.data.metrics.items() if name.startswith("best/"))
        assert best == pytest.approx(float(summary.curve[-1, 0]))
