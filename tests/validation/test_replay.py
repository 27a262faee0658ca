from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import archgym
from archgym.data import Dataset, load, replay
from archgym.errors import DatasetError, InvalidValueError
from archgym.validation.accept import accept_simulator
from archgym.validation.replay import Program, Replayed
from tests.data.datasets import Loaded, altered


@pytest.fixture
def conformance(tmp_path: Path) -> Path:
    env = archgym.make("Conformance-v0", record=tmp_path / "c", fixed={"ways": 2})
    env.evaluate_batch(env.design_space.sample(60, np.random.default_rng(5)))
    env.close()
    Dataset(tmp_path / "c").seal()
    return tmp_path / "c"


def test_replay_reproduces_every_row(conformance: Path) -> None:
    found = replay(load(conformance), None)
    assert (found.rows, found.mismatches, found.skipped, found.notes) == (60, [], {}, [])
    assert replay(load(conformance), 10).rows == 10


def test_replay_says_which_row_metric_and_values_differ(conformance: Path) -> None:
    rows = load(conformance).arrow().to_pylist()
    row = next(i for i, r in enumerate(rows) if r["status"] == "ok")
    true = rows[row]["metric.energy_pj"]
    altered(conformance, "metric.energy_pj", row, true * (1 + 1e-6))
    found = replay(load(conformance), None)
    (mismatch,) = found.mismatches
    assert (mismatch.step, mismatch.what) == (rows[row]["step"], "energy_pj")
    assert (mismatch.recorded, mismatch.replayed) == (true * (1 + 1e-6), true)
    assert found.rows_that_differ == 1
    assert replay(load(conformance), None, tolerance=1e-5).mismatches == []
    altered(conformance, "status", row, "failed")
    (mismatch,) = replay(load(conformance), None).mismatches
    assert (mismatch.what, mismatch.recorded, mismatch.replayed) == ("status", "failed", "ok")


def test_another_simulator_is_not_accepted_for_the_recorded_one(conformance: Path) -> None:
    other = Replayed(rows=1, programs={Program("other", "1", "")})
    with pytest.raises(DatasetError, match="'other' cannot be accepted for 'embedded'"):
        accept_simulator(Dataset(conformance), other)
    with pytest.raises(DatasetError, match="does not show"):
        accept_simulator(Dataset(conformance), Replayed())


def skipped(found: Replayed) -> str:
    assert found.rows == 0
    (reason,) = found.skipped
    return reason


def test_replay_does_not_import_what_a_dataset_names(tmp_path: Path) -> None:
    env = Loaded(record=tmp_path)
    env.evaluate(env.baseline_design)
    env.close()
    assert "is not registered" in skipped(replay(load(tmp_path)))
    name = f"{Loaded.__module__}:Loaded"
    assert replay(load(tmp_path), environment=name).rows == 1


def test_replay_refuses_another_workload_and_notes_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = Loaded(record=tmp_path, workload="heavy")
    env.evaluate(env.baseline_design)
    env.close()
    name = f"{Loaded.__module__}:Loaded"
    monkeypatch.setattr(Loaded, "version", "7")
    found = replay(load(tmp_path), environment=name)
    assert found.mismatches == []
    assert found.notes == ["the simulator's version was '1', now it is '7'"]
    monkeypatch.setattr(Loaded, "hash_workload", lambda self: "other")
    assert "the workload has changed" in skipped(replay(load(tmp_path), environment=name))


def test_replay_asks_for_a_table_and_takes_no_nonsense(conformance: Path) -> None:
    data = json.loads((conformance / "dataset.json").read_text())
    del data["checksum"]  # as somebody may send it
    data["simulator"]["name"] = "tabular"
    (conformance / "dataset.json").write_text(json.dumps(data))
    assert "name it with --simulator" in skipped(replay(load(conformance)))
    assert replay(load(conformance), simulator="embedded").mismatches == []
    for arguments in ({"rows": 0}, {"tolerance": 2.0}, {"seed": -1}):
        with pytest.raises(InvalidValueError):
            replay(load(conformance), **arguments)
