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
``parquet``     a row of a table                      picoseconds or nanoseconds
==============  ====================================  ==========================================

Text may be gzipped; ``#`` starts a comment. A request of an ``stl`` file may carry its length,
``12: (128) read 0x1f40``, in bytes; a longer one than a line becomes several of 64 bytes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

from archgym.envs.dram.traces import npz_format, parquet_format
from archgym.envs.dram.traces.line_formats import TEXT_FORMATS
from archgym.envs.dram.traces.text_files import (
    DEFAULT_INTERVAL_NS,
    MAX_REQUESTS,
    open_lines,
    read_text,
    refuse_arguments,
    shown,
    write_text,
)
from archgym.envs.dram.traces.trace import Trace
from archgym.errors import TraceError, UnknownNameError

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

FORMATS: tuple[str, ...] = (*TEXT_FORMATS, "npz", "parquet")
"""Every format name."""

TRACE_SUFFIXES: tuple[str, ...] = (".stl", ".trace", ".npz", ".parquet", ".txt", ".gz")
"""File endings by which a word is taken for a path."""

_PathLike: TypeAlias = str | os.PathLike[str]


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
    if chosen not in TEXT_FORMATS:
        refuse_arguments(path, chosen, clock_mhz=clock_mhz, interval_ns=interval_ns)
        if chosen == "parquet":
            return parquet_format.read_parquet(path, name, MAX_REQUESTS)
        return npz_format.read_npz(path, name)
    return read_text(path, TEXT_FORMATS[chosen], clock_mhz, interval_ns, name)


def write_trace(
    trace: Trace,
    path: _PathLike,
    format: str | None = None,
    *,
    clock_mhz: float | None = None,
) -> Path:
    """Write a trace so that the simulator of that format reads it; gzipped if it ends in ``.gz``.

    Clocked formats round each time down to a clock edge, ``ramulator`` and ``ramulator1`` have
    no times at all; ``text``, ``npz`` and ``parquet`` keep everything.

    Args:
        trace: what to write.
        path: where; an existing file is replaced.
        format: one of :data:`FORMATS`; from the ending (``.stl``, ``.npz``, ``.parquet``) if None.
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
    if chosen not in TEXT_FORMATS:
        refuse_arguments(path, chosen, clock_mhz=clock_mhz)
        if chosen == "parquet":
            return parquet_format.write_parquet(trace, path)
        return npz_format.write_npz(trace, path)
    return write_text(trace, path, TEXT_FORMATS[chosen], clock_mhz)


def guess_format(path: _PathLike) -> str:
    """The format of a file, from its ending or else its first request.

    Raises:
        TraceError: if the file is missing or empty, or its first line is of no known format.
    """
    path = Path(path)
    by_ending = _format_of_ending(path)
    if by_ending:
        return by_ending
    with open_lines(path) as lines:
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
                f"{path}, line {number}: {shown(line)} is of no known trace format. "
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
    """``stl``, ``npz`` or ``parquet`` by the ending; None where the ending says nothing."""
    suffix = (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower()
    if suffix == ".rstl":
        raise TraceError(
            f"{path}: '.rstl' counts from the completion of the request before, so it has no "
            "arrival times; use an absolute '.stl' trace"
        )
    return {".stl": "stl", ".npz": "npz", ".parquet": "parquet"}.get(suffix)
