"""Puts the commands of the command line together, also those of environments and other packages.

Modules of commands import what they need when a command runs, so that ``archgym`` starts fast.
"""

from __future__ import annotations

import inspect
import io
import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import archgym
from archgym.cli import (
    best,
    check,
    evaluate,
    history,
    new,
    report,
    schema,
    show,
    validate,
)
from archgym.cli import enumerate as enumeration
from archgym.cli import list as listing
from archgym.cli.dataset import commands as dataset
from archgym.cli.docs import command as docs
from archgym.cli.experiment import explain, run, status, worker
from archgym.cli.output import echo, fail
from archgym.cli.proxy import commands as proxy
from archgym.cli.serving.mcp import mcp
from archgym.cli.serving.serve import serve
from archgym.errors import ArchgymError

__all__ = ["COMMANDS_GROUP", "app", "main"]

COMMANDS_GROUP = "archgym.commands"
"""Entry points of other packages that add commands: ``name = "module:function or typer.Typer"``."""

_COMMANDS: dict[str, dict[str, Any]] = {
    "Search a design space": {
        "list": listing.list_,
        "show": show.show,
        "evaluate": evaluate.evaluate,
        "run": run.run,
        "worker": worker.worker,
        "status": status.status,
        "enumerate": enumeration.enumerate_,
    },
    "Read what was found": {
        "best": best.best,
        "explain": explain.explain,
        "report": report.report,
        "dataset": dataset.commands,
    },
    "Learn from what was recorded": {
        "proxy": proxy.commands,
        "history": history.commands,
    },
    "Add what is yours": {
        "new": new.commands,
        "check": check.check,
        "validate": validate.validate,
        "serve": serve,
        "mcp": mcp,
        "schema": schema.schema,
        "docs": docs.docs,
    },
}
"""Commands of the framework by what they are for: a function, or a group of commands."""

_OF_OTHERS = "Of environments and other packages"

_OF_ENVIRONMENTS = {
    "simulators": "archgym.envs.tpe.cli:commands",
    "trace": "archgym.envs.cpu.cli:commands",
}
"""Commands that environments of archgym add, in the form of an entry point."""


class Commands(TyperGroup):
    """A group whose error messages name the value that is not allowed, and say what is missing.

    Paragraphs of its help are as wide as the terminal, not broken as in the source.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        _unwrap(self)

    def invoke(self, ctx: Any) -> Any:
        """As typer does, with the value, or the help of what is missing, in the message."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            find = getattr(error.__cause__, "errors", None)  # by pydantic, in later versions
            if find is not None:
                first = find()[0]
                text = str(first["msg"]).removeprefix("Value error, ")
                error.message = text.replace("Input", repr(first["input"]), 1)
            elif hasattr(error, "param_type") and not error.message:  # a missing parameter
                error.message = getattr(error.param, "help", None) or ""
            raise


def _unwrap(command: Any) -> None:
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    command.help = "\n\n".join(" ".join(one.split("\n")) for one in paragraphs)
    for inner in getattr(command, "commands", {}).values():
        _unwrap(inner)


_FIRST_STEPS = "\n\n".join(
    [
        "Begin with `archgym run quickstart`: it plans the training of a language model, with five "
        "agents, in about a minute.",
        "`archgym list envs` names what can be designed, `archgym list experiments` what can be "
        "run, and `archgym show DRAM-v0` says all about one environment.",
        "A simulator of your own: `archgym new env NAME --command` asks for what it needs and "
        "writes one YAML file; without --command it is a Python class.",
    ]
)

app = typer.Typer(
    name="archgym",
    epilog=_FIRST_STEPS,
    cls=Commands,
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


def _add(name: str, command: Any, panel: str) -> None:
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name, rich_help_panel=panel)
    else:
        app.command(name, rich_help_panel=panel)(command)


def _add_contributed(taken: set[str]) -> None:
    """Adds the commands of environments and of other packages.

    One that cannot be loaded, or whose name is taken, is named on stderr and left out: the other
    commands still work.
    """
    ours = [EntryPoint(name, value, COMMANDS_GROUP) for name, value in _OF_ENVIRONMENTS.items()]
    for entry in [*ours, *entry_points(group=COMMANDS_GROUP)]:
        try:
            if entry.name in taken:
                raise ValueError("archgym has a command of this name")
            _add(entry.name, entry.load(), _OF_OTHERS)
            taken.add(entry.name)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            echo(f"the command {entry.name} of {entry.value} is left out: {reason}", err=True)


for _panel, _commands in _COMMANDS.items():
    for _name, _command in _commands.items():
        _add(_name, _command, _panel)
_add_contributed({name for commands in _COMMANDS.values() for name in commands})


def main() -> None:
    """Runs the command line; expected errors are one line and exit code 2.

    Among them is whatever the operating system refuses, such as a name that is too long.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # whatever the terminal cannot show is escaped
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except ArchgymError as error:
        fail(str(error))
        sys.exit(2)
    except BrokenPipeError:  # what reads the output has read enough, as head does
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        name = f" {error.filename}" if error.filename else ""
        fail(f"cannot use{name or ' the file'}: {error.strerror or error}")
        sys.exit(2)
    except MemoryError:
        fail("there is not enough memory for this")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
