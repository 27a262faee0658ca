"""Limits for Parquet files that others made: a few kilobytes of them can stand for terabytes."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

COLUMN_LIMIT_BYTES: Final = 1 << 28
"""256 MiB: unpacked values of one column in one block of rows, which may have a million rows."""
TABLE_LIMIT_BYTES: Final = 1 << 30
"""1 GiB: texts of a table that is read as a whole."""
TABLE_LIMIT_ROWS: Final = 1_000_000
"""Rows of a table that is read as a whole."""


def check_columns(path: Path, metadata: pq.FileMetaData) -> None:
    """Refuses a file of which one block of rows would fill the memory.

    Raises:
        OSError: if it has one.
    """
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for column in range(group.num_columns):
            if group.column(column).total_uncompressed_size > COLUMN_LIMIT_BYTES:
                what = f"a column is larger than the limit of {COLUMN_LIMIT_BYTES:,} bytes"
                raise OSError(errno.EFBIG, what, str(path))


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All rows of a table as plain values.

    Raises:
        OSError: if it cannot be read, or is too large.
        pa.ArrowException: if it is damaged.
    """
    texts = [f.name for f in pq.read_schema(path.absolute()) if pa.types.is_string(f.type)]
    with pq.ParquetFile(
        path.absolute(), page_checksum_verification=True, read_dictionary=texts
    ) as file:
        check_columns(path, file.metadata)
        if file.metadata.num_rows > TABLE_LIMIT_ROWS:
            what = f"more than the limit of {TABLE_LIMIT_ROWS:,} rows"
            raise OSError(errno.EFBIG, what, str(path))
        table = file.read()
    if sum(map(_text_bytes, table.columns)) > TABLE_LIMIT_BYTES:
        what = f"texts are larger than the limit of {TABLE_LIMIT_BYTES:,} bytes"
        raise OSError(errno.EFBIG, what, str(path))
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _text_bytes(column: pa.ChunkedArray) -> int:
    """Size of the texts of a column, those that are repeated counted each time."""
    if not pa.types.is_dictionary(column.type) or not pa.types.is_string(column.type.value_type):
        return 0
    sizes = (pc.binary_length(one.dictionary).take(one.indices) for one in column.chunks)
    return sum(pc.sum(pc.cast(size, pa.int64())).as_py() or 0 for size in sizes)
