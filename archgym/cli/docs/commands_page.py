"""The reference of the command line, from the commands' own signatures."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from archgym.cli.docs.markdown import page_of

__all__ = ["commands_page"]

_KINDS = {str: "TEXT", int: "N", float: "X", Path: "PATH"}


def commands_page(command_line: Any) -> str:
    """Every command with its arguments and options, in Markdown.

    Args:
        command_line: the group of all commands, as typer makes it from an application.
    """
    found = sorted(_commands("archgym", command_line), key=lambda one: one[0])
    return page_of("commands_page.md", commands=[_command(*one) for one in found])


def _commands(path: str, command: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions of a command, or of all commands of a group, with their names."""
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from _commands(f"{path} {name}", inner)
    else:
        yield path, inspect.unwrap(command.callback)


def _command(path: str, callback: Callable[..., Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(callback, include_extras=True)
    arguments: list[tuple[str, Any, Any, Any]] = []
    options: list[tuple[str, Any, Any, Any]] = []
    for name, parameter in inspect.signature(callback).parameters.items():
        kind, info = (*typing.get_args(hints[name]), None, None)[:2]
        if info is None or getattr(info, "hidden", False):  # the context, say
            continue
        row = (name, kind, info, parameter.default)
        (arguments if type(info).__name__ == "ArgumentInfo" else options).append(row)
    doc = inspect.getdoc(callback) or ""
    usage = [path, *(_metavar(*row) for row in arguments), *(["[OPTIONS]"] * bool(options))]
    shown = [(_metavar(*row), "", row) for row in arguments]
    shown += [(_option(*row), _default(row[3]), row) for row in options]
    return {
        "path": path,
        "description": "\n\n".join(" ".join(part.split()) for part in doc.split("\n\n")),
        "usage": " ".join(usage),
        "rows": [(names, default, row[2].help or "") for names, default, row in shown],
    }


def _metavar(name: str, kind: Any, info: Any, default: Any) -> str:
    shown = info.metavar or name.upper()
    many = "..." if "list[" in str(kind) and "..." not in shown else ""
    needed = default is inspect.Parameter.empty or shown.startswith("[")
    return f"{shown}{many}" if needed else f"[{shown}{many}]"


def _option(name: str, kind: Any, info: Any, default: Any) -> str:
    # Within Annotated, the first name stands where a default would.
    given = [one for one in (info.default, *(info.param_decls or ())) if isinstance(one, str)]
    plain, dashed = _plain(kind), name.replace("_", "-")
    names = " / ".join(given or [f"--{dashed}", *([f"--no-{dashed}"] * (plain is bool))])
    if plain is bool:
        return names
    if isinstance(plain, type) and issubclass(plain, Enum):
        return f"{names} {'|'.join(str(one.value) for one in plain)}"
    return f"{names} {info.metavar or _KINDS.get(plain, 'VALUE')}"


def _plain(kind: Any) -> Any:
    """The type of one value: of ``list[int] | None`` it is ``int``."""
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        kind = next(one for one in typing.get_args(kind) if one is not type(None))
    return _plain(typing.get_args(kind)[0]) if typing.get_origin(kind) is list else kind


def _default(default: Any) -> str:
    if default is False or default in (None, inspect.Parameter.empty, ""):
        return ""
    return f"`{default.value if isinstance(default, Enum) else default}`"
