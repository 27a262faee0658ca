"""Files of a received folder that are small to send and huge to read."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archgym.errors import InvalidValueError
from archgym.problem.metrics import Metric, check_metrics
from archgym.problem.reference import read_table
from archgym.reading.parquet import read_rows, read_whole
from archgym.space import Boolean, DesignSpace
from tests.trust.received import called, received_run

NAME = "datasets/Conformance-v0"
ZEROS = 1 << 40


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return received_run(tmp_path_factory.mktemp("sizes") / "run")


@pytest.mark.parametrize("name", [f"{NAME}/journal/x.jsonl", "log/x.jsonl"])
def test_a_file_of_zeros_is_no_line(name: str, sent: Path, tmp_path: Path) -> None:
    """A sparse file takes no room, and a line of it would fill the memory."""
    path = sent / name
    path.touch()
    try:
        with path.open("r+b") as file:
            try:
                file.truncate(ZEROS)
            except OSError:
                pytest.skip("the file system has no files of this size")
        ended = called(["dataset", "validate", "."], sent, limit_s=60)
    finally:
        path.unlink()
    assert ended.code in (1, 2)
    assert "x.jsonl" in ended.out + ended.err
    assert "Traceback" not in ended.err


def test_a_text_that_is_repeated_is_counted_each_time(tmp_path: Path) -> None:
    """Two megabytes, once in the file, would be twenty gigabytes as rows."""
    path = tmp_path / "trials.parquet"
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 10_000, pa.int32()), ["x" * (2 << 20)])
    pq.write_table(pa.table({"trial_id": column}), path, store_schema=False, compression="zstd")
    with pytest.raises(OSError, match="texts are larger than the limit"):
        read_rows(path)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_string()])
def test_whatever_is_repeated_is_counted_each_time(kind: pa.DataType, tmp_path: Path) -> None:
    path = tmp_path / "trials.parquet"
    texts = pa.array(["x" * (2 << 20)]).cast(kind)
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 10_000, pa.int32()), texts)
    pq.write_table(pa.table({"other": column}), path, compression="zstd")
    with pytest.raises(OSError, match="texts are larger than the limit"):
        read_rows(path)


def test_numbers_that_are_repeated_are_counted_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row may be a list of any length."""
    monkeypatch.setattr("archgym.reading.parquet.REPEATED_LIMIT_BYTES", 1 << 22)
    path = tmp_path / "table.parquet"
    zeros = pa.array(np.zeros(1 << 20, np.int64))
    row = pa.ListArray.from_arrays(pa.array([0, len(zeros)], pa.int32()), zeros)
    pq.write_table(pa.table({"index": row}), path)
    assert path.stat().st_size < 1 << 12
    with pytest.raises(OSError, match="a column is larger than the limit of 4,194,304 bytes"):
        read_whole(path)


def test_a_text_of_a_row_is_counted_in_each_row(sent: Path, tmp_path: Path) -> None:
    """A reason of a megabyte, once in the file, in each of two thousand rows."""
    copy = tmp_path / "run"
    shutil.copytree(sent, copy)
    path = next((copy / NAME / "evaluations").glob("*.parquet"))
    table = pa.concat_tables([pq.read_table(path)] * 200)
    place, field = table.schema.get_field_index("reason"), table.schema.field("reason")
    texts = pa.array(["x" * (1 << 20)])
    same = pa.DictionaryArray.from_arrays(pa.array([0] * len(table), pa.int32()), texts)
    pq.write_table(table.set_column(place, field, same), path, compression="zstd")
    assert path.stat().st_size < 1 << 20
    ended = called(["dataset", "filter", ".", "new", "--agent", "ga"], copy, limit_s=60)
    assert ended.code == 2
    assert "larger than the limit" in ended.err


def test_a_table_has_no_billion_cells(tmp_path: Path) -> None:
    path = tmp_path / "reference.parquet"
    zeros = pa.array(np.zeros(200_000, np.int8))
    pq.write_table(pa.table({f"c{i}": zeros for i in range(200)}), path)
    with pytest.raises(OSError, match="more than the limit of 30,000,000 cells"):
        read_rows(path)


def test_a_header_of_many_columns_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    names = [f"c{i}" for i in range(200_000)]
    path.write_text(f"{','.join(names)}\n{','.join('1' * len(names))}\n")
    assert read_table(path)[0] == names
    path.write_text(f"a,b,{','.join(names)},a\n{','.join('1' * (len(names) + 3))}\n")
    with pytest.raises(InvalidValueError, match="the header names column 'a' twice"):
        read_table(path)


def test_a_packed_table_has_no_million_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archgym.problem.reference._LIMIT_ROWS", 10_000)
    path = tmp_path / "long.csv.gz"
    path.write_bytes(gzip.compress(b"a\n" + b"1\n" * 10_001))
    assert path.stat().st_size < 1 << 10
    with pytest.raises(InvalidValueError, match="limits of 10,000 rows"):
        read_table(path)


def test_a_space_of_many_parameters_is_read_at_once() -> None:
    space = DesignSpace([Boolean(f"p{i}") for i in range(20_000)])
    assert space.key([1] * len(space.names)) == space.largest_key
    metrics = [Metric(f"m{i}_ns", "ns", "minimize") for i in range(50_000)]
    check_metrics(metrics, "the dataset")
    with pytest.raises(InvalidValueError, match="metrics named twice: m7_ns"):
        check_metrics([*metrics, metrics[7]], "the dataset")


def test_a_table_has_no_billion_rows(tmp_path: Path) -> None:
    path = tmp_path / "trials.parquet"
    pq.write_table(pa.table({"seed": pa.nulls(1_000_001, pa.int64())}), path)
    with pytest.raises(OSError, match="more than the limit of 1,000,000 rows"):
        read_rows(path)


@pytest.mark.parametrize(("folder", "column"), [("evaluations", "reason"), ("trials", "settings")])
def test_a_text_of_a_gigabyte_is_damage(
    folder: str, column: str, sent: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(sent, copy)
    path = next((copy / NAME / folder).glob("*.parquet"))
    table = pq.read_table(path)
    place, field = table.schema.get_field_index(column), table.schema.field(column)
    texts = ["x" * (300 << 20), *table[column].to_pylist()[1:]]
    changed = table.set_column(place, field, pa.array(texts).cast(field.type))
    pq.write_table(changed, path, compression="zstd")
    assert path.stat().st_size < 1 << 20
    ended = called(["dataset", "filter", ".", "new", "--agent", "ga"], copy, limit_s=60)
    assert ended.code == 2
    assert "larger than the limit" in ended.err
    assert not (copy / "new").exists()
