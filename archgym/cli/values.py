"""Values on the command line: choices, and what is said of a value that is not allowed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar

import typer
from typer.core import TyperGroup

__all__ = ["Commands", "one_of"]

Choice = TypeVar("Choice", bound=StrEnum)


def one_of(kind: type[Choice], name: str) -> Callable[[str], Choice]:
    """Reads a choice, for ``parser`` of an argument or option.

    Args:
        kind: what can be chosen.
        name: what to call it in messages.

    Raises:
        UnknownNameError: by what is returned, for a value that is none of them.
    """

    def read(text: str) -> Choice:
        from archgym.errors import UnknownNameError

        if text not in list(kind):
            raise UnknownNameError(name, text, kind)
        return kind(text)

    return read


class Commands(TyperGroup):
    """Commands whose messages name the value that is not allowed, which typer's do not.

    Paragraphs of their help are wrapped as wide as the terminal, not where the source wraps them.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        _unwrap(self)

    def invoke(self, ctx: Any) -> Any:
        """As typer does, with the value in the message."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            find = getattr(error.__cause__, "errors", None)  # by pydantic, in later versions
            if find is not None:
                first = find()[0]
                text = str(first["msg"]).removeprefix("Value error, ")
                error.message = text.replace("Input", repr(first["input"]), 1)
            raise


def _unwrap(command: Any) -> None:
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    command.help = "\n\n".join(" ".join(one.split("\n")) for one in paragraphs)
    for inner in getattr(command, "commands", {}).values():
        _unwrap(inner)
