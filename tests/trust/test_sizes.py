"""Files of a received folder that are small to send and huge to read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archgym.reading.parquet import read_rows
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
