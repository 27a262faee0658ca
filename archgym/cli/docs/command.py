"""``archgym docs``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from archgym.cli.output import line
from archgym.environment.environment import Environment
from archgym.errors import MissingDependencyError, ReportError
from archgym.registry import agent_names, environment_class, environment_names, make

__all__ = ["docs", "page"]

_REFERENCES = ("commands", "experiment")


def docs(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Environments, agents (registered, or module:Class), experiment or commands; "
            "all registered ones and both references if left out.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder that takes the pages.")] = Path("docs"),
    validate: Annotated[
        bool,
        typer.Option(
            "--validate",
            help="Compare environments with their reference figures again, and keep the result "
            "in OUT/agreement; the pages of environments show what is kept there.",
        ),
    ] = False,
) -> None:
    """Write pages of documentation: of environments, agents, the experiment file, the commands."""
    everything = [*environment_names(), *agent_names(), *_REFERENCES]
    command_line = context.find_root().command
    pages = {name: page(name, out, command_line) for name in names or everything}
    for name, (path, text) in pages.items():
        try:
            if validate:
                _validate(name, out)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text(), encoding="utf-8")
        except MissingDependencyError as error:
            if names:
                raise
            line(f"{name}: left out: {error}")
            continue
        except OSError as error:
            raise ReportError(f"cannot write {path}: {error.strerror or error}") from error
        line(f"{name}: {path}")


def page(name: str, out: Path, command_line: Any) -> tuple[Path, Callable[[], str]]:
    """The path of a page, and the function that makes its text.

    Args:
        name: an environment, an agent, ``experiment`` or ``commands``.
        out: folder of the pages.
        command_line: the command line, as typer makes it for click.

    Raises:
        UnknownNameError: for a name that is none of them.
    """
    from archgym.cli.describe import find
    from archgym.cli.docs.agent_page import agent_page
    from archgym.cli.docs.commands_page import commands_page
    from archgym.cli.docs.environment_page import environment_page
    from archgym.cli.docs.experiment_page import experiment_page
    from archgym.data.problems import identifier

    if name == "commands":
        return out / "reference" / "commands.md", lambda: commands_page(command_line)
    if name == "experiment":
        return out / "reference" / "experiment.md", experiment_page
    cls = find(name)
    file = f"{identifier(name.removeprefix('archgym/').rpartition(':')[2])}.md"
    if not issubclass(cls, Environment):
        return out / "agents" / file, lambda: agent_page(name, cls)
    return (
        out / "environments" / file,
        lambda: environment_page(name, cls, _agreement(name, out)),
    )


def _agreement_file(name: str, out: Path) -> Path:
    return out / "agreement" / f"{name.removeprefix('archgym/')}.json"


def _agreement(name: str, out: Path) -> dict[str, Any] | None:
    path = _agreement_file(name, out)
    if ":" in name or not path.is_file():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _validate(name: str, out: Path) -> None:
    """Compares an environment that has reference figures, and keeps the result."""
    import archgym
    from archgym.cli.docs.environment_page import agreement_of
    from archgym.validation.validate import validate

    if name.removeprefix("archgym/") not in environment_names():
        return
    cls = environment_class(name)
    if cls.references.__func__ is archgym.Environment.references.__func__:  # type: ignore[attr-defined]
        return
    references = [one for one in cls.references() if one.rows]
    found = [validate(one, lambda **arguments: make(name, **arguments)) for one in references]
    made = {"archgym": archgym.__version__, "references": [one.to_json() for one in found]}
    path = _agreement_file(name, out)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(agreement_of(name, cls.version, made), indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
