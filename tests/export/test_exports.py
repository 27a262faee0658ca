from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

import archgym
from archgym.check.agents.environments import FAMILIES, Family
from archgym.data import Dataset, Selection, export, load
from archgym.errors import (
    ArchgymError,
    DatasetError,
    InvalidValueError,
    MissingDependencyError,
    UnknownNameError,
)
from archgym.evaluation.trial_info import TrialInfo
from archgym.registry import make_agent
from tests.data.datasets import recorded
from tests.helpers import Grumpy


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Selection:
    folder = tmp_path_factory.mktemp("exports") / "data"
    objective = {"minimize": "total_ns", "maximize": "speed_rate", "limits": ["total_ns <= 14"]}
    return recorded(folder, objective=objective)


def test_csv_and_parquet_hold_every_value(data: Selection, tmp_path: Path) -> None:
    export(data, tmp_path / "rows.csv")
    export(data, tmp_path / "rows.parquet")
    table = pq.read_table(tmp_path / "rows.parquet")
    assert table.column_names[:3] == ["trial_id", "environment", "workload"]
    expected = data.arrow(table.column_names).to_pylist()
    assert table.to_pylist() == expected
    with (tmp_path / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["metric.total_ns"]) for row in rows] == [
        r["metric.total_ns"] for r in expected
    ]
    assert [row["param.scale"] for row in rows] == [
        "" if r["param.scale"] is None else str(r["param.scale"]) for r in expected
    ]
    chosen = data.where(agents="ga")
    assert export(chosen, tmp_path / "ga.parquet") == len(chosen)


@pytest.mark.parametrize(
    ("file", "arguments", "message"),
    [
        ("x.cvs", {}, "Did you mean 'csv'"),
        ("x", {}, "has no ending: say --format"),
        ("x.csv", {"licence": "mit"}, "unknown option of export format csv 'licence'"),
        ("x.md", {"licens": "mit"}, "Did you mean 'licence'"),
        ("x.md", {}, "names the licence"),
        ("x.md", {"licence": "apache2.0"}, "Did you mean 'apache-2.0'"),
    ],
)
def test_exports_that_cannot_be_are_refused(
    data: Selection, tmp_path: Path, file: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArchgymError, match=message):
        export(data, tmp_path / file, **arguments)
    assert not list(tmp_path.iterdir())
    with pytest.raises(DatasetError, match="no row is left"):
        export(data.where("step < 0"), tmp_path / "x.csv")


def test_the_card_names_columns_units_and_provenance(data: Selection, tmp_path: Path) -> None:
    export(data, tmp_path / "README.md", licence="cc-by-4.0", title="Adders", source="a test")
    text = (tmp_path / "README.md").read_text()
    _, head, body = text.split("---\n", 2)
    meta = yaml.safe_load(head)
    assert meta["license"] == "cc-by-4.0"
    assert meta["size_categories"] == ["n<1K"]
    assert [config["config_name"] for config in meta["configs"]] == ["evaluations", "trials"]
    features = {f["name"]: f["dtype"] for f in meta["dataset_info"][0]["features"]}
    assert features["param.x"] == "int64"
    assert features["metric.total_ns"] == "float64"
    assert features["trial_id"] == "string"
    assert list(features) == data.dataset.schema.names
    low, high = min(v := data.arrow(["metric.total_ns"])["metric.total_ns"].to_pylist()), max(v)
    assert f"| `metric.total_ns` | ns | minimize | {low:g} to {high:g} |" in body
    for words in ("# Adders", "not_both", "SHA-256 `hash of heavy`", "acts when", "a test", "ga"):
        assert words in body


def test_optuna_reads_the_trials(data: Selection, tmp_path: Path) -> None:
    optuna = pytest.importorskip("optuna")
    assert export(data, tmp_path / "study.log") == len(data.where("cached == false"))
    backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "study.log"))
    storage = optuna.storages.JournalStorage(backend)
    names = optuna.get_all_study_names(storage)
    assert len(names) == 2
    study = optuna.load_study(storage=storage, study_name=names[0])
    assert [d.name for d in study.directions] == ["MINIMIZE", "MAXIMIZE"]
    workload = study.user_attrs["workload"]
    rows = data.where("cached == false", workloads=workload).arrow().to_pylist()
    assert len(study.trials) == len(rows)
    for trial, row in zip(study.trials, rows, strict=True):
        assert trial.values == [row["metric.total_ns"], row["metric.speed_rate"]]
        params = {n: row[f"param.{n}"] for n in ("x", "y", "mode", "scale")}
        assert trial.params == {name: v for name, v in params.items() if v is not None}
        assert trial.user_attrs["agent"] == row["agent"]
        (excess,) = optuna_constraints(trial)
        assert excess == row["metric.total_ns"] - 14
        assert (excess <= 0) == row["feasible"]
    assert trial.distributions["x"] == optuna.distributions.IntDistribution(0, 4)
    best = study.best_trials
    assert best
    assert all(max(optuna_constraints(trial)) <= 0 for trial in best)


def optuna_constraints(trial: Any) -> list[float]:
    found = getattr(trial, "constraints", None)
    return list(found.values() if found is not None else trial.system_attrs["constraints"])


def test_failures_are_failed_optuna_trials_in_sqlite(tmp_path: Path) -> None:
    optuna = pytest.importorskip("optuna")
    env = Grumpy(record=tmp_path / "data")
    env.evaluate_batch(env.design_space.sample(12, np.random.default_rng(2)))
    env.close()
    data = load(tmp_path / "data")
    export(data, tmp_path / "study.db", study="mine")
    url = f"sqlite:///{tmp_path / 'study.db'}"
    (name,) = optuna.get_all_study_names(url)
    assert name.startswith("mine ")
    study = optuna.load_study(storage=url, study_name=name)
    rows = data.where("cached == false").arrow(["status"])["status"].to_pylist()
    assert [t.state.name for t in study.trials] == [
        "COMPLETE" if status == "ok" else "FAIL" for status in rows
    ]
    assert [t.user_attrs["status"] for t in study.trials] == rows
    assert all(t.datetime_start <= t.datetime_complete for t in study.trials)


class Seen:
    """Steps an environment and remembers what it gave."""

    def __init__(self, env: Any, designs: Any) -> None:
        self.episodes: list[dict[str, list[Any]]] = []
        done = True
        for action in env.encoding.encode(designs):
            if done:
                first, _ = env.reset()
                self.episodes.append({"seen": [first], "action": [], "reward": [], "done": []})
            seen, reward, done, _, _ = env.step(action)
            row = self.episodes[-1]
            for name, value in (
                ("seen", seen),
                ("action", action),
                ("reward", reward),
                ("done", done),
            ):
                row[name].append(value)


@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("space", ["default", "finite"])
def test_minari_has_what_the_environment_gave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int, space: str
) -> None:
    minari = pytest.importorskip("minari")
    env = archgym.make(
        "Conformance-v0", space=space, record=tmp_path / "data", episode_length=length,
        fixed={"size_kb": 16},
    )  # fmt: skip
    env.start_trial(TrialInfo(agent="loop", seed=5))
    given = Seen(env, env.design_space.sample(10, np.random.default_rng(3)))
    env.close()
    data = load(tmp_path / "data")
    assert export(data, tmp_path / "root", "minari", name="mine") == 10
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "root"))
    found = minari.load_dataset("mine/Conformance-v0-v0")
    assert found.total_steps == 10
    assert found.total_episodes == len(given.episodes)
    assert found.spec.observation_space == env.observation_space
    assert found.spec.action_space == env.action_space
    for episode, expected in zip(found.iterate_episodes(), given.episodes, strict=True):
        assert episode.observations.tolist() == np.array(expected["seen"]).tolist()
        assert episode.actions.tolist() == np.array(expected["action"]).tolist()
        assert episode.rewards.tolist() == expected["reward"]
        assert episode.terminations.tolist() == expected["done"]
        assert episode.truncations.any() == (not expected["done"][-1])
    again = found.recover_environment()
    outcome = again.unwrapped.evaluate(env.baseline_design)
    assert outcome.metrics == env.evaluate(env.baseline_design).metrics
    again.close()
    assert json.loads((tmp_path / "root/mine/Conformance-v0-v0/data/0/metadata.json").read_text())[
        "agent_seed"
    ] == 5  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_minari_has_what_each_family_gave(
    family: Family, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    minari = pytest.importorskip("minari")
    env = family.make(record=tmp_path / "data", episode_length=2)
    given = Seen(env, env.design_space.sample(5, np.random.default_rng(8)))
    env.close()
    export(load(tmp_path / "data"), tmp_path / "root", "minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "root"))
    (name,) = minari.list_local_datasets()
    found = list(minari.load_dataset(name).iterate_episodes())
    assert len(found) == 3
    for episode, expected in zip(found, given.episodes, strict=True):
        assert episode.observations.tolist() == np.array(expected["seen"]).tolist()
        assert episode.actions.tolist() == np.array(expected["action"]).tolist()
        assert episode.rewards.tolist() == expected["reward"]
        assert episode.terminations.tolist() == expected["done"]


def test_minari_episodes_of_a_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    minari = pytest.importorskip("minari")
    env = archgym.make("Conformance-v0", space="finite", record=tmp_path / "data")
    for seed in (0, 1):
        make_agent("ga", env.design_space, seed=seed).search(env, budget=15)
    data = load(tmp_path / "data")
    export(data, tmp_path / "root", "minari", episodes="trial")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "root"))
    (name,) = minari.list_local_datasets()
    found = minari.load_dataset(name)
    assert found.total_episodes == 2
    for episode in found.iterate_episodes():
        assert episode.terminations.tolist() == [False] * (len(episode) - 1) + [True]
    with pytest.raises(InvalidValueError, match="lacks steps of an episode"):
        export(data.where("step != 3"), tmp_path / "bad", "minari", episodes="trial")
    assert not (tmp_path / "bad").exists()
    with pytest.raises(UnknownNameError, match="Did you mean 'trial'"):
        export(data, tmp_path / "bad", "minari", episodes="trail")


def test_an_export_changes_nothing_in_the_dataset(data: Selection, tmp_path: Path) -> None:
    folder = data.dataset.directory
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    export(Dataset(folder), tmp_path / "x.parquet")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(("package", "form"), [("minari", "minari"), ("optuna", "optuna")])
def test_what_is_missing_is_said(
    data: Selection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, form: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=rf"pip install 'archgym\[{package}\]'"):
        export(data, tmp_path / "out", form)
    assert not list(tmp_path.iterdir())
