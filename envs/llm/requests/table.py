"""Requests from a CSV file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.llm.data.fields import LARGEST
from archgym.envs.llm.requests.drawn import Drawn
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.problem.reference import TableRow, read_table
from archgym.reading.files import meant_file

__all__ = ["MAX_REQUESTS", "read_requests"]

MAX_REQUESTS: Final = 200_000
"""Requests of a file."""
MAX_TOKENS: Final = 1_000_000
"""Tokens of a prompt, or of what is generated."""
_MAX_PREFIX_BLOCKS: Final = 4096
_NAMES: Final = {
    "arrival_s": ("arrival_s", "TIMESTAMP"),
    "prompt_tokens": ("prompt_tokens", "ContextTokens"),
    "output_tokens": ("output_tokens", "GeneratedTokens"),
}
"""Columns that must be there, and what the Azure traces call them."""
_PREFIXES: Final = "prefix_hashes"


def read_requests(path: Path, only: Mapping[str, str] | None = None) -> Drawn:
    """The requests of a CSV file, gzipped or not, or of a Parquet file.

    Columns are ``arrival_s`` (seconds; only differences count), ``prompt_tokens``,
    ``output_tokens``, and perhaps ``prefix_hashes``: for each full block at the start of the prompt
    a name, separated by spaces. Two prompts share the blocks up to their first different name.
    The columns of the Azure traces are read too. Other columns are ignored.

    Args:
        path: the file.
        only: texts by column; lines with other texts there are left out.

    Raises:
        UnknownNameError: if ``only`` names a column that is not there.
        InvalidValueError: if the file cannot be read or is no such table; names line and column.
    """
    if not path.is_file():
        raise InvalidValueError(f"requests: there is no file {str(path)!r}{meant_file(path)}")
    columns, rows = read_table(path)
    found = {}
    for meaning, names in _NAMES.items():
        here = [name for name in names if name in columns]
        if not here:
            raise InvalidValueError(
                f"{path}: there is no column {' or '.join(names)}; it has {', '.join(columns)}"
            )
        found[meaning] = here[0]
    for name, text in (only or {}).items():
        if name not in columns:
            raise UnknownNameError("column", name, columns, f"requests: only: {path}")
        rows = [row for row in rows if row.text(name) == text]
        if not rows:
            raise InvalidValueError(f"requests: no line of {path} has {text!r} as its {name}")
    if len(rows) > MAX_REQUESTS:
        raise InvalidValueError(f"{path}: {len(rows):,} requests; at most {MAX_REQUESTS:,}")
    arrivals = np.array([_seconds(row, found["arrival_s"]) for row in rows])
    backwards = np.flatnonzero(np.diff(arrivals) < 0)
    if len(backwards):
        row = rows[int(backwards[0]) + 1]
        raise row.error(found["arrival_s"], "Requests must be in the order of their arrival.")
    prefixes: list[NDArray[np.int64]] = []
    if _PREFIXES in columns:
        known: dict[str, int] = {}
        prefixes = [_hashes(row, known) for row in rows]
    return Drawn(
        arrivals - arrivals[0],
        np.array([_tokens(row, found["prompt_tokens"]) for row in rows]),
        np.array([_tokens(row, found["output_tokens"]) for row in rows]),
        prefixes,
    )


def _seconds(row: TableRow, column: str) -> float:
    if column != "TIMESTAMP":
        value = row.number(column)
        if value is None or value > LARGEST:
            raise row.error(column, f"It must be a number of seconds, at most {LARGEST:g}.")
        return value
    text = row.text(column)
    whole, _, fraction = text.partition(".")
    try:
        start = datetime.fromisoformat(whole).replace(tzinfo=UTC).timestamp()
        return start + float(f"0.{fraction or 0}")
    except ValueError:
        raise row.error(
            column, "It must be a date and time, such as 2023-11-16 18:15:46.68."
        ) from None


def _tokens(row: TableRow, column: str) -> int:
    value = row.whole(column, "-1") if row.text(column) else 0
    if not 1 <= value <= MAX_TOKENS:
        raise row.error(column, f"It must be a whole number of tokens from 1 to {MAX_TOKENS:,}.")
    return value


def _hashes(row: TableRow, known: dict[str, int]) -> NDArray[np.int64]:
    names = row.text(_PREFIXES).split()
    if len(names) > _MAX_PREFIX_BLOCKS:
        raise row.error(_PREFIXES, f"At most {_MAX_PREFIX_BLOCKS:,} blocks can have a name.")
    return np.array([known.setdefault(name, len(known)) for name in names], np.int64)
