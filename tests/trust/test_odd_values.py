"""Values in received files that take a reader very long, or that it does not expect."""

from __future__ import annotations

import io
import json
import shutil
import struct
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archgym.data import Dataset, load
from archgym.errors import DatasetError, InvalidValueError
from archgym.problem.metrics import Metric
from archgym.proxy.training.data import read_training_data
from archgym.space.expression import Expression
from tests.trust.received import called, received_run

NAME = "datasets/Conformance-v0"


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return received_run(tmp_path_factory.mktemp("odd") / "run")


@pytest.fixture
def dataset(sent: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sent / NAME, tmp_path / "rows"))


@pytest.mark.parametrize("digits", ["1" * 1_000_000, "1_" * 500_000, "1." * 500_000])
def test_a_number_that_is_none_is_read_at_once(digits: str, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(f"name: {digits}x\n")
    ended = called(["run", "x.yaml", "--local"], tmp_path, limit_s=60)
    assert ended.code == 2
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("value", ['!!int ""', "!!bool x", "!!timestamp x", '!!float ""'])
@pytest.mark.parametrize("key", ["name", "parameters"])
def test_a_value_that_does_not_fit_its_tag(value: str, key: str, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(f"{key}: {value}\n")
    command = ["run", "x.yaml", "--local"] if key == "name" else ["show", "x.yaml"]
    ended = called(command, tmp_path)
    assert ended.code == 2
    assert "Traceback" not in ended.err
    assert "cannot be read" in ended.err


def test_a_unit_is_checked_at_once(dataset: Path) -> None:
    path = dataset / "dataset.json"
    data = json.loads(path.read_text())
    del data["checksum"]
    data["metrics"][0].update(name="x_edp", unit=f"J{'s' * 1_000_000}\n")
    path.write_text(json.dumps(data))
    ended = called(["dataset", "info", "."], dataset, limit_s=60)
    assert ended.code == 2
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [("doc", [1], "a text"), ("unit", 5, "a text"), ("signed", "x", "true or false")],
)
def test_a_field_of_a_metric_has_its_type(field: str, value: object, allowed: str) -> None:
    data = {**Metric("read_ns", "ns").to_json(), field: value}
    with pytest.raises(InvalidValueError, match=f"{field} cannot be .*: allowed is {allowed}"):
        Metric.from_json(data)


@pytest.mark.parametrize(
    "name", ["step", "reward", "status", "feasible", "cached", "fidelity", "timestamp"]
)
def test_a_row_lacks_nothing(name: str, dataset: Path) -> None:
    (path,) = dataset.glob("evaluations/*.parquet")
    table = pq.read_table(path)
    place = table.column_names.index(name)
    nulls = pa.nulls(table.num_rows, table.schema.field(name).type)
    pq.write_table(table.set_column(place, table.schema.field(name), nulls), path)
    with pytest.raises(DatasetError, match=f"{name} is missing in {table.num_rows} rows"):
        Dataset(dataset).evaluations()
    ended = called(["dataset", "validate", "."], dataset)
    assert ended.code in (1, 2)
    assert "Traceback" not in ended.err


def test_a_column_that_is_there_twice(dataset: Path) -> None:
    (path,) = dataset.glob("evaluations/*.parquet")
    table = pq.read_table(path)
    pq.write_table(table.append_column("step", table["step"]), path)
    ended = called(["dataset", "validate", "."], dataset)
    assert ended.code == 1
    assert "Traceback" not in ended.err
    assert "has several columns step" in " ".join((ended.out + ended.err).split())


def test_an_infinite_metric_is_not_learned(dataset: Path) -> None:
    (path,) = dataset.glob("evaluations/*.parquet")
    table = pq.read_table(path)
    place = table.column_names.index("metric.access_ns")
    column = pa.array([float("inf"), *table["metric.access_ns"].to_pylist()[1:]])
    pq.write_table(table.set_column(place, table.schema.field(place), column), path)
    with pytest.raises(InvalidValueError, match="metric access_ns is infinite in 1 rows"):
        read_training_data(load(dataset), ["access_ns"])


def test_a_rule_is_not_nested_without_end() -> None:
    data: dict[str, object] = {"op": "==", "args": [{"param": "ways"}, 2]}
    for _ in range(199):
        data = {"op": "not", "args": [data]}
    assert Expression.from_json(data).evaluate({"ways": 2}) is False  # 199 times not
    with pytest.raises(InvalidValueError, match="nested deeper than 200 operators"):
        Expression.from_json({"op": "not", "args": [data]})


def archive(header: str, packed: int = zipfile.ZIP_STORED) -> bytes:
    """A NumPy archive of one array, as its header says."""
    text = header.encode()
    array = b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text + bytes(800)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", packed) as file:
        file.writestr("header.npy", array)
    return made.getvalue()


HEADER = "{{'descr': {}, 'fortran_order': False, 'shape': {}}}"


@pytest.mark.parametrize(
    "content",
    [
        archive(HEADER.format("()", "(1,)")),
        archive(HEADER.format("('<f8',)", "(1,)")),
        archive(HEADER.format("'<f8'", "(True,)")),
        archive(HEADER.format("'<f8'", "(-1,)")),
        archive("{[]: 1}"),
        archive("(" * 5000),
        archive(HEADER.format("'<f8'", f"({'-' * 8000}1,)")),
        archive(HEADER.format("'<f8'", "(1,)"), zipfile.ZIP_LZMA).replace(bytes(8), b"\xff" * 8),
    ],
    ids=range(8),
)
def test_a_strange_array_is_no_proxy(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(content)
    ended = called(["evaluate", "Conformance-v0", "--simulator", "proxy:x.npz"], tmp_path)
    assert ended.code == 2
    assert "Traceback" not in ended.err
    assert "x.npz" in ended.err
