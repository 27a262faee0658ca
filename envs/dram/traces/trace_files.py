"""Reads and writes memory trace files: text formats of DRAM simulators, and a compact binary one.

==============  ====================================  ==========================================
format          one request                           time
==============  ====================================  ==========================================
``stl``         ``12: read 0x1f40``                   clock cycles (DRAMSys, ``clock_mhz``)
``dramsim3``    ``0x1f40 READ 12``                    clock cycles (DRAMsim3, ``clock_mhz``)
``ramulator``   ``LD 0x1f40``                         none: evenly spaced (``interval_ns``)
``ramulator1``  ``0x1f40 R``                          none: evenly spaced (``interval_ns``)
``text``        ``15.25 R 0x1f40``                    nanoseconds, fractions allowed
``npz``         NumPy archive, not pickled            picoseconds
==============  ====================================  ==========================================

Text may be gzipped; ``#`` starts a comment. A request of an ``stl`` file may carry its length,
``12: (128) read 0x1f40``, in bytes; a longer one than a line becomes several of 64 bytes.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TextIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from archgym.envs.dram.traces import npz_format
from archgym.envs.dram.traces.text_formats import (
    TEXT_FORMATS,
    TextFormat,
    cycles_to_ps,
    ps_to_cycles,
)
from archgym.envs.dram.traces.trace import Trace
from archgym.errors import InvalidValueError, TraceError, UnknownNameError
from archgym.reading.files import meant_file

__all__ = [
    "DEFAULT_INTERVAL_NS",
    "FORMATS",
    "MAX_REQUESTS",
    "TRACE_SUFFIXES",
    "guess_format",
    "read_trace",
    "trace_name",
    "write_trace",
]

FORMATS: tuple[str, ...] = (*TEXT_FORMATS, "npz")
"""Every format name."""

TRACE_SUFFIXES: tuple[str, ...] = (".stl", ".trace", ".npz", ".txt", ".gz")
"""File endings by which a word is taken for a path."""

DEFAULT_INTERVAL_NS = 1.0
"""Spacing of the requests of a format without times, ns."""

MAX_REQUESTS: Final = 1 << 26
"""Requests of a file up to which it is read, to be cut (the simulator takes 16.7 million)."""

_PathLike: TypeAlias = str | os.PathLike[str]
_LINE_BYTES = 64
_LINE_LIMIT: Final = 4097
_NUMBER: Final = r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_CLOCK_HEADER = re.compile(
    rf"#.*?\bcl(?:k|ock)_?mhz\b\W*{_NUMBER}|#\W*cl(?:k|ock)\W*{_NUMBER}\s*MHz\b", re.IGNORECASE
)


def read_trace(
    path: _PathLike,
    format: str | None = None,
    *,
    clock_mhz: float | None = None,
    interval_ns: float | None = None,
    name: str | None = None,
) -> Trace:
    """Read a trace file.

    Args:
        path: the file, gzipped or not.
        format: one of :data:`FORMATS`; guessed from the ending and the first line if None.
        clock_mhz: clock in which ``stl`` and ``dramsim3`` count, MHz. If None: the clock of a
            comment at the top such as ``# clock_mhz: 800`` or ``# clock: 800 MHz``, else 800
            (``stl``), 1200 (``dramsim3``).
        interval_ns: time between two requests of a format without times, ns; 1 if None.
        name: name of the trace; the file's name without its endings if None.

    Raises:
        TraceError: if the file cannot be read; names the file, the line and what is expected.
        UnknownNameError: for an unknown format.
        InvalidValueError: for a clock or an interval that the format does not use or allow.
    """
    path = Path(path)
    name = name or trace_name(path)
    chosen = format or guess_format(path)
    if chosen not in FORMATS:
        raise UnknownNameError("trace format", chosen, FORMATS)
    if chosen == "npz":
        _refuse(path, chosen, clock_mhz=clock_mhz, interval_ns=interval_ns)
        return npz_format.read_npz(path, name)
    return _read_text(path, TEXT_FORMATS[chosen], clock_mhz, interval_ns, name)


def write_trace(
    trace: Trace,
    path: _PathLike,
    format: str | None = None,
    *,
    clock_mhz: float | None = None,
) -> Path:
    """Write a trace so that the simulator of that format reads it; gzipped if it ends in ``.gz``.

    Clocked formats round each time down to a clock edge, ``ramulator`` and ``ramulator1`` have
    no times at all; ``text`` and ``npz`` keep everything.

    Args:
        trace: what to write.
        path: where; an existing file is replaced.
        format: one of :data:`FORMATS`; from the ending (``.stl``, ``.npz``) if None.
        clock_mhz: clock of ``stl`` (800 if None) or ``dramsim3`` (1200 if None), MHz.

    Returns:
        The path.

    Raises:
        UnknownNameError: for an unknown format, or None with an ending that says nothing.
    """
    path = Path(path)
    chosen = format or _format_of_ending(path) or path.suffix
    if chosen not in FORMATS:
        raise UnknownNameError("trace format", chosen, FORMATS, where=str(path))
    if chosen == "npz":
        _refuse(path, chosen, clock_mhz=clock_mhz)
        return npz_format.write_npz(trace, path)
    kind = TEXT_FORMATS[chosen]
    clock = _clock(kind, clock_mhz, path, kind.default_clock_mhz)
    text = kind.header.format(clock=clock, name=trace.name)
    times = ps_to_cycles(trace.arrival_ps, clock) if clock else trace.arrival_ps
    columns = zip(times.tolist(), trace.is_write.tolist(), trace.address.tolist(), strict=True)
    data = (text + "".join([kind.line(*row) for row in columns])).encode("ascii")
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    path.write_bytes(data)
    return path


def guess_format(path: _PathLike) -> str:
    """The format of a file, from its ending or else its first request.

    Raises:
        TraceError: if the file is missing or empty, or its first line is of no known format.
    """
    path = Path(path)
    by_ending = _format_of_ending(path)
    if by_ending:
        return by_ending
    with _text(path) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            fitting = [
                k for k, kind in TEXT_FORMATS.items() if kind.pattern.fullmatch(line.strip())
            ]
            if fitting:
                return fitting[0]
            known = "; ".join(f"{k}: {kind.example}" for k, kind in TEXT_FORMATS.items())
            raise TraceError(
                f"{path}, line {number}: {_shown(line)} is of no known trace format. "
                "Give its format (workload={file: ..., format: ...}), "
                f"or write requests as one of {known}"
            )
    raise TraceError(f"{path}: the trace is empty: it holds no request")


def trace_name(path: _PathLike) -> str:
    """The name of the trace in a file: the file's name without ``.gz`` and its format's ending."""
    path = Path(path)
    inner = path.with_suffix("") if path.suffix == ".gz" else path
    return inner.stem or path.name


def _format_of_ending(path: Path) -> str | None:
    """``stl`` or ``npz`` by the ending; None where the ending says nothing."""
    suffix = (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower()
    if suffix == ".rstl":
        raise TraceError(
            f"{path}: '.rstl' counts from the completion of the request before, so it has no "
            "arrival times; use an absolute '.stl' trace"
        )
    return {".stl": "stl", ".npz": "npz"}.get(suffix)


def _read_text(
    path: Path, kind: TextFormat, clock_mhz: float | None, interval_ns: float | None, name: str
) -> Trace:
    if kind.timed:
        _refuse(path, kind.name, interval_ns=interval_ns)
    times, lengths, writes, addresses, header_clock = _parse(path, kind)
    if not addresses:
        raise TraceError(f"{path}: the trace is empty: it holds no request")
    clock = _clock(kind, clock_mhz, path, header_clock or kind.default_clock_mhz)
    if not kind.timed:
        arrival = _evenly(len(addresses), interval_ns)
    else:
        arrival = _column(path, kind, times, "time")
        _check_order(path, kind, arrival)
        arrival = cycles_to_ps(arrival, clock) if clock else arrival
    address = _column(path, kind, addresses, "address")
    is_write = np.array(writes, np.uint8)
    if any(lengths):
        if sum(max(1, -(-length // _LINE_BYTES)) for length in lengths) > MAX_REQUESTS:
            raise TraceError(f"{path}: more than {MAX_REQUESTS:,} requests of {_LINE_BYTES} bytes")
        arrival, address, is_write = _split(lengths, arrival, address, is_write)
    return Trace(name, arrival, address, is_write)


def _parse(
    path: Path, kind: TextFormat
) -> tuple[list[int], list[int], list[bool], list[int], float | None]:
    """Times (cycles or ps), lengths (bytes, 0 if none), writes, addresses, clock of the header."""
    match, convert = kind.pattern.fullmatch, kind.convert
    rows = []
    header_clock = None
    with _text(path) as lines:
        for number, line in enumerate(lines, 1):
            found = match(line.strip())
            if found is not None:
                rows.append(convert(found))
                if len(rows) > MAX_REQUESTS:
                    raise TraceError(f"{path}: more than {MAX_REQUESTS:,} requests")
                continue
            text = line.strip()
            if text and not text.startswith("#"):
                raise TraceError(
                    f"{path}, line {number}: {_shown(line)} is not a {kind.name} request; "
                    f"expected {kind.example}{kind.hint(text)}"
                )
            if not rows and (clock := _CLOCK_HEADER.match(text)):
                header_clock = float(clock[1] or clock[2])
    times, lengths, writes, addresses = map(list, zip(*rows, strict=True)) if rows else ([],) * 4
    return times, lengths, writes, addresses, header_clock


@contextmanager
def _text(path: Path) -> Iterator[Iterator[str]]:
    """The lines of a text file, gzipped or not; what goes wrong becomes a TraceError."""
    if not path.exists():
        raise TraceError(f"{path}: there is no such trace file{meant_file(path)}")
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            data: Any = gzip.GzipFile(fileobj=raw) if packed else raw
            with io.TextIOWrapper(data, encoding="utf-8", errors="backslashreplace") as text:
                yield _lines(path, text)
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(f"{path}: cannot read the trace file: {error}") from error


def _lines(path: Path, text: TextIO) -> Iterator[str]:
    number = 0
    while line := text.readline(_LINE_LIMIT):
        number += 1
        if len(line) == _LINE_LIMIT:
            raise TraceError(f"{path}, line {number}: longer than {_LINE_LIMIT - 1} characters")
        yield line


def _column(path: Path, kind: TextFormat, values: list[int], what: str) -> NDArray[np.int64]:
    """A column as int64, shape (n,)."""
    try:
        return np.array(values, np.int64)
    except OverflowError:
        at = next(i for i, value in enumerate(values) if value >= 1 << 63)
        number, line = _line_of(path, kind, at)
        raise TraceError(
            f"{path}, line {number}: {_shown(line)}: the {what} does not fit in 63 bits"
        ) from None


def _check_order(path: Path, kind: TextFormat, times: NDArray[np.int64]) -> None:
    back = np.flatnonzero(np.diff(times) < 0)
    if back.size:
        number, line = _line_of(path, kind, int(back[0]) + 1)
        before, _ = _line_of(path, kind, int(back[0]))
        raise TraceError(
            f"{path}, line {number}: {_shown(line)} arrives before line {before}: "
            "the times must not decrease"
        )


def _line_of(path: Path, kind: TextFormat, request: int) -> tuple[int, str]:
    """Number and text of the line that holds a request (counted from 0)."""
    seen = -1
    with _text(path) as lines:
        for number, line in enumerate(lines, 1):
            seen += kind.pattern.fullmatch(line.strip()) is not None
            if seen == request:
                return number, line
    raise TraceError(f"{path}: the file changed while it was read")


def _split(
    lengths: list[int],
    arrival: NDArray[np.int64],
    address: NDArray[np.int64],
    is_write: NDArray[np.uint8],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    """Requests longer than a line become several, one after the other."""
    count = np.maximum(1, -(-np.array(lengths, np.int64) // _LINE_BYTES))
    first = np.repeat(np.cumsum(count) - count, count)
    offset = (np.arange(int(count.sum()), dtype=np.int64) - first) * _LINE_BYTES
    return np.repeat(arrival, count), np.repeat(address, count) + offset, np.repeat(is_write, count)


def _evenly(n: int, interval_ns: float | None) -> NDArray[np.int64]:
    interval = DEFAULT_INTERVAL_NS if interval_ns is None else interval_ns
    if not 0 <= interval <= 1e9:
        raise InvalidValueError(f"interval_ns={interval!r} must be from 0 to 1e9 ns")
    return np.arange(n, dtype=np.int64) * round(interval * 1000)


def _clock(
    kind: TextFormat, given: float | None, path: Path, default: float | None
) -> float | None:
    """The clock that counts the times, MHz; None for a format without a clock."""
    if kind.default_clock_mhz is None:
        _refuse(path, kind.name, clock_mhz=given)
        return None
    clock = default if given is None else given
    if clock is None or not 0.001 <= clock <= 1e6:
        raise InvalidValueError(f"{path}: clock_mhz={clock!r} must be from 0.001 to 1e6 MHz")
    return clock


def _refuse(path: Path, format: str, **arguments: float | None) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise InvalidValueError(
                f"{path}: {name}={value!r} has no meaning for the format {format!r}"
            )


def _shown(line: str) -> str:
    text = line.strip()
    return repr(text if len(text) <= 80 else text[:77] + "...")
