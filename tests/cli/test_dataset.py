from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from archgym.data import load
from archgym.experiment import RunOptions, read_experiment, run_experiment
from tests.helpers import Adder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = {
        "name": "small",
        "budget": 25,
        "seeds": 2,
        "environments": [{"id": "Conformance-v0", "space": "finite"}],
        "agents": [{"name": "random"}, {"name": "ga"}],
    }
    folder = tmp_path_factory.mktemp("dataset") / "run"
    run_experiment(read_experiment(data), folder, RunOptions(local=True, quiet=True))
    return folder


def rows(folder: Path) -> int:
    return len(load(folder))


def test_filter_sample_split_and_merge_go_together(call: Any, run: Path, tmp_path: Path) -> None:
    total = rows(run)
    chosen = call(
        "dataset", "filter", run, tmp_path / "ga", "--agent", "ga", "--where", "ways >= 4"
    )
    assert chosen.code == 0, chosen.err
    assert f"of {total} evaluations written" in chosen.out
    table = load(tmp_path / "ga").arrow(["agent", "param.ways"])
    assert set(table["agent"].to_pylist()) == {"ga"}
    assert min(table["param.ways"].to_pylist()) >= 4
    assert call("dataset", "sample", run, tmp_path / "s", "--rows", "10", "--seed", "3").code == 0
    assert rows(tmp_path / "s") == 10
    assert call("dataset", "sample", run, tmp_path / "d", "--designs", "5").code == 0
    split = call("dataset", "split", run, tmp_path / "parts", "--shares", "train=0.7,test=0.3")
    assert split.code == 0, split.err
    parts = [tmp_path / "parts" / name for name in ("train", "test")]
    assert sum(map(rows, parts)) == total
    merged = call("dataset", "merge", *parts, tmp_path / "all", "--json").json
    assert merged["evaluations"] == total
    assert merged["repeated"] == 0
    held = call("dataset", "split", run, tmp_path / "a", "--by", "agent", "--hold-out", "ga")
    assert held.code == 0, held.err


def test_validate_says_what_is_wrong(call: Any, run: Path, tmp_path: Path) -> None:
    shown = call("dataset", "validate", run, "--replay", "7")
    assert shown.code == 0, shown.out
    assert "7 rows were evaluated again" in " ".join(shown.out.split())
    found = call("dataset", "validate", "--replay", run, "--json").json
    assert found["replay"]["rows"] == 100
    assert found["passed"]
    everything = call("dataset", "validate", run, "--replay", "all", "--agent", "ga", "--json").json
    assert everything["replay"]["rows"] == len(load(run, agents="ga"))
    assert call("dataset", "validate", run, "--json").json["replay"] is None
    load(run).write(tmp_path / "bad")
    text = (tmp_path / "bad" / "dataset.json").read_text()
    data = json.loads(text)
    data["design_space"]["parameters"][1]["values"] = [1, 2, 4]
    del data["checksum"]
    (tmp_path / "bad" / "dataset.json").write_text(json.dumps(data))
    bad = call("dataset", "validate", tmp_path / "bad", "--replay")
    assert bad.code == 1
    assert "size_kb cannot be" in bad.out
    assert "not replayed" in bad.err


def test_export_of_every_kind(call: Any, run: Path, tmp_path: Path) -> None:
    one = [call("dataset", "export", run, tmp_path / name) for name in ("x.csv", "x.parquet")]
    assert [called.code for called in one] == [0, 0]
    card = call("dataset", "export", run, tmp_path / "README.md", "--license", "mit")
    assert card.code == 0, card.err
    assert (tmp_path / "README.md").read_text().startswith("---\nlicense: mit\n")
    pytest.importorskip("optuna")
    study = call("dataset", "export", run, tmp_path / "study.log", "--agent", "ga")
    assert "optuna-dashboard" in study.out
    pytest.importorskip("minari")
    offline = call("dataset", "export", run, tmp_path / "root", "--format", "minari")
    assert "minari.load_dataset('archgym/Conformance-v0-v0')" in offline.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["filter", "RUN", "OUT"], "say which rows"),
        (["filter", "RUN", "OUT", "--where", "wys > 3"], "Did you mean 'ways'?"),
        (["filter", "RUN", "OUT", "--agent", "gaa"], "Did you mean 'ga'?"),
        (["filter", "RUN", "OUT", "--where", "ways > 15 and ways < 2"], "no row is left"),
        (["sample", "RUN", "OUT"], "--rows N or --designs N"),
        (["sample", "RUN", "OUT", "--rows", "999999"], "an integer from 1 to"),
        (["split", "RUN", "OUT", "--by", "row"], "unknown kind of split 'row'"),
        (["split", "RUN", "OUT", "--shares", "train=0.8,test=0.3"], "with the sum 1"),
        (["split", "RUN", "OUT", "--shares", "train=most"], "'most' is not a number"),
        (["split", "RUN", "OUT", "--shares", "../x=0.5,b=0.5"], "cannot be the name of a folder"),
        (["split", "RUN", "OUT", "--by", "workload"], "cannot make 2 parts"),
        (["merge", "RUN", "OUT"], "two datasets or more"),
        (["validate", "RUN", "--replay", "all", "--tolerance", "3"], "tolerance must be"),
        (["export", "RUN", "OUT"], "say --format"),
        (["export", "RUN", "OUT.md"], "names the licence"),
        (["export", "RUN", "OUT.md", "--license", "apache"], "Did you mean 'apache-2.0'?"),
        (["export", "RUN", "OUT.csv", "--study", "x"], "unknown option of export format csv"),
        (["info", "OUT"], "is not there"),
    ],
)
def test_wrong_arguments_are_one_clear_message(
    call: Any, run: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    places = {"RUN": str(run), "OUT": str(tmp_path / "out")}
    filled = [
        a.replace("OUT", places["OUT"]) if "OUT" in a else places.get(a, a) for a in arguments
    ]
    called = call("dataset", *filled)
    assert called.code == 2, called.out
    assert message in " ".join(called.err.split())
    assert "Traceback" not in called.err
    assert not list(tmp_path.iterdir())


def test_info_says_how_a_dataset_was_made(call: Any, run: Path, tmp_path: Path) -> None:
    call("dataset", "sample", run, tmp_path / "s", "--rows", "10")
    (data,) = call("dataset", "info", tmp_path / "s", "--json").json
    assert data["evaluations"] == 10
    assert data["made_by"] == ["sample rows=10 seed=0"]
    assert "made by" in call("dataset", "info", tmp_path / "s").out
    assert call("dataset", "info", run, "--json").json[0]["made_by"] == []


def test_sealing_by_command(call: Any, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    env = Adder(record=folder)
    env.evaluate({"x": 1, "y": 0, "mode": "plain"})
    env.end_trial()
    other = Adder(record=folder)
    other.evaluate({"x": 2, "y": 0, "mode": "plain"})  # its journal is open
    journals = folder / "journal"
    ended = min(journals.iterdir())
    ended.rename(journals / "copied-from-elsewhere.jsonl")
    assert call("dataset", "info", folder, "--json").json[0]["evaluations"] == 2
    assert len(list(journals.iterdir())) == 2
    assert "1 journal sealed; a process still writes to 1" in call("dataset", "seal", folder).out
    other.end_trial()
    found = call("dataset", "seal", folder, "--json").json
    assert found == [{"directory": str(folder), "sealed": 1, "open": 0}]
    assert not list(journals.iterdir())
    env.evaluate({"x": 3, "y": 0, "mode": "plain"})
    env.end_trial()
    (last,) = journals.iterdir()
    last.write_bytes(last.read_bytes() + b"hello")
    refused = call("dataset", "seal", folder)
    assert refused.code == 2
    assert "archgym dataset repair" in refused.err
    assert last.exists()
    assert call("dataset", "seal", tmp_path / "nowhere").code == 2
