"""Reference figures: what other simulators, or hardware, give for known designs.

An environment reads them (:meth:`archgym.Environment.references`), ``archgym validate``
compares. A table is a CSV file, gzipped or not, with a header and a row for each design and
workload, or a Parquet file with the same columns. The helpers here take its cells apart and name
the place of whatever is wrong.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from archgym.errors import InvalidValueError
from archgym.reading.files import meant_file, read_text
from archgym.reading.suggestions import did_you_mean

_LIMIT_BYTES: Final = 1 << 28
"""256 MiB of a table, unpacked."""
_LIMIT_ROWS: Final = 1_000_000
_LIMIT_CELLS: Final = 30_000_000
"""As of Parquet files (:mod:`archgym.reading.parquet`): a short file can unpack to more."""
Use = Literal["parameter", "setting", "metric", "case", "check", "ignored"]


@dataclass(frozen=True)
class ReferenceRow:
    """One design in one case.

    Attributes:
        case: label of what it ran: workload and hardware.
        design: a design of the environment's space.
        metrics: the figures that the reference gives, by the environment's metric names and in
            its units.
        setting: index into :attr:`Reference.settings`.
        line: line of the table, 0 if it comes from none.
    """

    case: str
    design: Mapping[str, Any]
    metrics: Mapping[str, float]
    setting: int = 0
    line: int = 0


class ColumnUse(NamedTuple):
    """How one column of a table is used.

    Attributes:
        column: its name.
        use: ``parameter`` or ``metric`` of the environment, constructor ``setting``, label of
            the ``case``, a ``check`` that the row can be compared, or ``ignored``.
        name: the parameter, metric or setting.
        note: why it is ignored, or what is checked.
    """

    column: str
    use: Use
    name: str = ""
    note: str = ""


class Skipped(NamedTuple):
    """A row that is not compared: line of the table (0 for none) and reason."""

    line: int
    reason: str


@dataclass(frozen=True)
class Reference:
    """Figures of one simulator.

    Attributes:
        title: the simulator and its version.
        source: the table, or ``live``.
        settings: constructor arguments of the environments that the rows need.
        rows: the designs and their figures.
        columns: what became of the table's columns.
        skipped: rows that are not compared.
        provenance: where the figures come from, in words by topic.
    """

    title: str
    source: str
    settings: Sequence[Mapping[str, Any]]
    rows: Sequence[ReferenceRow]
    columns: Sequence[ColumnUse] = ()
    skipped: Sequence[Skipped] = ()
    provenance: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TableRow:
    """One row of a table; errors about its cells name file, line and column."""

    path: Path
    line: int
    cells: Mapping[str, str]

    def text(self, column: str, default: str = "") -> str:
        """The cell, or the default if it is empty or there is no such column."""
        return self.cells.get(column) or default

    def choice(self, column: str, allowed: Mapping[str, Any], default: str = "") -> Any:
        """The value in ``allowed`` under the text of the cell.

        Raises:
            InvalidValueError: if the cell is none of its keys.
        """
        text = self.text(column, default)
        if text not in allowed:
            raise self.error(column, did_you_mean(text, allowed))
        return allowed[text]

    def whole(self, column: str, default: str = "") -> int:
        """The cell as a whole number of at least 0 (``8`` or ``8.0``).

        Raises:
            InvalidValueError: if it is none.
        """
        number = self._float(self.text(column, default))
        if not (math.isfinite(number) and number == int(number) and number >= 0):
            raise self.error(column, "It must be a whole number of at least 0.")
        return int(number)

    def number(self, column: str) -> float | None:
        """The cell as a number of at least 0, ``None`` if it is empty.

        Raises:
            InvalidValueError: if it is neither.
        """
        if not self.text(column):
            return None
        number = self._float(self.text(column))
        if not (math.isfinite(number) and number >= 0):
            raise self.error(column, "It must be a number of at least 0, or empty.")
        return number

    def error(self, column: str, expected: str) -> InvalidValueError:
        """An error about a cell."""
        return InvalidValueError(
            f"{self.path}, line {self.line}, column {column!r}: the value is "
            f"{self.cells.get(column, '')!r}. {expected}"
        )

    @staticmethod
    def _float(text: str) -> float:
        try:
            return float(text)
        except ValueError:
            return math.nan


def shipped_tables(
    folder: Path, read: Callable[[Path], Iterable[Reference]], needs: str = ""
) -> list[Reference]:
    """The references of the tables that an environment ships.

    Args:
        folder: of the tables; its ``provenance.json`` has an object for each file by its name,
            with where the figures come from.
        read: reads a table.
        needs: a key that the objects of tables have, where there are other files too.
    """
    provenance = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    return [
        replace(reference, source=f"shipped {file}", provenance=facts)
        for file, facts in provenance.items()
        if not needs or needs in facts
        for reference in read(folder / file)
    ]


def read_table(path: Path) -> tuple[list[str], list[TableRow]]:
    """The columns and the rows of a CSV file, gzipped or not, or of a Parquet file.

    The rows of a Parquet file have the numbers that their lines would have in a CSV file, from 2.
    Its cells that are null or NaN are empty.

    Raises:
        InvalidValueError: if the file cannot be read or is no such table; names file and line.
    """
    if path.suffix.lower() == ".parquet":
        return _read_parquet(path)
    try:
        text = read_text(path, _LIMIT_BYTES, unpack=True)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        hint = meant_file(path) if isinstance(error, FileNotFoundError) else ""
        raise InvalidValueError(f"{path}: cannot read the table: {reason}{hint}") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[TableRow] = []
    columns: list[str] = []
    try:
        for cells in reader:
            cells = [cell.strip() for cell in cells]
            if not any(cells):
                continue
            if not columns:
                columns = cells
                continue
            if len(cells) != len(columns):
                raise InvalidValueError(
                    f"{path}, line {reader.line_num}: {len(cells)} values for the "
                    f"{len(columns)} columns of the header"
                )
            rows.append(TableRow(path, reader.line_num, dict(zip(columns, cells, strict=True))))
            if len(rows) > _LIMIT_ROWS or len(rows) * len(columns) > _LIMIT_CELLS:
                raise InvalidValueError(
                    f"{path}: the table is larger than the limits of {_LIMIT_ROWS:,} rows and "
                    f"{_LIMIT_CELLS:,} cells"
                )
    except csv.Error as error:
        raise InvalidValueError(f"{path}, line {reader.line_num}: {error}") from None
    twice = sorted(name for name, count in Counter(columns).items() if count > 1)
    if twice:
        raise InvalidValueError(f"{path}: the header names column {twice[0]!r} twice")
    if not rows:
        header = f" below its header, {', '.join(columns):.80}" if columns else ""
        raise InvalidValueError(f"{path}: the table has no rows{header}")
    return columns, rows


def _read_parquet(path: Path) -> tuple[list[str], list[TableRow]]:
    import pyarrow as pa

    from archgym.reading.parquet import read_rows

    try:
        found = read_rows(path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InvalidValueError(f"{path}: cannot read the table: {error}") from None
    if not found:
        raise InvalidValueError(f"{path}: the table has no rows")
    rows = [
        TableRow(path, number, {name: _cell(value) for name, value in cells.items()})
        for number, cells in enumerate(found, 2)
    ]
    return list(found[0]), rows


def _cell(value: Any) -> str:
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return "" if missing else str(value).strip()
