"""What a dataset, a table or a proxy says of its environment decides on metrics, nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import archgym
from archgym.data import Dataset, load, replay
from archgym.enumeration import enumerate_space
from archgym.environment.recorded import recorded_settings, refuse_paths
from archgym.errors import InvalidValueError
from archgym.registry import environment_class, environment_names, make_agent
from tests.helpers import Adder


def with_trial(folder: Path, **values: str) -> Path:
    """Puts other values into the table of trials of a sealed dataset."""
    (path,) = (folder / "trials").glob("*.parquet")
    table = pq.read_table(path)
    for name, value in values.items():
        column = pa.array([value] * table.num_rows, table.schema.field(name).type)
        table = table.set_column(table.column_names.index(name), name, column)
    pq.write_table(table, path)
    return folder


def recorded(folder: Path, name: str = "Conformance-v0", **arguments: Any) -> Path:
    env = archgym.make(name, record=folder, **arguments)
    make_agent("random", env.design_space, seed=0).search(env, budget=3)
    env.close()
    Dataset(folder).seal()
    return folder


@pytest.mark.parametrize("argument", ["record", "render_mode", "simulator", "episode_length"])
def test_a_recorded_argument_that_changes_no_metric_is_not_taken(
    argument: str, tmp_path: Path
) -> None:
    folder, outside = recorded(tmp_path / "data"), tmp_path / "outside"
    values = {"record": str(outside), "render_mode": "ansi", "simulator": "proxy:x"}
    settings = {argument: values.get(argument, 7)}
    found = replay(load(with_trial(folder, settings=json.dumps(settings))))
    assert found.rows == 3
    assert not outside.exists()


def test_no_environment_takes_a_place_from_a_record(tmp_path: Path) -> None:
    every = {"record": str(tmp_path / "x"), "simulator": "y", "action": "box", "levels": 3}
    for name in environment_names():
        assert recorded_settings(environment_class(name), every) == {}


def test_a_table_does_not_say_where_something_is_written(tmp_path: Path) -> None:
    archgym.register("AdderOfTrust-v0", Adder)
    enumerate_space("AdderOfTrust-v0", {}, tmp_path / "table", workers=1)
    (path,) = (tmp_path / "table").glob("*.parquet")
    whole, outside = pq.read_table(path), tmp_path / "outside"
    meta = json.loads(whole.schema.metadata[b"archgym.table"])
    meta["arguments"] = {"record": str(outside)}
    forged = whole.replace_schema_metadata({b"archgym.table": json.dumps(meta).encode()})
    path.unlink()
    pq.write_table(forged, path, write_page_checksum=True)
    env = archgym.make("AdderOfTrust-v0", simulator=f"tabular:{path}")
    assert env.evaluate(env.baseline).status == "ok"
    env.close()
    assert not outside.exists()


def test_files_that_a_dataset_names_are_read_only_when_asked(tmp_path: Path) -> None:
    trace, secret = tmp_path / "a.stl", tmp_path / "secret"
    trace.write_text("".join(f"{i * 4}: read 0x{i * 64:x}\n" for i in range(40)))
    secret.write_text("TOP SECRET LINE\n")
    folder = recorded(tmp_path / "data", "DRAM-v0", workload=str(trace))
    (reason,) = replay(load(folder)).skipped
    assert "a.stl" in reason
    assert "--read-files" in reason
    assert replay(load(folder), read_files=True).rows == 3
    for change in (
        {"workload_spec": json.dumps(str(secret))},
        {"workload_spec": json.dumps({"trace": str(secret)})},
        {"settings": json.dumps({"memory": str(secret)})},
        {"settings": json.dumps({"memory": "../" * 20 + str(secret)})},
    ):
        (reason,) = replay(load(with_trial(folder, **change))).skipped
        assert "is not read" in reason
        assert "TOP SECRET" not in reason


@pytest.mark.parametrize(
    "value",
    [
        "/etc/passwd",
        "~/.ssh/id_rsa",
        "../x",
        "stl:/etc/passwd",
        {"a": ["/x"]},
        {"/x": 1},
        "pyproject.toml",
    ],
)
def test_paths_are_recognised(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent.parent.parent)
    with pytest.raises(InvalidValueError, match="a file that is not read"):
        refuse_paths({"memory": value}, "give it yourself")
    refuse_paths({"memory": "DDR3-1600", "ways": 3, "workload": {"generator": "zipf"}}, "")
