"""``archgym mcp``."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from archgym.cli.output import echo
from archgym.errors import InvalidValueError, MissingDependencyError

__all__ = ["mcp"]


def mcp(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Folder that takes everything; made if not there."),
    ],
    budget: Annotated[
        int,
        typer.Option(
            min=1,
            help="Designs that may be simulated in the folder, earlier sessions included.",
            show_default=False,
        ),
    ],
    environments: Annotated[
        list[str] | None,
        typer.Option(
            "--environment",
            metavar="ENV",
            help="Allow the path of a YAML file, or module:Class, besides the registered "
            "environments; repeatable.",
        ),
    ] = None,
    programs: Annotated[
        bool,
        typer.Option("--programs", help="Allow simulators that are programs of this machine."),
    ] = False,
    run_minutes: Annotated[
        float,
        typer.Option(
            min=0.05,
            help="Minutes after which an experiment is ended, and one simulation by a program or "
            "class that is not archgym's.",
        ),
    ] = 30.0,
) -> None:
    """Serve tools to a coding assistant, by the Model Context Protocol on standard streams.

    The assistant lists and shows environments, evaluates designs, runs experiments and reads
    results, within the budget, in the folder. It names no files, modules, containers or commands.
    """
    if find_spec("mcp") is None:
        raise MissingDependencyError(
            "archgym mcp needs the package mcp: pip install 'archgym[mcp]'"
        )
    if sys.stdin is None or not sys.stdin.readable():
        raise InvalidValueError(
            "standard input is closed: an assistant starts archgym mcp and writes to it"
        )
    from archgym.assistant import Limits, Workplace
    from archgym.assistant.server import serve_tools
    from archgym.assistant.tools import Tools

    if sys.stdin.isatty():
        echo("An assistant is to start this; Ctrl-C ends.", err=True)
    limits = Limits(budget, environments or (), programs, run_minutes)
    code = serve_tools(Tools(Workplace(folder, limits)))
    if code:
        raise typer.Exit(code)
