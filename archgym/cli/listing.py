"""``archgym list``."""

from __future__ import annotations

import inspect
import itertools
import re
from enum import StrEnum
from typing import Annotated, Any

import typer

from archgym.cli.output import console, print_json, table
from archgym.cli.values import one_of

__all__ = ["add_to", "list_"]


class Kind(StrEnum):
    """What can be listed."""

    envs = "envs"
    agents = "agents"
    simulators = "simulators"
    workloads = "workloads"
    experiments = "experiments"


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("list")(list_)


def list_(
    kind: Annotated[
        Kind | None,
        typer.Argument(
            parser=one_of(Kind, "kind"),
            metavar="KIND",
            help=f"What to list: {', '.join(Kind)}; all if left out.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List environments, agents, simulators, workloads and the experiments that ship."""
    from rich.markup import escape

    kinds = [kind] if kind is not None else list(Kind)
    found = {str(k): _rows(k) for k in kinds}
    if json:
        print_json(found)
        return

    out = console()
    for name, rows in found.items():
        columns = list(rows[0]) if rows else ["name"]
        made = table(*columns, title=name)
        for row in rows:
            made.add_row(*map(escape, row.values()))
        out.print(made)


def _rows(kind: Kind) -> list[dict[str, str]]:
    from archgym.registry import agent_class, agent_names, environment_names

    if kind is Kind.agents:
        return [_described(name, agent_class) for name in agent_names()]
    if kind is Kind.envs:
        from archgym.registry import environment_class

        return [_described(name, environment_class) for name in environment_names()]
    if kind is Kind.experiments:
        return _experiments()
    rows = []
    for name in environment_names():
        offered = _simulators(name) if kind is Kind.simulators else _workloads(name)
        rows += [
            {"environment": name, "name": entry, "description": text}
            for entry, text in offered.items()
        ]
    return rows


def _experiments() -> list[dict[str, str]]:
    """The experiments that ``archgym run NAME`` knows."""
    from archgym.experiment.spec.expand import expand
    from archgym.experiment.spec.load import load_experiment, shipped_experiments

    loaded = {name: load_experiment(name) for name in shipped_experiments()}
    return [
        {
            "name": name,
            "trials": f"{len(expand(one)):,}",
            "simulations": f"{one.budget:,} each",
            "description": " ".join(one.description.split()),
        }
        for name, one in loaded.items()
    ]


def _described(name: str, find: Any) -> dict[str, str]:
    from archgym.errors import ArchgymError

    try:
        return {"name": name, "description": first_line(find(name).__doc__)}
    except ArchgymError as error:  # another package's entry point that does not load
        return {"name": name, "description": str(error)}


def _simulators(name: str) -> dict[str, str]:
    cls = _loaded(name)
    if cls is None:
        return {}
    found = {"embedded": f"comes with the environment, version {cls.version}"}
    found |= {n: first_line(maker.__doc__) for n, maker in cls.simulators.items()}
    return found | _tables(name)


def _tables(environment: str) -> dict[str, str]:
    """The shipped tables of an environment."""
    from archgym.simulators.tabular import PREFIX, read_header, shipped_tables

    found = {}
    for name, path in shipped_tables().items():
        header = read_header(path)
        if header.environment == environment:
            settings = [f"{key} {value}" for key, value in header.settings.items() if value]
            fixed = [f"{key}={value}" for key, value in header.space.fixed.items()]
            on = f"workload {header.workload_name}" if header.workload_name else ""
            size = f"table of {int(header.space.canonical_cardinality):,} designs"
            found[PREFIX + name] = ", ".join(filter(None, [size, on, *settings, *fixed]))
    return found


def _workloads(name: str) -> dict[str, str]:
    cls = _loaded(name)
    return {} if cls is None else dict(cls.workloads())


def _loaded(name: str) -> Any:
    from archgym.errors import ArchgymError
    from archgym.registry import environment_class

    try:
        return environment_class(name)
    except ArchgymError:
        return None


def paragraphs(doc: str | None) -> str:
    """A docstring up to its sections, each paragraph on one line, without markup."""
    parts = inspect.cleandoc(doc or "").split("\n\n")
    kept = itertools.takewhile(
        lambda part: not re.match(r"(Args|Attributes|Raises|References):|>>>", part), parts
    )
    text = "\n\n".join(" ".join(part.split()) for part in kept)
    return _plain(text)


def first_line(doc: str | None) -> str:
    """The first line of a docstring, without markup."""
    return _plain((doc or "").strip().partition("\n")[0].strip())


def _plain(text: str) -> str:
    return re.sub(r":\w+:`[~!]?([^`]*)`|``([^`]*)``", lambda found: found[1] or found[2], text)
