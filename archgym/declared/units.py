"""Conversion between units of one kind: times, frequencies, energies, sizes and the like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from archgym.errors import InvalidValueError, UnknownNameError

_PREFIXES: Final = {
    "f": 1e-15, "p": 1e-12, "n": 1e-9, "u": 1e-6, "µ": 1e-6, "m": 1e-3, "": 1.0,
    "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
}  # fmt: skip
_BASES: Final = {
    "time": ("s", "f p n u µ m"),
    "frequency": ("Hz", "k M G"),
    "energy": ("J", "f p n u µ m k"),
    "power": ("W", "n u µ m k"),
    "voltage": ("V", "u µ m k"),
    "current": ("A", "p n u µ m"),
    "length": ("m", "n u µ m"),
    "size": ("B", "k M G T"),
    "bandwidth": ("B/s", "k M G T"),
    "bits": ("bit", "k M G"),
    "capacitance": ("F", "f p n u µ"),
}


def _table() -> Mapping[str, tuple[str, float]]:
    found = {
        f"{prefix}{base}": (kind, _PREFIXES[prefix])
        for kind, (base, prefixes) in _BASES.items()
        for prefix in ["", *prefixes.split()]
    }
    for power in range(1, 5):
        prefix = ("Ki", "Mi", "Gi", "Ti")[power - 1]
        found[f"{prefix}B"] = ("size", 1024.0**power)
        found[f"{prefix}B/s"] = ("bandwidth", 1024.0**power)
    for prefix in ("n", "u", "µ", "m"):
        for square in ("2", "²"):
            found[f"{prefix}m{square}"] = ("area", _PREFIXES[prefix] ** 2)
    return found | {
        "min": ("time", 60.0),
        "h": ("time", 3600.0),
        "": ("ratio", 1.0),
        "%": ("ratio", 0.01),
        "dB": ("decibel", 1.0),
    }


_UNITS: Final = _table()
_SPELLED: Final = {
    **{unit.lower(): unit for unit in ("ms", "us", "ns", "s", "kB", "MB", "GB")},
    **{f"{prefix}{word}": f"{short}s" for prefix, short in
       (("", ""), ("m", "m"), ("u", "u"), ("n", "n"), ("milli", "m"), ("micro", "u"), ("nano", "n"))
       for word in ("sec", "secs", "second", "seconds")},
    **{f"{prefix}{word}": f"{short}B" for prefix, short in
       (("", ""), ("k", "k"), ("kilo", "k"), ("m", "M"), ("mega", "M"), ("g", "G"), ("giga", "G"))
       for word in ("byte", "bytes")},
    "kib": "KiB", "mib": "MiB", "gib": "GiB", "percent": "%", "minutes": "min", "hours": "h",
}  # fmt: skip
"""Other spellings of units, in small letters."""


def known_unit(unit: str) -> bool:
    """Whether a unit converts to others."""
    return unit in _UNITS


def unit_hint(unit: str) -> str:
    """A sentence on a unit that is nearly one that converts; empty if it is none such.

    >>> unit_hint("msec"), unit_hint("cycles")
    (". Is the unit 'ms' meant?", '')
    """
    near = _SPELLED.get(unit.lower())
    return f". Is the unit {near!r} meant?" if near and near != unit else ""


def factor(read: str, wanted: str) -> float:
    """By what a number in one unit is multiplied to be in another.

    >>> factor("us", "ns"), factor("%", "")
    (1000.0, 0.01)

    Args:
        read: unit of the number.
        wanted: unit of the result.

    Raises:
        UnknownNameError: if one of two different units is not known.
        InvalidValueError: if they are of different kinds, as a time and a frequency.
    """
    if read == wanted:
        return 1.0
    for unit in (read, wanted):
        if unit not in _UNITS:
            if hint := unit_hint(unit):
                raise InvalidValueError(f"unknown unit to convert {unit!r}{hint}")
            raise UnknownNameError("unit to convert", unit, [name for name in _UNITS if name])
    (kind, one), (other_kind, other) = _UNITS[read], _UNITS[wanted]
    if kind != other_kind:
        raise InvalidValueError(
            f"{read or 'no unit'!r} is a {kind} and {wanted or 'no unit'!r} a {other_kind}: they "
            "do not convert; a formula can compute one from the other"
        )
    if one >= other:
        return round(one / other, 12) if one / other < 1e12 else one / other
    return 1 / round(other / one, 9) if other / one < 1e12 else one / other
