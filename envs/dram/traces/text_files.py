"""Reads and writes trace files in the text formats, gzipped or not."""

from __future__ import annotations

import gzip
import io
import re
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TextIO

import numpy as np
from numpy.typing import NDArray

from archgym.envs.dram.traces.line_formats import TextFormat, cycles_to_ps, ps_to_cycles
from archgym.envs.dram.traces.trace import Trace
from archgym.errors import InvalidValueError, TraceError
from archgym.reading.files import meant_file, opened

__all__ = [
    "DEFAULT_INTERVAL_NS",
    "MAX_REQUESTS",
    "open_lines",
    "read_text",
    "refuse_arguments",
    "shown",
    "write_text",
]

DEFAULT_INTERVAL_NS = 1.0
"""Spacing of the requests of a format without times, ns."""

MAX_REQUESTS: Final = 1 << 26
"""Requests of a file up to which it is read, to be cut (the simulator takes 16.7 million)."""

_LINE_BYTES = 64
_LINE_LIMIT: Final = 4097
_NUMBER: Final = r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_CLOCK_HEADER = re.compile(
    rf"#.*?\bcl(?:k|ock)_?mhz\b\W*{_NUMBER}|#\W*cl(?:k|ock)\W*{_NUMBER}\s*MHz\b", re.IGNORECASE
)


def write_text(trace: Trace, path: Path, kind: TextFormat, clock_mhz: float | None) -> Path:
    """Write a trace in a text format.

    Args:
        trace: what to write.
        path: where; gzipped if it ends in ``.gz``.
        kind: the format.
        clock_mhz: the clock that counts the times, MHz; None for the format's default.

    Raises:
        InvalidValueError: for a clock that the format does not use or allow.
    """
    clock = _clock(kind, clock_mhz, path, kind.default_clock_mhz)
    text = kind.header.format(clock=clock, name=trace.name)
    times = ps_to_cycles(trace.arrival_ps, clock) if clock else trace.arrival_ps
    columns = zip(times.tolist(), trace.is_write.tolist(), trace.address.tolist(), strict=True)
    data = (text + "".join([kind.line(*row) for row in columns])).encode("ascii")
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    path.write_bytes(data)
    return path


def read_text(
    path: Path, kind: TextFormat, clock_mhz: float | None, interval_ns: float | None, name: str
) -> Trace:
    """Read a trace in a text format; the arguments are those of ``trace_files.read_trace``.

    Raises:
        TraceError: if the file cannot be read; names the file, the line and what is expected.
        InvalidValueError: for a clock or an interval that the format does not use or allow.
    """
    if kind.timed:
        refuse_arguments(path, kind.name, interval_ns=interval_ns)
    times, lengths, writes, addresses, header_clock = _parse(path, kind)
    if not addresses:
        raise TraceError(f"{path}: the trace is empty: it holds no request")
    clock = _clock(kind, clock_mhz, path, header_clock or kind.default_clock_mhz)
    if not kind.timed:
        arrival = _evenly(len(addresses), interval_ns)
    else:
        arrival = _column(path, kind, times, "time")
        arrival = _in_order(path, kind, arrival)
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
    with open_lines(path) as lines:
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
                    f"{path}, line {number}: {shown(line)} is not a {kind.name} request; "
                    f"expected {kind.example}{kind.hint(text)}"
                )
            if not rows and (clock := _CLOCK_HEADER.match(text)):
                header_clock = float(clock[1] or clock[2])
    times, lengths, writes, addresses = map(list, zip(*rows, strict=True)) if rows else ([],) * 4
    return times, lengths, writes, addresses, header_clock


@contextmanager
def open_lines(path: Path) -> Iterator[Iterator[str]]:
    """The lines of a text file, gzipped or not.

    Raises:
        TraceError: if the file cannot be read.
    """
    if not path.exists():
        raise TraceError(f"{path}: there is no such trace file{meant_file(path)}")
    try:
        with opened(path) as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            data: Any = gzip.GzipFile(fileobj=raw) if packed else raw
            with io.TextIOWrapper(data, encoding="utf-8-sig", errors="backslashreplace") as text:
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
            f"{path}, line {number}: {shown(line)}: the {what} does not fit in 63 bits"
        ) from None


def _in_order(path: Path, kind: TextFormat, times: NDArray[np.int64]) -> NDArray[np.int64]:
    """The times, each at least that of the request before, shape (n,).

    A format that is replayed line by line allows times that decrease: its simulator sends such a
    request as soon as the one before it is sent.
    """
    back = np.flatnonzero(np.diff(times) < 0)
    if not back.size:
        return times
    number, line = _line_of(path, kind, int(back[0]) + 1)
    before, _ = _line_of(path, kind, int(back[0]))
    first = f"{path}, line {number}: {shown(line)} arrives before line {before}"
    if not kind.replayed:
        raise TraceError(f"{first}: the times must not decrease")
    risen = np.maximum.accumulate(times)
    late = int((times < risen).sum())
    warnings.warn(
        f"{first}. Of {len(times):,} requests, {late:,} have a time before that of an earlier one; "
        "they arrive with it, as a replay of the file would send them",
        stacklevel=2,
    )
    return risen


def _line_of(path: Path, kind: TextFormat, request: int) -> tuple[int, str]:
    """Number and text of the line that holds a request (counted from 0)."""
    seen = -1
    with open_lines(path) as lines:
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
        refuse_arguments(path, kind.name, clock_mhz=given)
        return None
    clock = default if given is None else given
    if clock is None or not 0.001 <= clock <= 1e6:
        raise InvalidValueError(f"{path}: clock_mhz={clock!r} must be from 0.001 to 1e6 MHz")
    return clock


def refuse_arguments(path: Path, format: str, **arguments: float | None) -> None:
    """Refuse arguments that have no meaning for a format.

    Raises:
        InvalidValueError: for the first argument that is given.
    """
    for name, value in arguments.items():
        if value is not None:
            raise InvalidValueError(
                f"{path}: {name}={value!r} has no meaning for the format {format!r}"
            )


def shown(line: str) -> str:
    """A line as a message shows it, shortened."""
    text = line.strip()
    return repr(text if len(text) <= 80 else text[:77] + "...")
