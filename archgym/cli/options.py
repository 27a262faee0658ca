"""Options and arguments that several commands take, and what they mean."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from archgym.errors import InvalidValueError, UnknownNameError

if TYPE_CHECKING:
    from archgym.data import Selection

__all__ = [
    "Agents",
    "Arguments",
    "EnvironmentName",
    "Exclude",
    "Include",
    "Json",
    "LIBRARY_VARIABLE",
    "Named",
    "Objective",
    "Quiet",
    "ReadFiles",
    "Seed",
    "Simulator",
    "Space",
    "Where",
    "Workload",
    "Workloads",
    "environment_arguments",
    "excluded_values",
    "named",
    "one_of",
    "pairs",
    "parsed",
    "parsed_pairs",
    "selected",
]

Choice = TypeVar("Choice", bound=StrEnum)

LIBRARY_VARIABLE = "ARCHGYM_LIBRARY"
"""Environment variable that names the library of runs, unless something else does."""
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
EnvironmentName = Annotated[
    str,
    typer.Argument(
        metavar="ENV", help="A registered name, module:Class, or the path of a YAML file."
    ),
]
Named = Annotated[
    str,
    typer.Argument(
        metavar="ENV|AGENT",
        help="A name that archgym list prints, module:Class, or an environment's YAML file.",
    ),
]
Workload = Annotated[str | None, typer.Option(help="A name, a path, or a YAML mapping.")]
Objective = Annotated[
    str | None, typer.Option(help="As in 'minimize energy_pj', or a YAML mapping.")
]
Space = Annotated[str | None, typer.Option(help="Name of a design space.")]
Simulator = Annotated[str | None, typer.Option(help="Name of a simulator.")]
ReadFiles = Annotated[
    bool,
    typer.Option(
        "--read-files",
        help="Read files that were recorded by name, such as a trace; only for data of your own.",
    ),
]
Arguments = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Any other argument of the environment, as in memory=DDR3-1600, or a part of one, as "
        "in controller.timing_rules=jedec; repeatable.",
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        metavar="KEY=VALUE",
        help="A value that no design shall have, as in scheduler=fifo, or a list of them; "
        "repeatable.",
    ),
]
Include = Annotated[
    list[str] | None,
    typer.Option(
        "--include",
        metavar="NAME",
        help="A parameter whose values are all offered, those too that the environment leaves out "
        "by default; repeatable.",
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="CONDITION",
        help="Only rows that meet it, as 'status == ok' or 'ways >= 4 or policy in lru, fifo'; "
        "repeatable, all must hold.",
    ),
]
Agents = Annotated[
    list[str] | None,
    typer.Option(
        "--agent", "--agents", metavar="A,B", help="Only rows of these agents; repeatable."
    ),
]
Hyperparameters = Annotated[
    list[str] | None,
    typer.Option("--hyperparameter", metavar="KEY=VALUE", help="One of the agent's; repeatable."),
]
Workloads = Annotated[
    list[str] | None, typer.Option("--workload", help="Only rows of this workload; repeatable.")
]


def parsed(text: str, option: str) -> Any:
    """What the text of an option means, read as YAML.

    Args:
        text: what was given.
        option: name of the option, for messages.

    Raises:
        ExperimentError: for a text that is not YAML.
    """
    from archgym.experiment.spec.load import parse_value

    return parse_value(text, option)


def environment_arguments(
    arguments: list[str] | None,
    *,
    workload: str | None = None,
    exclude: list[str] | None = None,
    include: list[str] | None = None,
    **given: Any,
) -> dict[str, Any]:
    """Keyword arguments of an environment's constructor, from options of the command line.

    Args:
        arguments: texts of the option ``--set``.
        workload: a name, a path, or a YAML mapping.
        exclude: texts of the option ``--exclude``.
        include: those of the option ``--include``.
        **given: other arguments; ``None`` is left out.

    Raises:
        InvalidValueError, ExperimentError: for a text that is not ``key=value``, or not YAML.
    """
    if workload is not None:
        given = {"workload": parsed(workload, "--workload"), **given}
    own = {name: value for name, value in given.items() if value is not None}
    if exclude:
        own["exclude"] = excluded_values(exclude)
    if include:
        own["include"] = include
    from archgym.experiment.spec.load import with_settings

    pairs(arguments, "--set ")  # nothing is given twice
    found: dict[str, Any] = with_settings(own, arguments or ())
    return found


def excluded_values(texts: list[str]) -> dict[str, list[Any]]:
    """Lists of values by parameter, from texts of the option ``--exclude``.

    >>> excluded_values(["scheduler=fifo", "ways=[2, 4]", "scheduler=fr_fcfs"])
    {'scheduler': ['fifo', 'fr_fcfs'], 'ways': [2, 4]}

    Raises:
        InvalidValueError, ExperimentError: for a text that is not ``key=value``, or not YAML.
    """
    found: dict[str, list[Any]] = {}
    for text in texts:
        for name, value in parsed_pairs([text], "--exclude").items():
            found.setdefault(name, []).extend(value if isinstance(value, list) else [value])
    return found


def parsed_pairs(texts: list[str] | None, option: str) -> dict[str, Any]:
    """Values by name from texts such as ``epochs=100``; values are read as YAML.

    Args:
        texts: what was given.
        option: name of the option, for messages.

    Raises:
        InvalidValueError, ExperimentError: for a text that is not ``key=value``, or not YAML.
    """
    given = pairs(texts, f"{option} ")
    return {name: parsed(text, f"{option} {name}") for name, text in given.items()}


def pairs(texts: list[str] | None, prefix: str) -> dict[str, str]:
    """Splits texts of the form ``key=value``.

    Args:
        texts: what was given.
        prefix: put before a text in messages.

    Raises:
        InvalidValueError: for a text of another form, or a key that is given twice.
    """
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InvalidValueError(f"{prefix}{text!r} is not of the form key=value")
        if name in found:
            raise InvalidValueError(f"{prefix}{name} is given twice")
        found[name] = value
    return found


def one_of(kind: type[Choice], name: str) -> Callable[[str], Choice]:
    """Makes the ``parser`` of an argument or option that allows certain values.

    Args:
        kind: the allowed values.
        name: what messages call the value.

    Raises:
        UnknownNameError: by the parser, for another value.
    """

    def read(text: str) -> Choice:

        if text not in list(kind):
            raise UnknownNameError(name, text, kind)
        return kind(text)

    return read


def selected(
    folder: Path,
    where: list[str] | None = None,
    agent: list[str] | None = None,
    workload: list[str] | None = None,
) -> Selection:
    """The rows of a dataset that the options ``--where``, ``--agent``, ``--workload`` choose."""
    from archgym.data import load

    agents = named(agent, "--agent")
    return load(folder, where or (), agents=agents, workloads=workload or ())


def named(values: list[str] | None, option: str) -> list[str]:
    """The names that an option was given, each time one or several with commas between them.

    Raises:
        InvalidValueError: if a value has no name.
    """
    for value in values or ():
        if not value.strip(", "):
            raise InvalidValueError(f"{option} is {value!r}; give names with commas between them")
    return [name.strip() for value in values or () for name in value.split(",") if name.strip()]
