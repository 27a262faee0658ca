"""``archgym docs``: pages of documentation, made from what they document."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from archgym.cli.output import console

__all__ = ["add_to", "docs", "pages"]


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("docs")(docs)


def docs(
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
    from archgym.errors import MissingDependencyError, ReportError

    made = pages(names or _all_names(), out)
    show = console()
    for name, (path, page) in made.items():
        try:
            if validate:
                _validate(name, out)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(page(), encoding="utf-8")
        except MissingDependencyError as error:
            if names:
                raise
            show.print(f"{name}: left out: {error}", soft_wrap=True, markup=False)
            continue
        except OSError as error:
            raise ReportError(f"cannot write {path}: {error.strerror or error}") from error
        show.print(f"{name}: {path}", soft_wrap=True, markup=False)


def pages(names: list[str], out: Path) -> dict[str, tuple[Path, Callable[[], str]]]:
    """Where the page of each name goes, and what makes it.

    Args:
        names: environments, agents, ``experiment`` or ``commands``.
        out: folder of the pages.

    Raises:
        UnknownNameError: for a name that is none of them.
    """
    return {name: _page(name, out) for name in names}


def _all_names() -> list[str]:
    from archgym.registry import agent_names, environment_names

    return [*environment_names(), *agent_names(), *_references()]


def _references() -> dict[str, Callable[[], str]]:
    from archgym.cli.pages import commands_page, experiment_page

    return {"commands": commands_page, "experiment": experiment_page}


def _page(name: str, out: Path) -> tuple[Path, Callable[[], str]]:
    from archgym.cli.pages import agent_page, environment_page
    from archgym.cli.show import find
    from archgym.data.problems import identifier
    from archgym.environment.environment import Environment

    if name in _references():
        return out / "reference" / f"{name}.md", _references()[name]
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
    from archgym.cli.pages.environment import agreement_of
    from archgym.registry import environment_class, environment_names, make
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
