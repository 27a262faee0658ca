"""What commands write: lines, tables, JSON, errors."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["console", "fail", "line", "paragraph", "print_json", "print_table", "table"]


def console() -> Console:
    """The console on stdout."""
    from rich.console import Console

    return Console(highlight=False)


def line(*parts: str, style: str = "") -> None:
    """Writes a line to stdout, not broken to the width of the terminal; markup is not read.

    Args:
        *parts: joined to the line.
        style: as rich names it.
    """
    console().print("".join(parts), style=style or None, soft_wrap=True, markup=False)


def paragraph(text: str = "", style: str = "") -> None:
    """Writes a text to stdout, broken to the width of the terminal; markup is not read.

    Args:
        text: the text.
        style: as rich names it.
    """
    console().print(text, style=style or None, markup=False, emoji=False)


def table(*columns: str, title: str = "") -> Table:
    """An empty table without frames; a column whose name starts with ``>`` has numbers.

    Numbers are aligned on the right and not broken into lines.
    """
    from rich import box
    from rich.table import Table

    made = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for position, name in enumerate(columns):
        made.add_column(
            name.removeprefix(">"),
            justify="right" if name.startswith(">") else "left",
            overflow="fold",
            no_wrap=position == 0 or name.startswith(">"),
        )
    return made


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> None:
    """Writes a :func:`table` to stdout; cells are plain texts, without markup, or of rich."""
    from rich.text import Text

    made = table(*columns, title=title)
    for row in rows:
        made.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    console().print(made)


def print_json(data: Any) -> None:
    """Writes JSON to stdout; infinite numbers become null."""
    json.dump(_finite(data), sys.stdout, indent=1, ensure_ascii=False)
    sys.stdout.write("\n")


def fail(message: str) -> None:
    """Writes one error to stderr."""
    typer.secho("Error: ", fg=typer.colors.RED, bold=True, err=True, nl=False)
    typer.secho(message, fg=typer.colors.RED, err=True)


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
