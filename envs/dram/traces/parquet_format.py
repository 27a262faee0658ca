"""Traces as Parquet tables: a row for each request, in columns that any data library writes.

The columns are ``arrival_ps`` (or ``arrival_ns``, which may have fractions), ``address`` (bytes)
and ``is_write`` (truth values, or 0 and 1); others are not read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.dram.traces.trace import Trace
from archgym.errors import TraceError
from archgym.reading.files import meant_file, opened

__all__ = ["read_parquet", "write_parquet"]

_TIMES: Final = {"arrival_ps": 1, "arrival_ns": 1000}
_LATEST_PS: Final = 1 << 62


def write_parquet(trace: Trace, path: Path) -> Path:
    """Write a trace; exact in every request, the name is left to the file's name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"arrival_ps": trace.arrival_ps, "address": trace.address}
    table = pa.table({**columns, "is_write": trace.is_write.astype(bool)})
    pq.write_table(table, path, compression="zstd")
    return path


def read_parquet(path: Path, name: str, max_requests: int) -> Trace:
    """Read a table of requests.

    Args:
        path: the file.
        name: of the trace.
        max_requests: rows up to which it is read.

    Raises:
        TraceError: if the file is missing, damaged, too large, or has not these columns.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from archgym.reading.parquet import read_whole

    if not path.exists():
        raise TraceError(f"{path}: there is no such trace file{meant_file(path)}")
    try:
        with opened(path) as raw, pq.ParquetFile(raw) as file:
            columns = _chosen(path, file.schema_arrow.names)
            if file.metadata.num_rows > max_requests:
                raise TraceError(f"{path}: more than {max_requests:,} requests")
        table = read_whole(path, columns)
        time, address, is_write = (_numbers(path, one, table[one]) for one in columns)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise TraceError(f"{path}: cannot read the Parquet trace: {error}") from error
    unit = _TIMES[columns[0]]
    if len(time) and not 0 <= time.min() <= time.max() < _LATEST_PS / unit:
        raise TraceError(f"{path}: a time in {columns[0]!r} is negative or does not fit in 62 bits")
    ps = np.floor(time * unit + 0.5) if time.dtype.kind == "f" else time.astype(np.int64) * unit
    return Trace(name, ps.astype(np.int64), address.astype(np.int64), is_write.astype(np.uint8))


def _chosen(path: Path, names: list[str]) -> list[str]:
    times = [name for name in _TIMES if name in names]
    lacking = [name for name in ("address", "is_write") if name not in names]
    if not times or lacking:
        raise TraceError(
            f"{path}: a Parquet trace has the columns arrival_ps or arrival_ns, address and "
            f"is_write; this one lacks {' and '.join([*([] if times else ['a time']), *lacking])}. "
            f"It has: {', '.join(names[:20])}"
        )
    return [times[0], "address", "is_write"]


def _numbers(path: Path, name: str, column: Any) -> NDArray[Any]:
    """A column of numbers without gaps, shape (n,)."""
    kind = getattr(column.type, "value_type", column.type)  # of texts, which are references
    is_text = kind != column.type
    values: NDArray[Any] = np.empty(0, object) if is_text else column.to_numpy()
    kinds = "iuf" if name == "arrival_ns" else "iub" if name == "is_write" else "iu"
    if column.null_count or values.dtype.kind not in kinds:
        wanted = {"arrival_ns": "numbers", "is_write": "truth values, or 0 and 1"}
        raise TraceError(
            f"{path}: the column {name!r} must hold {wanted.get(name, 'whole numbers')} without "
            f"gaps; it holds {kind}" + (", with gaps" if column.null_count else "")
        )
    if name == "address" and values.size and values.max() >= 1 << 63:
        raise TraceError(f"{path}: an address does not fit in 63 bits")
    if name == "is_write" and values.size and (values.min() < 0 or values.max() > 1):
        raise TraceError(f"{path}: the column 'is_write' must hold truth values, or 0 and 1")
    return values
