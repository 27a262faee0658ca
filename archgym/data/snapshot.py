"""The rows of a dataset at one moment, a block at a time."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from archgym.data.journal import Checksums, read_journal, row_values
from archgym.data.records import check_line, check_rows
from archgym.data.schema import (
    FLIGHT_COLUMNS,
    NEVER_NULL,
    Sidecar,
    evaluation_schema,
    rows_to_table,
)
from archgym.errors import DatasetError
from archgym.reading.files import LINE_LIMIT_BYTES, opened
from archgym.reading.parquet import check_columns, check_texts, columns_of_texts

ROWS_A_BLOCK = 1 << 16
"""Maximum number of rows of a block from Parquet."""
_ROWS_OF_A_JOURNAL = 20_000
_BYTES_AT_ONCE = 1 << 18


class Block(NamedTuple):
    """Some rows.

    Attributes:
        rows: number of each in the snapshot, counted from 0, increasing, int64, shape (n,).
        table: the rows.
    """

    rows: NDArray[np.int64]
    table: pa.Table


class Snapshot:
    """The evaluations of a dataset as they were at one moment, in a fixed order.

    Whatever other processes write or seal meanwhile, each pass over :meth:`blocks` gives the
    same rows with the same numbers. The steps of a trial come in their order, unless it was
    resumed by several processes. Nothing but a block is held in memory.

    Args:
        sidecar: of the dataset.
        parts: its Parquet files.
        journals: its journals that are not sealed.

    Attributes:
        sidecar: of the dataset.
        schema: all columns.
    """

    def __init__(self, sidecar: Sidecar, parts: Sequence[Path], journals: Sequence[Path]) -> None:
        self.sidecar = sidecar
        self.schema = evaluation_schema(sidecar.space, sidecar.metrics)
        self._parts = list(parts)
        # Held open, so that nothing is lost when another process seals and removes them.
        self._journals = [_Journal(path) for path in journals]
        self._rows: int | None = None

    def __len__(self) -> int:
        """Number of rows."""
        if self._rows is None:
            self._rows = sum(_metadata(path).num_rows for path in self._parts)
            self._rows += sum(journal.count() for journal in self._journals)
        return self._rows

    def blocks(
        self, columns: Iterable[str] | None = None, keep: NDArray[np.bool_] | None = None
    ) -> Iterator[Block]:
        """The rows, a block at a time.

        Args:
            columns: names of the ones to read; all by default.
            keep: whether each row of the snapshot is wanted, shape (n,); all by default.

        Raises:
            DatasetError: if a file is damaged.
        """
        names = self.schema.names if columns is None else list(dict.fromkeys(columns))
        schema = pa.schema([self.schema.field(name) for name in names])
        start = 0
        for path in self._parts:
            try:
                metadata = pq.read_metadata(path.absolute())
                check_columns(path, metadata)
                # Nothing is taken from the folders' names.
                with pq.ParquetFile(
                    path.absolute(),
                    page_checksum_verification=True,
                    read_dictionary=columns_of_texts(metadata),
                ) as file:
                    for number in range(file.metadata.num_row_groups):
                        stop = start + file.metadata.row_group(number).num_rows
                        if keep is None or keep[start:stop].any():
                            batches = file.iter_batches(ROWS_A_BLOCK, [number], names)
                            tables = (_with_flight(path, batch, names) for batch in batches)
                            yield from _blocks(tables, schema, start, keep)
                        start = stop
            except (pa.ArrowException, OSError, KeyError) as error:
                raise DatasetError(f"cannot read {path}: {error}") from error
        for journal in self._journals:
            for table in journal_tables(self.sidecar, journal.path, journal.lines()):
                yield from _blocks([table], schema, start, keep)
                start += table.num_rows


def journal_tables(sidecar: Sidecar, path: Path, lines: Iterable[bytes]) -> Iterator[pa.Table]:
    """The rows of a journal, a block at a time.

    Args:
        sidecar: of its dataset.
        path: the journal.
        lines: what is in it.
    """
    ids: dict[int, str] = {}
    rows: list[list[Any]] = []

    def table() -> pa.Table:
        check_rows(path, rows, sidecar.space, len(sidecar.metrics), ids)
        return rows_to_table(sidecar.space, sidecar.metrics, rows, ids)

    checksums = Checksums()
    for number, text, line in read_journal(path, enumerate(lines, 1)):
        if not isinstance(line, list):
            check_line(path, number, line)
        if problem := checksums.problem(text, line):
            raise DatasetError(f"{path}, line {number} is damaged: {problem}")
        if isinstance(line, list):
            rows.append(row_values(line))
            if len(rows) >= _ROWS_OF_A_JOURNAL:
                yield table()
                rows = []
        elif "trial" in line:
            if line["n"] in ids:
                raise DatasetError(
                    f"{path}, line {number} is damaged: trial {line['n']} begins twice"
                )
            ids[line["n"]] = line["trial"]["trial_id"]
    if rows:
        yield table()


def _with_flight(path: Path, batch: pa.RecordBatch, names: Sequence[str]) -> pa.Table:
    """A table of a batch, with null columns for those of flight that an older file lacks.

    Raises:
        DatasetError: if a value is null that every evaluation has.
    """
    table = pa.Table.from_batches([batch])
    check_texts(path, table.columns)
    for name in names:
        if name in NEVER_NULL and table[name].null_count:
            lacking = f"{name} is missing in {table[name].null_count:,} rows"
            raise DatasetError(f"{path} is damaged: {lacking}")
        if name in FLIGHT_COLUMNS and name not in table.column_names:
            nulls = pa.nulls(batch.num_rows, FLIGHT_COLUMNS[name])
            table = table.append_column(name, nulls)
    return table


def counts_of(column: pa.ChunkedArray) -> Counter[Any]:
    """How often each value occurs in a column."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return Counter({one["values"]: one["counts"] for one in column.value_counts().to_pylist()})


class _Journal:
    """A journal as long as it was when it was opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = opened(path)
        self._size = os.fstat(self._file.fileno()).st_size

    def lines(self) -> Iterator[bytes]:
        """Its lines; several readers may be at different places of the one file."""
        rest = b""
        for place in range(0, self._size, _BYTES_AT_ONCE):
            size = min(_BYTES_AT_ONCE, self._size - place)
            *whole, rest = (rest + os.pread(self._file.fileno(), size, place)).split(b"\n")
            if len(rest) > LINE_LIMIT_BYTES:
                raise DatasetError(
                    f"{self.path} is damaged: a line is longer than the limit of "
                    f"{LINE_LIMIT_BYTES:,} bytes"
                )
            yield from (line + b"\n" for line in whole)
        yield rest

    def count(self) -> int:
        return sum(line.startswith(b"[") and line.endswith(b"\n") for line in self.lines())


def _blocks(
    tables: Iterable[pa.Table], schema: pa.Schema, start: int, keep: NDArray[np.bool_] | None
) -> Iterator[Block]:
    for table in tables:
        rows = np.arange(start, start + table.num_rows, dtype=np.int64)
        start += table.num_rows
        table = table.select(schema.names).cast(schema)
        if keep is not None:
            wanted = keep[rows]
            if not wanted.all():
                rows, table = rows[wanted], table.filter(pa.array(wanted))
        if len(rows):
            yield Block(rows, table)


def _metadata(path: Path) -> pq.FileMetaData:
    try:
        return pq.read_metadata(path.absolute())
    except (pa.ArrowException, OSError) as error:
        raise DatasetError(f"cannot read {path}: {error}") from error
