"""The page of an agent."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from archgym.cli.describe import agent_json
from archgym.cli.docs.markdown import page_of, text
from archgym.errors import AgentUnsuitableError
from archgym.registry import environment_class

if TYPE_CHECKING:
    from archgym.agent import Agent

__all__ = ["agent_page"]

_KINDS: Mapping[str, tuple[dict[str, Any], int]] = {
    "finite space": ({"space": "finite"}, 1),
    "space with a real parameter": ({"space": "default"}, 1),
    "several goals at once": ({"space": "finite"}, 2),
}
"""Kinds of problems: arguments of the conformance environment, and how many goals."""


def agent_page(name: str, cls: type[Agent]) -> str:
    """The page of an agent, in Markdown.

    Sections of the class's docstring that it shows: Members (``name: what it does``), Measured,
    Limits and References.

    Args:
        name: under which it is made.
        cls: its class.

    Raises:
        MissingDependencyError: if a package that the agent needs is not there.
    """
    return page_of(
        "agent_page.md",
        **agent_json(name, cls),
        name=name,
        extra=re.search(r"archgym\[([\w,-]+)\]", inspect.getdoc(cls) or ""),
        suits=[(kind, _suits(cls, *problem)) for kind, problem in _KINDS.items()],
        members=[one.partition(": ")[::2] for one in _section(cls, "Members")],
        measured=_section(cls, "Measured"),
        limits=_section(cls, "Limits"),
        sources=_section(cls, "References"),
    )


def _suits(cls: type[Agent], arguments: Mapping[str, Any], goals: int) -> str:
    """Whether it can be made for a problem, or why not."""
    space = environment_class("Conformance-v0").spaces()[arguments["space"]]
    try:
        cls(space, ("minimize",) * goals)
    except AgentUnsuitableError as error:
        return f"no ({text(str(error))})"
    return "yes"


def _section(cls: type[Any], title: str) -> list[str]:
    """The items of a section of a docstring, one to a line that is not indented further."""
    found = re.search(
        rf"^{title}:\n((?:(?: +.*)?\n?)*)", inspect.cleandoc(cls.__doc__ or ""), re.MULTILINE
    )
    if found is None:
        return []
    lines = inspect.cleandoc(found[1]).splitlines()
    items: list[str] = []
    for line in filter(str.strip, lines):
        if line.startswith(" ") and items:
            items[-1] += f" {line.strip()}"
        else:
            items.append(line)
    return items
