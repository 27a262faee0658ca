"""``archgym list``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer

from archgym.cli.describe import first_line
from archgym.cli.options import Json, one_of
from archgym.cli.output import paragraph, print_json, print_table
from archgym.environment.environment import Environment
from archgym.errors import ArchgymError, InvalidValueError, check_choice
from archgym.registry import agent_class, agent_names, environment_class, environment_names

__all__ = ["list_"]

Row = dict[str, str]

_BEGIN = (
    "Begin with auto: it searches with several of the others at once and has nothing to tune; "
    "random is what an agent has to beat."
)


class Kind(StrEnum):
    """What can be listed."""

    envs = "envs"
    agents = "agents"
    simulators = "simulators"
    workloads = "workloads"
    experiments = "experiments"


_OF_ENVIRONMENTS = (Kind.simulators, Kind.workloads)


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
    environment: Annotated[
        str,
        typer.Argument(
            metavar="ENV",
            help="Of simulators and workloads: only those of this environment.",
            show_default=False,
        ),
    ] = "",
    json: Json = False,
) -> None:
    """List environments, agents, simulators, workloads and the experiments that ship."""
    if environment:
        if kind not in _OF_ENVIRONMENTS:
            raise InvalidValueError(
                f"{kind} are not of an environment: ENV goes with {' and '.join(_OF_ENVIRONMENTS)}"
            )
        check_choice("environment", environment, environment_names())
    found = {str(one): _rows(one) for one in ([kind] if kind is not None else Kind)}
    if environment:
        found = {
            name: [row for row in rows if row["environment"] == environment]
            for name, rows in found.items()
        }
    if json:
        print_json(found)
        return
    for name, rows in found.items():
        columns = list(rows[0]) if rows else ["name"]
        print_table(columns, [list(row.values()) for row in rows], title=name)
        if name == Kind.agents:
            paragraph(_BEGIN)


def _rows(kind: Kind) -> list[Row]:

    if kind is Kind.agents:
        return [_described(name, agent_class) for name in agent_names()]
    if kind is Kind.envs:
        return [_described(name, environment_class) for name in environment_names()]
    if kind is Kind.experiments:
        return _experiments()
    offered = _simulators if kind is Kind.simulators else lambda _, cls: dict(cls.workloads())
    return [
        {"environment": name, "name": entry, "description": text}
        for name, cls in _loaded()
        for entry, text in offered(name, cls).items()
    ]


def _experiments() -> list[Row]:
    """The experiments that ``archgym run NAME`` knows."""
    from archgym.experiment.spec.expand import expand
    from archgym.experiment.spec.load import load_experiment, shipped_experiments

    return [
        {
            "name": name,
            "trials": f"{len(expand(one)):,}",
            "simulations": f"{one.budget_text.removesuffix(' simulations')} each",
            "description": " ".join(one.description.split()),
        }
        for name in shipped_experiments()
        for one in [load_experiment(name)]
    ]


def _described(name: str, find: Callable[[str], type[Any]]) -> Row:
    try:
        return {"name": name, "description": first_line(find(name).__doc__)}
    except ArchgymError as error:  # another package's entry point that does not load
        return {"name": name, "description": str(error)}


def _simulators(name: str, cls: type[Environment]) -> Row:
    found = {"embedded": f"comes with the environment, version {cls.version}"}
    found |= {n: first_line(maker.__doc__) for n, maker in cls.simulators.items()}
    return found | _tables(name)


def _tables(environment: str) -> Row:
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


def _loaded() -> Iterator[tuple[str, type[Environment]]]:
    """The environments but for those of other packages that do not load."""
    for name in environment_names():
        with contextlib.suppress(ArchgymError):
            yield name, environment_class(name)
