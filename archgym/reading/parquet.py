"""Limits for Parquet files that others made: a few kilobytes of them can stand for terabytes.

A value that is repeated stands in a file once. Numbers are counted from the file's description
before they are read; texts are read as references to the different ones, and counted then.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from archgym.reading.files import opened

COLUMN_LIMIT_BYTES: Final = 1 << 28
"""256 MiB: unpacked values of one column in one block of rows, which may have a million rows."""
REPEATED_LIMIT_BYTES: Final = 1 << 30
"""1 GiB: numbers of one column in one block of rows, those that are repeated counted each time."""
TABLE_LIMIT_BYTES: Final = 1 << 30
"""1 GiB: texts of a table that is read as a whole."""
TABLE_LIMIT_ROWS: Final = 1_000_000
"""Rows of a table that is read as a whole."""
TABLE_LIMIT_CELLS: Final = 30_000_000
"""Cells of a table of which each becomes a Python object: a million rows of trials."""
WHOLE_LIMIT_BYTES: Final = 1 << 32
"""4 GiB: numbers of a table that is read as a whole, those that are repeated counted each time."""
_WIDTHS: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_REFERENCE_BYTES: Final = 4


def check_columns(path: Path, metadata: pq.FileMetaData, *, whole: bool = False) -> None:
    """Refuses a file of which one block of rows would fill the memory.

    Args:
        path: of the file, for messages.
        metadata: of the file.
        whole: whether all of it is read at once, so that its blocks count together.

    Raises:
        OSError: if it has one.
    """
    total = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for column in range(group.num_columns):
            chunk, about = group.column(column), metadata.schema.column(column)
            packed = chunk.total_uncompressed_size
            repeated = chunk.num_values * _width(about)
            total += repeated
            for size, limit in (packed, COLUMN_LIMIT_BYTES), (repeated, REPEATED_LIMIT_BYTES):
                if size > limit:
                    raise _too_large(path, f"a column is larger than the limit of {limit:,} bytes")
    if whole and total > WHOLE_LIMIT_BYTES:
        raise _too_large(path, f"it is larger than the limit of {WHOLE_LIMIT_BYTES:,} bytes")


def columns_of_texts(metadata: pq.FileMetaData) -> list[str]:
    """The columns that are read as references: ``read_dictionary`` of :class:`pq.ParquetFile`."""
    columns = (metadata.schema.column(i) for i in range(metadata.num_columns))
    return [one.path for one in columns if one.physical_type == "BYTE_ARRAY"]


def check_texts(path: Path, columns: Iterable[pa.ChunkedArray]) -> None:
    """Refuses columns whose texts would fill the memory, once each of them is an object.

    Args:
        path: of the file, for messages.
        columns: as they were read, with :func:`columns_of_texts`.

    Raises:
        OSError: if they would.
    """
    if sum(map(_text_bytes, columns)) > TABLE_LIMIT_BYTES:
        raise _too_large(path, f"texts are larger than the limit of {TABLE_LIMIT_BYTES:,} bytes")


def read_whole(path: Path, columns: list[str] | None = None) -> pa.Table:
    """A table as a whole; its texts are dictionaries.

    Args:
        path: of the file.
        columns: names of those that are read; all unless given.

    Raises:
        OSError: if it cannot be read, is no file, or is too large.
        pa.ArrowException: if it is damaged.
    """
    path = path.absolute()
    opened(path).close()  # raises for a pipe, which would be waited for
    metadata = pq.read_metadata(path)
    check_columns(path, metadata, whole=True)
    texts = columns_of_texts(metadata)
    with pq.ParquetFile(path, page_checksum_verification=True, read_dictionary=texts) as file:
        table = file.read(columns)
    check_texts(path, table.columns)
    return table


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All rows of a table as plain values.

    Raises:
        OSError: if it cannot be read, or is too large.
        pa.ArrowException: if it is damaged.
    """
    opened(path).close()
    metadata = pq.read_metadata(path.absolute())
    if metadata.num_rows > TABLE_LIMIT_ROWS:
        raise _too_large(path, f"more than the limit of {TABLE_LIMIT_ROWS:,} rows")
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    cells = sum(one.column(i).num_values for one in groups for i in range(one.num_columns))
    if cells > TABLE_LIMIT_CELLS:
        raise _too_large(path, f"more than the limit of {TABLE_LIMIT_CELLS:,} cells")
    rows: list[dict[str, Any]] = read_whole(path).to_pylist()
    return rows


def _width(column: Any) -> int:
    """Bytes of a value of a column in memory."""
    if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return int(column.length)
    return _WIDTHS.get(column.physical_type, _REFERENCE_BYTES)


def _text_bytes(column: pa.ChunkedArray) -> int:
    """Size of the texts of a column, those that are repeated counted each time."""
    found = 0
    for chunk in column.chunks:
        values = chunk
        while pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
            values = values.flatten()
        if pa.types.is_dictionary(values.type) and _is_text(values.type.value_type):
            sizes = pc.binary_length(values.dictionary).take(values.indices)
            found += pc.sum(pc.cast(sizes, pa.int64())).as_py() or 0
    return found


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def _too_large(path: Path, what: str) -> OSError:
    return OSError(errno.EFBIG, what, str(path))
