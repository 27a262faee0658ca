"""What commands write: lines, tables, JSON, errors.

Names and texts in data of others may hold control characters, with which a terminal would be
steered, or texts shown that are not there. All that is written goes through :func:`printable`.
"""

from __future__ import annotations

import functools
import json
import math
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

from archgym.reading.texts import text_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = [
    "console",
    "echo",
    "fail",
    "line",
    "paragraph",
    "print_json",
    "print_table",
    "printable",
    "table",
]

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
"""Characters that steer a terminal, change the direction of a text, or are no characters at all."""


def printable(text: str) -> str:
    r"""A text with escapes in place of characters that are not shown; lines and tabs stay.

    >>> printable("ga\x1b[2J")
    'ga\\x1b[2J'
    """
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def console(*, stderr: bool = False) -> Console:
    """The console on stdout, or stderr."""
    return _console_class()(highlight=False, stderr=stderr)


@functools.cache
def _console_class() -> type[Console]:
    from rich.console import Console, ConsoleOptions, RenderableType  # slow to import
    from rich.segment import Segment

    class PrintableConsole(Console):
        """Shows texts as :func:`printable` has them; what steers the terminal is its own."""

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                if segment.control or not _UNSEEN.search(segment.text):
                    yield segment
                else:
                    yield Segment(printable(segment.text), segment.style)

    return PrintableConsole


def echo(text: str = "", *, err: bool = False) -> None:
    """Writes a text to stdout or stderr as it is, but for :func:`printable`."""
    typer.echo(printable(text), err=err)


def line(*parts: str, style: str = "") -> None:
    r"""Writes a line to stdout, not broken to the width of the terminal; markup is not read.

    Line breaks are shown as ``\n``: a name in data of others cannot add lines.

    Args:
        *parts: joined to the line.
        style: as rich names it.
    """
    text = "".join(parts).replace("\n", "\\n")
    console().print(text, style=style or None, soft_wrap=True, markup=False)


def paragraph(text: str = "", style: str = "") -> None:
    """Writes a text to stdout, broken to the width of the terminal; markup is not read.

    Args:
        text: the text.
        style: as rich names it.
    """
    console().print(text, style=style or None, markup=False, emoji=False)


def table(*columns: str, title: str = "") -> Table:
    """An empty table without frames; a column whose name starts with ``>`` has numbers.

    Numbers are aligned on the right. In a narrow terminal neither they nor the first column are
    broken into lines, unless there is nothing else to break: then the first column is.
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
    texts = sum(not name.startswith(">") for name in columns)
    for position, name in enumerate(columns):
        made.add_column(
            name.removeprefix(">"),
            justify="right" if name.startswith(">") else "left",
            overflow="fold",
            no_wrap=name.startswith(">") or (position == 0 and texts > 1),
            min_width=max(map(len, name.removeprefix(">").split()), default=0),
        )
    return made


def _fitting(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Sequence[str]:
    """The columns, those of numbers with headings in lines of a word where all are too wide."""
    cells = [columns, *rows]
    widths = [max(len(str(row[i])) for row in cells) + 1 for i in range(len(columns))]
    if sum(widths) < console().width:
        return columns
    return [name.replace(" ", "\n") if name.startswith(">") else name for name in columns]


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> None:
    """Writes a :func:`table` to stdout; cells are plain texts, without markup, or of rich."""
    from rich.text import Text

    rows = list(rows)
    made = table(*_fitting(columns, rows), title=title)
    for row in rows:
        made.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    console().print(made)


def print_json(data: Any) -> None:
    """Writes JSON to stdout; infinite numbers become null."""
    text = json.dumps(_finite(data), indent=1, ensure_ascii=False)
    # In JSON such characters stand inside of texts only, where an escape means the same.
    sys.stdout.write(_UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")


def fail(message: str) -> None:
    """Writes one error to stderr; of one that repeats a long value, 10,000 characters."""
    message = text_of(message)
    typer.secho("Error: ", fg=typer.colors.RED, bold=True, err=True, nl=False)
    typer.secho(printable(message), fg=typer.colors.RED, err=True)


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
