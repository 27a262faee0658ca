"""Markdown from plain values: what comes from outside is shown as it is, never as markup."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from archgym.cli.describe import paragraphs

__all__ = ["bullets", "code", "join", "literal", "note", "opening", "records", "table", "text"]


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; its cells are Markdown."""
    lines = [list(columns), ["---"] * len(columns), *map(list, rows)]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def records(columns: Mapping[str, str], items: Iterable[Mapping[str, Any]]) -> str:
    """A table with a row for each of several plain records.

    Args:
        columns: the key of a column's values, by heading; in backticks for the type of code.
        items: the records.
    """
    rows = [
        [
            (literal if key.startswith("`") else text)(str(item[key.strip("`")]))
            for key in columns.values()
        ]
        for item in items
    ]
    return table(list(columns), rows)


def bullets(items: Iterable[str]) -> str:
    """A list; its items are Markdown."""
    return "\n".join(f"- {item}" for item in items)


def code(language: str, *lines: str) -> str:
    """A block of code."""
    return "\n".join([f"```{language}", *lines, "```"])


def text(plain: str) -> str:
    """A text that shows as it is."""
    return re.sub(r"([\\*_<`\[])", r"\\\1", plain)


def literal(value: Any) -> str:
    """A value in the type of code: a text as it is, others as JSON."""
    shown = value if isinstance(value, str) else json.dumps(value, default=str)
    return f"`{shown}`" if shown else ""


def note(command: str) -> str:
    """The comment that a page begins with."""
    return f"<!-- Made by `{command}`: do not edit. -->"


def opening(name: str, cls: type[Any], *example: str) -> list[str]:
    """How the page of a class that has a name begins: what it is, and an example.

    Args:
        name: under which it is made.
        cls: whose docstring describes it.
        example: lines of Python after ``import archgym``.
    """
    return [
        f"# {text(name)}",
        note(f"archgym docs {name}"),
        text(paragraphs(cls.__doc__)),
        code("python", "import archgym", "", *example),
    ]


def join(parts: Iterable[str]) -> str:
    """A page from its paragraphs."""
    return "\n\n".join(part for part in parts if part) + "\n"


def _cell(markdown: str) -> str:
    return " ".join(markdown.replace("|", "\\|").split())
