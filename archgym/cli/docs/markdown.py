"""Pages in Markdown: what comes from outside is shown as it is, never as markup."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["literal", "markdown_cell", "page_of", "text"]

_TEMPLATES = Path(__file__).parent.parent / "templates"


def page_of(
    template: str, filters: dict[str, Callable[..., str]] | None = None, **values: Any
) -> str:
    """A page from a template; paragraphs that are empty leave no gap.

    Args:
        template: name of its file.
        filters: that the template uses beside those for every page: ``text``, ``literal``,
            ``cell`` and ``code_cell`` (the same two in a table), ``markdown_cell``.
        **values: what the template shows.
    """
    import jinja2

    environment = jinja2.Environment(
        autoescape=False,  # noqa: S701  (Markdown: every value goes through a filter of ours)
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FileSystemLoader(_TEMPLATES),
    )
    environment.filters |= {
        "text": text,
        "literal": literal,
        "cell": lambda plain: markdown_cell(text(str(plain))),
        "code_cell": lambda plain: markdown_cell(literal(str(plain))),
        "markdown_cell": markdown_cell,
        **(filters or {}),
    }
    page = environment.get_template(template).render(values)
    return re.sub(r"\n{3,}", "\n\n", page).strip() + "\n"


def text(plain: str) -> str:
    """A text that shows as it is."""
    return re.sub(r"([\\*_<`\[])", r"\\\1", plain)


def literal(value: Any) -> str:
    """A value in the type of code: a text as it is, others as JSON."""
    shown = value if isinstance(value, str) else json.dumps(value, default=str)
    return f"`{shown}`" if shown else ""


def markdown_cell(markdown: str) -> str:
    """A cell of a table, from Markdown."""
    return " ".join(markdown.replace("|", "\\|").split())
