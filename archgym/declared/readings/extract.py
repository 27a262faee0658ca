"""Reading numbers out of what a program printed or wrote, within limits of size and time."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import regex

from archgym.declared.edits import values_at
from archgym.errors import InvalidValueError, SimulationError
from archgym.reading import xml_text
from archgym.reading.suggestions import did_you_mean

__all__ = ["Output", "compiled", "found_at", "found_in", "read_number"]

READ_LIMIT_BYTES: Final = 1 << 26
"""64 MiB: size of an output or a file in which metrics are looked for."""
PATTERN_LIMIT_S: Final = 5.0
"""Time that a regular expression may take in one output, s."""
_THOUSANDS: Final = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?")
_NUMBER: Final = re.compile(r"[-+]?(\d[\d,]*\.?\d*|\.\d+)([eE][-+]?\d+)?")
_MANY: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "first": lambda numbers: numbers[0],
    "last": lambda numbers: numbers[-1],
    "sum": math.fsum,
    "mean": statistics.fmean,
    "min": min,
    "max": max,
}


class Output:
    """A text of which metrics are read, parsed once for all of them.

    Args:
        text: the text.
        name: what messages call it, such as ``stdout of run``.
    """

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name
        self._json: Any = None
        self._xml: xml_text.Element | None = None
        self._keys: dict[str, list[str]] | None = None

    @property
    def json(self) -> Any:
        """The JSON that it is."""
        if self._json is None:
            try:
                self._json = (json.loads(self.text),)
            except (ValueError, RecursionError) as error:
                raise SimulationError(f"{self.name} is not JSON: {error}") from None
        return self._json[0]

    @property
    def xml(self) -> xml_text.Element:
        """The root of the XML that it is."""
        if self._xml is None:
            try:
                self._xml = xml_text.parse(self.text)
            except (ValueError, RecursionError) as error:
                raise SimulationError(f"{self.name} is not XML: {error}") from None
        return self._xml

    @property
    def keys(self) -> dict[str, list[str]]:
        """The values of lines such as ``KEY = VALUE``, by key."""
        if self._keys is None:
            self._keys = {}
            for line in self.text.splitlines():
                for sign in ("=", ":"):
                    key, found, value = line.partition(sign)
                    if found and key.strip():
                        self._keys.setdefault(" ".join(key.split()), []).append(value.strip())
        return self._keys

    def rows(self, separator: str) -> list[dict[str, str]]:
        """Its rows as a table with a heading."""
        lines = io.StringIO(self.text.lstrip("\n"))
        try:
            reader = csv.DictReader(lines, delimiter=separator, skipinitialspace=True)
            return [
                {str(k).strip(): v.strip() for k, v in row.items() if isinstance(v, str)}
                for row in reader
            ]
        except csv.Error as error:
            raise SimulationError(f"{self.name} is not CSV: {error}") from None


def compiled(pattern: str) -> Any:
    """A compiled regular expression, in which ``^`` and ``$`` match at lines.

    Raises:
        InvalidValueError: if it is none.
    """
    try:
        return regex.compile(pattern, regex.MULTILINE)
    except (regex.error, RecursionError, OverflowError) as error:
        raise InvalidValueError(f"{pattern!r} is no regular expression: {error}") from None


def found_at(pattern: Any, text: str, name: str) -> int | None:
    """Where a compiled pattern matches first in a text; ``None`` if nowhere.

    Raises:
        SimulationError: if that takes too long.
    """
    try:
        match = pattern.search(text, timeout=PATTERN_LIMIT_S, concurrent=True)
    except TimeoutError:
        raise _too_slow(pattern, name) from None
    return None if match is None else int(match.start())


def found_in(output: Output, kind: str, what: Any, options: Any) -> list[Any]:
    """The values that a reading finds in an output, in their order.

    Args:
        output: the output.
        kind: ``regex``, ``key``, ``json``, ``csv`` or ``xml``.
        what: the compiled pattern, the key, the path or the column.
        options: the metric's entry, whose ``where`` and ``separator`` a csv has.

    Raises:
        SimulationError: if the output is not of that kind.
    """
    if kind == "regex":
        return _matches(what, output)
    if kind == "key":
        return [_leading_number(text) for text in output.keys.get(what, ())]
    if kind == "json":
        return values_at(output.json, what)
    if kind == "csv":
        return _column(output, what, options)
    path, at, attribute = str(what).rpartition("/@")
    elements = output.xml.findall(path if at else what) if path or not at else [output.xml]
    if at:
        return [one.get(attribute) for one in elements if attribute in one.attrib]
    return [one.text or "" for one in elements]


def near_hint(output: Output, kind: str, what: Any) -> str:
    """What may have been meant by a reading that found nothing; empty if nothing is near."""
    if kind == "key" and output.keys:
        hint = did_you_mean(what, [_printable(key) for key in list(output.keys)[:1000]])
        return f". {hint}" if hint.startswith("Did") else ""
    return ""


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else "?" for one in text)[:80]


def read_number(values: Sequence[Any], take: str) -> float:
    """One number of the values that were found.

    Raises:
        ValueError: if a value that counts is no number.
    """
    chosen = values[:1] if take == "first" else values[-1:] if take == "last" else values
    return _MANY[take]([_number(value) for value in chosen])


def _matches(pattern: Any, output: Output) -> list[str]:
    found = []
    try:
        for match in pattern.finditer(output.text, timeout=PATTERN_LIMIT_S, concurrent=True):
            groups = match.groupdict()
            text = groups.get("value") or (match.group(1) if pattern.groups else match.group())
            if text is not None:
                found.append(text)
    except TimeoutError:
        raise _too_slow(pattern, output.name) from None
    return found


def _too_slow(pattern: Any, name: str) -> SimulationError:
    return SimulationError(
        f"the regular expression {pattern.pattern!r} took more than {PATTERN_LIMIT_S:g} s in "
        f"{name}: avoid repetitions inside repetitions, as in (a+)+"
    )


def _column(output: Output, column: str, options: Any) -> list[str]:
    rows = output.rows(options.separator)
    names = list(rows[0]) if rows else []
    for name in (column, *options.where):
        if rows and name not in names:
            raise SimulationError(
                f"{output.name} has no column {name!r}. {did_you_mean(name, names)}"
            )
    wanted = {name: str(value) for name, value in options.where.items()}
    chosen = [row for row in rows if all(row.get(n) == v for n, v in wanted.items())]
    return [row[column] for row in chosen if column in row]


def _leading_number(text: str) -> str:
    """The number that a text begins with, as ``12`` of ``12 cycles``; else the text."""
    found = _NUMBER.match(text)
    return found.group() if found else text


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r:.60} is not a number")
    if isinstance(value, str):
        text = value.strip().rstrip("%").rstrip()
        value = text.replace(",", "") if _THOUSANDS.fullmatch(text) else text
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise ValueError(f"{value!r:.60} is not a number") from None
    return number
