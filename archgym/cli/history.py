"""``archgym history``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archgym.cli.options import (
    LIBRARY_VARIABLE,
    Arguments,
    Json,
    Objective,
    Simulator,
    Space,
    Workload,
    environment_arguments,
    parsed,
)
from archgym.cli.output import line, print_json
from archgym.errors import InvalidValueError

if TYPE_CHECKING:
    from archgym.history.library import Library
    from archgym.history.library_index import Entry

__all__ = ["commands"]

commands = typer.Typer(
    no_args_is_help=True,
    help="Keep a library of runs, in which searches find what they can learn from.",
)

LibraryFolder = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help=f"Folder of the library; what {LIBRARY_VARIABLE} says if left out.",
        show_default=False,
    ),
]


@commands.command("add")
def add(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DIR", help="Runs or datasets; none only makes the library."),
    ] = None,
    library: LibraryFolder = None,
) -> None:
    """Add runs and datasets to a library, which is made if there is none.

    Nothing is copied: the library says where they are and what they hold. One that is there
    already is added again, with what it holds by now.
    """
    from archgym.history.library import Library

    made = Library.make(_folder(library))
    for folder in folders or ():
        entry = made.add(folder)
        line(f"{folder}: {_rows(entry)} of {_environments(entry)}")
    line(f"the library {made.folder} has {_counted(len(made.entries), 'entry', 'entries')}")


@commands.command("list")
def list_(
    environment: Annotated[
        str | None,
        typer.Argument(
            metavar="[ENV]",
            help="Say which of them a search in this environment may learn from.",
            show_default=False,
        ),
    ] = None,
    library: LibraryFolder = None,
    workload: Workload = None,
    objective: Objective = None,
    space: Space = None,
    simulator: Simulator = None,
    arguments: Arguments = None,
    json: Json = False,
) -> None:
    """List what a library holds, the newest first.

    With ENV it says which entries searches there find by themselves, and why not the others;
    without, what is wrong with an entry, such as a folder that is gone.
    """
    from archgym.history.library import MAX_FOUND, Library

    opened = Library(_folder(library))
    given: dict[str, Any] = {"workload": workload, "space": space, "simulator": simulator}
    if environment is None and (any(given.values()) or objective or arguments):
        raise InvalidValueError("--workload, --objective and others go with an environment: ENV")
    env: Any = None
    if environment is not None:
        from archgym.registry import make

        wanted = None if objective is None else parsed(objective, "--objective")
        env = make(environment, **environment_arguments(arguments, **given, objective=wanted))
    rows = []
    for entry in opened.entries:
        why = opened.problem_of(entry) if env is None else opened.misfit(entry, env)
        rows.append((entry, why))
    if json:
        print_json([_data(opened, entry, why, env is not None) for entry, why in rows])
        return
    if opened.restriction and any(not opened.follows(entry) for entry, _ in rows):
        line(opened.restriction, style="yellow")
    for entry, why in rows:
        line(str(opened.path(entry)))
        workloads = _some(problem.workload for problem in entry.problems)
        what = f"{_environments(entry)}{f' on {workloads}' if workloads else ''}"
        line(f"  {_rows(entry)} of {what}, added {entry.added[:16].replace('T', ' ')}")
        if env is not None:
            line(f"  learned from: {f'no, {why}' if why else 'yes'}")
        elif why:
            line(f"  {why}", style="yellow")
    fitting = sum(not why for _, why in rows)
    if env is not None and fitting > MAX_FOUND:
        line(f"a search learns from the best {MAX_FOUND} of these {fitting:,}")
    if not rows:
        line(f"the library {opened.folder} has no entries")
    _say_damaged(opened)


@commands.command("prune")
def prune(
    library: LibraryFolder = None,
    older_than: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="DAYS", help="Also those added longer ago.", show_default=False
        ),
    ] = None,
    edited: Annotated[
        str | None,
        typer.Option(
            metavar="ENV",
            help="Also those of this environment whose simulator was edited, or had another "
            "version.",
            show_default=False,
        ),
    ] = None,
    arguments: Arguments = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be removed.")
    ] = False,
    json: Json = False,
) -> None:
    """Remove entries whose folder is gone or damaged, and others that are asked for.

    Runs and datasets themselves are never touched.
    """
    from archgym.history.library import Library

    opened = Library(_folder(library))
    env: Any = None
    if edited is not None:
        from archgym.registry import make

        env = make(edited, **environment_arguments(arguments))
    elif arguments:
        raise InvalidValueError("--set goes with --edited")
    found = list(opened.prunable(days=older_than, environment=env))
    entries, damaged = len(opened.entries), opened.damaged
    if not dry_run and (found or damaged):
        opened.remove([entry for entry, _ in found])
    if json:
        print_json([{"path": str(opened.path(entry)), "reason": why} for entry, why in found])
        return
    for entry, why in found:
        line(f"{opened.path(entry)}: {why}")
    verb = "would be removed" if dry_run else "removed"
    line(f"{len(found):,} of {_counted(entries, 'entry', 'entries')} {verb}")
    if damaged:
        line(f"{_counted(damaged, 'damaged line', 'damaged lines')} of the index {verb}")


def _folder(library: str | None) -> Path:
    """The folder of the library that is meant."""
    named = os.environ.get(LIBRARY_VARIABLE, "") if library is None else library
    if not named:
        raise InvalidValueError(f"which library? Give --library DIR, or set {LIBRARY_VARIABLE}")
    return Path(named)


def _data(library: Library, entry: Entry, why: str, fits: bool) -> dict[str, Any]:
    """An entry for scripts."""
    from dataclasses import asdict

    data = {"path": str(library.path(entry)), "added": entry.added, "rows": entry.rows}
    data["problems"] = [asdict(problem) for problem in entry.problems]
    return {**data, **({"fits": not why} if fits else {}), "reason": why}


def _say_damaged(library: Library) -> None:
    if library.damaged:
        lines = _counted(library.damaged, "damaged line", "damaged lines")
        line(
            f"{lines} of the index passed over; archgym history prune clears the index of them",
            style="yellow",
        )


def _rows(entry: Entry) -> str:
    return _counted(entry.rows, "row", "rows")


def _counted(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def _environments(entry: Entry) -> str:
    return _some(problem.environment for problem in entry.problems)


def _some(names: Any) -> str:
    """The first of some names."""
    distinct = [name for name in dict.fromkeys(names) if name]
    more = f" and {len(distinct) - 3} more" if len(distinct) > 3 else ""
    return ", ".join(distinct[:3]) + more
