"""The text formats of memory traces: how one line looks, is read and is written.

Sources: DRAMSys 5 (``StlPlayer``), DRAMsim3 (``Transaction`` input), Ramulator 2
(``LoadStoreTrace``) and Ramulator 1 (DRAM mode). DRAMsim3 and Ramulator know no comments, so
files written for them hold none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["TEXT_FORMATS", "TextFormat", "cycles_to_ps", "ps_to_cycles", "scaled"]

Row: TypeAlias = tuple[int, int, bool, int]
"""Time (cycles or ps), length (bytes, 0 if not given), write, address."""


@dataclass(frozen=True)
class TextFormat:
    """One text format.

    Attributes:
        name: the name in ``FORMATS``.
        example: what a line looks like, for messages.
        pattern: matches one request, stripped.
        convert: the match as time, length, write, address.
        line: time, write and address as one line, with its end.
        header: comment lines written first; ``{clock}`` and ``{name}`` are filled in.
        default_clock_mhz: clock that counts the times, MHz; None if they are not cycles.
        timed: whether a request has a time.
        replayed: whether its simulator replays the lines in order, so that a request whose time
            has passed arrives at once.
    """

    name: str
    example: str
    pattern: re.Pattern[str]
    convert: Callable[[re.Match[str]], Row]
    line: Callable[[int, int, int], str]
    header: str = ""
    default_clock_mhz: float | None = None
    timed: bool = True
    replayed: bool = False

    def hint(self, text: str) -> str:
        """A closing remark on a line that does not fit, or nothing."""
        others = [k for k, f in TEXT_FORMATS.items() if f is not self and f.pattern.fullmatch(text)]
        if others:
            return f" (the line is of the format {others[0]!r})"
        if re.fullmatch(r"[RW]\s+\d+(,\d+)+", text):
            return " (channel,rank,...,column needs the address mapping undone: write addresses)"
        return ""


def cycles_to_ps(cycles: NDArray[np.int64], clock_mhz: float) -> NDArray[np.int64]:
    """The first whole picosecond of each clock cycle, shape (n,)."""
    return -scaled(-cycles, _ps_per_cycle(clock_mhz))


def ps_to_cycles(times_ps: NDArray[np.int64], clock_mhz: float) -> NDArray[np.int64]:
    """The clock cycle in which each time falls, shape (n,)."""
    return scaled(times_ps, 1 / _ps_per_cycle(clock_mhz))


def scaled(values: NDArray[np.int64], factor: Fraction) -> NDArray[np.int64]:
    """``floor(values * factor)``, exact, without overflow of the product, shape (n,)."""
    whole, rest = np.divmod(values, np.int64(factor.denominator))
    result: NDArray[np.int64] = (
        whole * factor.numerator + rest * factor.numerator // factor.denominator
    )
    return result


def _ps_per_cycle(clock_mhz: float) -> Fraction:
    """Clock period, ps, with the clock rounded to 1 kHz."""
    return Fraction(10**9, max(1, round(clock_mhz * 1000)))


def _ns_as_ps(text: str) -> int:
    """A decimal number of nanoseconds as picoseconds, rounded half up."""
    whole, _, digits = text.partition(".")
    if len(digits) <= 3:
        return int(whole or "0") * 1000 + int(digits.ljust(3, "0"))
    return int(whole or "0") * 1000 + int(digits[:3]) + (digits[3] >= "5")


def _ps_as_ns(time_ps: int) -> str:
    """Picoseconds as nanoseconds, without needless zeros."""
    whole, rest = divmod(time_ps, 1000)
    return f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)


def _stl(found: re.Match[str]) -> Row:
    time, length, verb, address = found.groups()
    return int(time), int(length or 0), verb[0] in "wW", int(address, 16)


def _dramsim3(found: re.Match[str]) -> Row:
    address, verb, time = found.groups()
    return int(time), 0, verb[0] in "wW", int(address, 16)


def _ramulator(found: re.Match[str]) -> Row:
    verb, address = found.groups()
    return 0, 0, verb == "ST", int(address, 16 if address[:2] in ("0x", "0X") else 10)


def _ramulator1(found: re.Match[str]) -> Row:
    address, verb = found.groups()
    return 0, 0, verb == "W", int(address, 16)


def _text(found: re.Match[str]) -> Row:
    time, verb, address = found.groups()
    return _ns_as_ps(time), 0, verb in "wW", int(address, 16)


_FORMATS = (
    TextFormat(
        "stl",
        "'<cycle>: read|write 0x<address>'",
        re.compile(
            r"(\d+)(?:\s*:\s*|\s+)(?:\((\d{1,9})\)\s*)?(read|write|READ|WRITE)\s+"
            r"(?:0[xX])?([0-9a-fA-F]+)(?:\s+(?:0[xX])?[0-9a-fA-F]+)?",
            re.ASCII,
        ),
        _stl,
        lambda time, write, address: f"{time}:\t{'write' if write else 'read'}\t0x{address:x}\n",
        header="# archgym trace {name}\n# clock_mhz: {clock}\n",
        default_clock_mhz=800.0,
        replayed=True,
    ),
    TextFormat(
        "dramsim3",
        "'0x<address> READ|WRITE <cycle>'",
        re.compile(r"(?:0[xX])?([0-9a-fA-F]+)\s+(READ|WRITE|read|write)\s+(\d+)", re.ASCII),
        _dramsim3,
        lambda time, write, address: f"0x{address:X} {'WRITE' if write else 'READ'} {time}\n",
        default_clock_mhz=1200.0,
        replayed=True,
    ),
    TextFormat(
        "ramulator",
        "'LD|ST 0x<address>'",
        re.compile(r"(LD|ST)\s+(0[xX][0-9a-fA-F]+|\d+)", re.ASCII),
        _ramulator,
        lambda _, write, address: f"{'ST' if write else 'LD'} 0x{address:x}\n",
        timed=False,
    ),
    TextFormat(
        "ramulator1",
        "'0x<address> R|W'",
        re.compile(r"0[xX]([0-9a-fA-F]+)\s+([RW])", re.ASCII),
        _ramulator1,
        lambda _, write, address: f"0x{address:x} {'W' if write else 'R'}\n",
        timed=False,
    ),
    TextFormat(
        "text",
        "'<time in ns> R|W 0x<address>'",
        re.compile(r"(\d+\.?\d*|\.\d+)\s+([RWrw])\s+0[xX]([0-9a-fA-F]+)", re.ASCII),
        _text,
        lambda time, write, address: f"{_ps_as_ns(time)} {'W' if write else 'R'} 0x{address:x}\n",
        header="# archgym trace {name}: arrival in ns, R or W, byte address\n",
    ),
)

TEXT_FORMATS: dict[str, TextFormat] = {entry.name: entry for entry in _FORMATS}
"""Every text format by name."""
