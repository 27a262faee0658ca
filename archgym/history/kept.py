"""History in a file of a run, from which all of its trials read the same.

What earlier problems gave is read once, when a run begins. Whatever becomes of their folders, the
trials of the run, and those of a run that is resumed, learn from what is kept.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from archgym.data.parts import is_as_written, write_parquet
from archgym.environment.environment import Environment
from archgym.errors import DatasetError
from archgym.history.account import SourceAccount
from archgym.history.earlier import Earlier
from archgym.problem.metrics import Metric
from archgym.problem.status import Status
from archgym.reading.checked_json import checked_json
from archgym.reading.parquet import TABLE_LIMIT_ROWS, check_columns
from archgym.space import DesignSpace

__all__ = ["read_accounts", "read_kept", "write_kept"]

_KEY: Final = b"archgym.history"
_FORMAT: Final = 1
_STATUS: Final = (Status.OK, Status.FAILED, Status.TIMEOUT)
Found = tuple[list[Earlier], tuple[SourceAccount, ...]]
"""The earlier problems, and what became of their rows."""


@dataclass(frozen=True)
class _Source:
    """The form of a source in the file's description; the baseline has null for no value."""

    name: str
    same: bool
    ordered: bool
    baseline: list[float | None]


@dataclass(frozen=True)
class _Description:
    """The form of the file's description."""

    format: int
    sources: list[_Source]
    accounts: list[SourceAccount]


def write_kept(path: Path, found: Found, environment: Environment) -> None:
    """Writes history into a file, by write and rename.

    Args:
        path: of the file.
        found: what :func:`archgym.history.reading.read_earlier` gave.
        environment: for whose searches it is.

    Raises:
        DatasetError: if it cannot be written.
    """
    earlier, accounts = found
    data = {
        "format": _FORMAT,
        "sources": [
            asdict(_Source(one.name, one.same, one.ordered, [*map(_number, one.baseline.tolist())]))
            for one in earlier
        ],
        "accounts": [asdict(account) for account in accounts],
    }
    schema = _schema(environment.design_space, environment.metrics)
    schema = schema.with_metadata({_KEY: json.dumps(data, allow_nan=False).encode()})
    tables = (_table(number, one, schema) for number, one in enumerate(earlier))
    write_parquet(path, schema, tables, digest=True)


def read_kept(path: Path, environment: Environment) -> Found:
    """The history in a file.

    Raises:
        DatasetError: if it is not there, was changed, or is of another design space or metrics.
    """
    space, metrics = environment.design_space, environment.metrics
    try:
        with pq.ParquetFile(path.absolute(), page_checksum_verification=True) as file:
            check_columns(path, file.metadata)
            if file.metadata.num_rows > TABLE_LIMIT_ROWS:
                raise ValueError(f"it has more than {TABLE_LIMIT_ROWS:,} rows")
            if not is_as_written(path):
                raise ValueError("it was changed, its checksum is another one")
            text = (file.metadata.metadata or {}).get(_KEY, b"").decode()
            if file.schema_arrow.remove_metadata() != _schema(space, metrics):
                raise ValueError("it is of another design space or other metrics")
            table = file.read()
        described = checked_json(text, _Description)
        if described.format != _FORMAT:
            raise ValueError(f"its format is {described.format}, this version reads {_FORMAT}")
        return _earlier(table, described, space, metrics), tuple(described.accounts)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DatasetError(f"cannot read {path}: {error}") from error


def read_accounts(path: Path) -> tuple[SourceAccount, ...]:
    """What became of the rows of the earlier problems in a file; nothing if it cannot be read."""
    try:
        metadata = pq.read_metadata(path.absolute())
        check_columns(path, metadata)
        text = (metadata.metadata or {}).get(_KEY, b"").decode()
        return tuple(checked_json(text, _Description).accounts)
    except (pa.ArrowException, OSError, ValueError):
        return ()


# -- inner workings ------------------------------------------------------------------------------


def _schema(space: DesignSpace, metrics: Iterable[Metric]) -> pa.Schema:
    fields = [("source", pa.int32()), ("status", pa.int8())]
    fields += [(f"code.{name}", pa.int64()) for name in space.names]
    fields += [(f"metric.{metric.name}", pa.float64()) for metric in metrics]
    return pa.schema(fields)


def _table(number: int, one: Earlier, schema: pa.Schema) -> pa.Table:
    columns: list[Any] = [np.full(len(one.codes), number), one.status]
    columns += [*one.codes.T, *one.metrics.T]
    arrays = [pa.array(column, f.type) for column, f in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema)


def _earlier(
    table: pa.Table, described: _Description, space: DesignSpace, metrics: Iterable[Metric]
) -> list[Earlier]:
    columns = {name: table[name].to_numpy() for name in table.column_names}
    if any(table[name].null_count for name in table.column_names):
        raise ValueError("a value is missing")
    codes = np.column_stack([columns[f"code.{name}"] for name in space.names])
    sizes = np.array([parameter.size for parameter in space.parameters])
    if ((codes < -1) | (codes >= sizes)).any():
        raise ValueError("a design is none of the design space")
    if not np.isin(columns["status"], _STATUS).all():
        raise ValueError("a status is none of an evaluation")
    names = [f"metric.{metric.name}" for metric in metrics]
    values = np.column_stack([columns[name] for name in names])
    found = []
    for number, source in enumerate(described.sources):
        if len(source.baseline) != len(names):
            raise ValueError(f"source {source.name!r} has a baseline of another length")
        rows = columns["source"] == number
        baseline = [math.nan if value is None else value for value in source.baseline]
        found.append(
            Earlier(
                source.name,
                codes[rows],
                values[rows],
                columns["status"][rows],
                np.array(baseline, dtype=np.float64),
                source.same,
                source.ordered,
            )
        )
    return found


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
