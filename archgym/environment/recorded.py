"""Arguments of environments as somebody recorded them: data, of which only some are taken.

A dataset, a table or a proxy may come from anybody. What it says of an environment decides which
metrics come out, and nothing else: not what is run, where something is written, or which file of
this machine is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from archgym.environment.arguments import own_arguments
from archgym.environment.environment import Environment
from archgym.errors import InvalidValueError

PROBLEM_ARGUMENTS = ("workload", "space", "fixed", "exclude", "include", "objective")
"""Arguments that every environment has, and that tables and proxies record."""
_NOT_TAKEN = ("program", "cache")
"""Options of simulators that name what is run, or where something is written."""


def recorded_settings(
    environment: type[Environment], settings: Mapping[str, Any], also: Collection[str] = ()
) -> dict[str, Any]:
    """Those of recorded arguments that are taken: the ones on which metrics depend.

    Args:
        environment: its class.
        settings: as recorded; others are passed over.
        also: names of further ones that are taken.

    Raises:
        InvalidValueError: if they name a program to run, or a place to write to.
    """
    options = settings.get("simulator_options")
    for name in _NOT_TAKEN:
        if isinstance(options, Mapping) and name in options:
            raise InvalidValueError(
                f"recorded arguments have simulator_options with {name}={options[name]!r}, which "
                "is not taken from a file: give it yourself"
            )
    taken = {*own_arguments(environment, Environment), "simulator_options", *also}
    return {name: value for name, value in settings.items() if name in taken}


def refuse_paths(arguments: Mapping[str, Any], remedy: str) -> None:
    """Refuses recorded arguments that name a file of this machine.

    Args:
        arguments: values by name.
        remedy: what the user can do, for the message.

    Raises:
        InvalidValueError: with the argument and the file.
    """
    for name, value in arguments.items():
        for text in _texts(value):
            if _names_a_file(text):
                raise InvalidValueError(
                    f"recorded argument {name} names {text!r}, a file that is not read because "
                    f"somebody recorded it: {remedy}"
                )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _texts(key)
            yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def _names_a_file(text: str) -> bool:
    """Whether a text, or a part of it as in ``stl:trace.stl``, is or may be a path."""
    parts = [text, *re.split(r"[:=,;\s]+", text)]
    outside = any(part.startswith(("/", "~")) or ".." in part.split("/") for part in parts)
    return outside or any(part and "\0" not in part and os.path.lexists(part) for part in parts)
