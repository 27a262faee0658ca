"""Values on the command line: choices, and what is said of a value that is not allowed."""

from __future__ import annotations

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
    """Commands whose messages name the value that is not allowed, which typer's do not."""

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
