"""The binary trace format ``npz``: a compressed NumPy archive that is never unpickled.

Times and line addresses are stored as differences in the narrowest integer type that holds them,
so that a recorded program of 100,000 requests takes a few hundred kilobytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.dram.traces.trace import Trace
from archgym.errors import TraceError
from archgym.reading.files import meant_file, read_arrays

__all__ = ["from_planes", "read_npz", "stored_fields", "to_planes", "whole_number", "write_npz"]

_LIMIT_BYTES: Final = 1 << 31
"""2 GiB of arrays: some 120 million requests."""

_VERSION = 1
_FIELDS = ("version", "arrival_step_ps", "address_step", "address_shift", "is_write")
_OTHERS: Final = {
    "arrival_step_ps": "; it is a trace of requests to memory, for DRAM-v0: record the program "
    "with --cpu for CPU-v0",
    "executed": "; it is a stream of instructions, for CPU-v0: archgym trace filter makes a "
    "workload of DRAM-v0 of it, and archgym trace info --cpu looks into it",
}
"""What a file is that has this field, if it is none of those that were asked for."""


def write_npz(trace: Trace, path: Path) -> Path:
    """Write a trace; exact in every request, the name is left to the file's name.

    Args:
        trace: what to write.
        path: where; must end in ``.npz``.
    """
    if path.suffix != ".npz":
        raise TraceError(f"{path}: a binary trace must have the ending '.npz'")
    every = int(np.bitwise_or.reduce(trace.address))
    shift = (every & -every).bit_length() - 1 if every else 0
    with path.open("wb") as file:
        np.savez_compressed(
            file,
            version=np.int64(_VERSION),
            arrival_step_ps=to_planes(np.diff(trace.arrival_ps, prepend=0)),
            address_step=to_planes(np.diff(trace.address >> shift, prepend=0)),
            address_shift=np.int64(shift),
            is_write=np.packbits(trace.is_write),
        )
    return path


def read_npz(path: Path, name: str) -> Trace:
    """Read what :func:`write_npz` wrote.

    Raises:
        TraceError: if the file is missing, damaged or of another kind.
    """
    fields = stored_fields(path, _FIELDS, _VERSION, "trace")
    shift = whole_number(fields["address_shift"])
    columns = (fields["arrival_step_ps"], fields["address_step"])
    n = columns[0].shape[-1] if columns[0].ndim == 2 else 0
    bits = fields["is_write"]
    whole = all(p.dtype == np.uint8 and p.ndim == 2 and len(p) <= 8 for p in columns)
    if (
        not (whole and all(p.shape[1] == n for p in columns) and 0 <= shift < 64)
        or bits.dtype != np.uint8
        or bits.shape != (-(-n // 8),)
    ):
        raise TraceError(f"{path}: the binary trace is damaged: its fields do not fit together")
    arrival = np.cumsum(from_planes(fields["arrival_step_ps"]), dtype=np.int64)
    address = np.cumsum(from_planes(fields["address_step"]), dtype=np.int64)
    is_write = np.unpackbits(fields["is_write"], count=len(arrival))
    return Trace(name, arrival, address << shift, is_write)


def stored_fields(
    path: Path, names: Sequence[str], version: int, what: str
) -> dict[str, NDArray[Any]]:
    """The arrays of a file.

    Args:
        path: the file.
        names: of the arrays that it must have; ``version`` is one of them.
        version: that this archgym reads.
        what: the file holds, for messages: ``trace`` or ``stream``.

    Raises:
        TraceError: if the file is missing, cannot be read, or is of another kind or version.
    """
    if not path.exists():
        raise TraceError(f"{path}: there is no such trace file{meant_file(path)}")
    try:
        fields = read_arrays(path, _LIMIT_BYTES)
    except (OSError, ValueError) as error:
        raise TraceError(f"{path}: cannot read the binary {what}: {error}") from error
    missing = [name for name in names if name not in fields]
    if missing:
        found_in = (
            text for field, text in _OTHERS.items() if field in fields and field not in names
        )
        remark = next(found_in, "")
        raise TraceError(
            f"{path}: not an archgym {what}: the field {missing[0]!r} is missing{remark}"
        )
    found = whole_number(fields["version"])
    if found != version:
        raise TraceError(f"{path}: {what} version {found} is unknown; this archgym reads {version}")
    return fields


def whole_number(field: NDArray[Any]) -> int:
    """A field that holds one integer; -1 if it does not."""
    return int(field) if field.shape == () and field.dtype.kind in "iu" else -1


def to_planes(steps: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The bytes of the steps, least significant plane first, shape (bytes, n).

    Planes of equal significance compress better than whole integers.
    """
    # Small magnitudes of either sign become small unsigned numbers.
    folded = ((steps << 1) ^ (steps >> 63)).view(np.uint64)
    width = max(1, (int(folded.max()).bit_length() + 7) // 8)
    data = folded.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width]
    return np.ascontiguousarray(data.T)


def from_planes(planes: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The inverse of :func:`to_planes`, shape (n,)."""
    data = np.zeros((planes.shape[1], 8), np.uint8)
    data[:, : planes.shape[0]] = planes.T
    folded = data.view("<u8").reshape(-1).astype(np.uint64)
    return (folded >> np.uint64(1)).astype(np.int64) ^ -(folded & np.uint64(1)).astype(np.int64)
