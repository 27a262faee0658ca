"""The ``archgym`` command.

Nothing heavy is imported before a command needs it: commands import what they use.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Annotated

import typer

import archgym
from archgym.cli.output import fail
from archgym.cli.values import Commands
from archgym.errors import ArchgymError

__all__ = ["app", "main"]

app = typer.Typer(
    name="archgym",
    cls=Commands,
    help="Design-space exploration for computer architecture.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"archgym {archgym.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Design-space exploration for computer architecture."""


def main() -> None:
    """Runs the command line; expected errors are one line and exit code 2."""
    # Names such as my_cache:MyCache are found in the current folder, as with python -m.
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        app()
    except ArchgymError as error:
        fail(str(error))
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


from archgym.cli import (  # noqa: E402
    best,
    check,
    dataset,
    docs,
    enumeration,
    evaluate,
    listing,
    new,
    report,
    run,
    schema,
    show,
    validate,
)
from archgym.cli.proxy import commands as proxy  # noqa: E402

_OF_ENVIRONMENTS = ("archgym.envs.tpe.cli", "archgym.envs.dram.cli")
"""Modules of environments that add commands of their own."""

for _module in (
    listing,
    show,
    run,
    evaluate,
    enumeration,
    best,
    report,
    dataset,
    proxy,
    check,
    validate,
    new,
    schema,
    docs,
    *map(importlib.import_module, _OF_ENVIRONMENTS),
):
    _module.add_to(app)
