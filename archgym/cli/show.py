"""``archgym show``."""

from __future__ import annotations

import inspect
import math
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archgym.cli.listing import first_line, paragraphs
from archgym.cli.output import console, print_json, table

if TYPE_CHECKING:
    from archgym.agent import Agent
    from archgym.environment.environment import Environment
    from archgym.space import DesignSpace

__all__ = ["add_to", "agent_json", "environment_json", "find", "show"]

#: Characters of a rule beyond which it is cut; ``--json`` has all of it.
_LONGEST_RULE = 300


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("show")(show)


def show(
    name: Annotated[
        str, typer.Argument(metavar="ENV|AGENT", help="A registered name, or module:Class.")
    ],
    picture: Annotated[
        Path | None,
        typer.Option(help="Draw a design of the environment into this file, such as pe.svg."),
    ] = None,
    design: Annotated[
        str | None, typer.Option(help="Which one is drawn: a named design; else the baseline.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show all there is to know of an environment or an agent."""
    from archgym.environment.environment import Environment

    found = find(name)
    if picture is not None or design is not None:
        _draw_picture(name, found, picture, design)
        return
    if issubclass(found, Environment):
        data, draw = environment_json(name, found), _draw_environment
    else:
        data, draw = agent_json(name, found), _draw_agent
    if json:
        print_json(data)
    else:
        draw(data)


def _draw_picture(name: str, found: Any, picture: Path | None, design: str | None) -> None:
    from archgym.environment.environment import Environment
    from archgym.errors import InvalidValueError, UnknownNameError

    if not issubclass(found, Environment):
        raise InvalidValueError(f"agent {name!r} has no picture; --picture is for environments")
    if picture is None:
        raise InvalidValueError("--design is for --picture FILE")
    named = found.named_designs()
    if design is not None and design not in named:
        raise UnknownNameError("named design", design, named)
    found.draw(found.baseline if design is None else named[design], picture)
    console().print(f"drew {design or 'the baseline design'} into {picture}")


def find(name: str) -> Any:
    """The class of an environment or of an agent, by name or ``module:Class``.

    Raises:
        UnknownNameError: if there is none of that name.
        InvalidValueError: if the class is neither.
    """
    from archgym.agent import Agent
    from archgym.environment.environment import Environment
    from archgym.errors import InvalidValueError, UnknownNameError
    from archgym.registry import (
        agent_class,
        agent_names,
        environment_class,
        environment_names,
    )

    if name in agent_names():
        return agent_class(name)
    if ":" not in name and name.removeprefix("archgym/") not in environment_names():
        raise UnknownNameError("environment or agent", name, [*environment_names(), *agent_names()])
    try:
        return environment_class(name)
    except InvalidValueError:
        try:
            return agent_class(name)
        except InvalidValueError:
            raise InvalidValueError(
                f"{name!r} is neither a subclass of {Environment.__module__}:Environment "
                f"nor of {Agent.__module__}:Agent"
            ) from None


# -- environments --------------------------------------------------------------------------------


def environment_json(name: str, cls: type[Environment]) -> dict[str, Any]:
    """All there is to know of an environment, as plain values."""
    from archgym.environment.arguments import constructor_arguments
    from archgym.environment.environment import Environment
    from archgym.problem.objective import Objective

    general, explained = inspect.signature(Environment.__init__).parameters, cls.argument_docs()
    own = {
        key: None if parameter.default is parameter.empty else str(parameter.default)
        for key, parameter in constructor_arguments(cls).items()
        if key in explained or key not in general
    }
    return {
        "environment": name,
        "description": first_line(cls.__doc__),
        "version": cls.version,
        "spaces": {label: _space_json(space) for label, space in cls.spaces().items()},
        "metrics": [metric.to_json() for metric in cls.metrics],
        "default_objective": Objective.parse(cls.default_objective).to_json(),
        "baseline": dict(cls.baseline),
        "named_designs": cls.named_designs(),
        "workloads": cls.workloads(),
        "default_workload": cls.default_workload,
        "simulators": ["embedded", *cls.simulators],
        "fidelities": [fidelity.to_json() for fidelity in cls.fidelities],
        "arguments": own,
        "argument_docs": explained,
        "not_modelled": list(cls.not_modelled),
        "caveats": list(cls.caveats),
    }


def _space_json(space: DesignSpace) -> dict[str, Any]:
    from archgym.errors import SpaceTooLargeError

    try:
        canonical: float | None = space.canonical_cardinality
    except SpaceTooLargeError:
        canonical = None
    return {
        "raw_cardinality": space.raw_cardinality,
        "canonical_cardinality": canonical,
        "fixed": dict(space.fixed),
        "parameters": [
            {
                "name": p.name,
                "kind": p.kind,
                "range": p.range,
                "unit": p.unit,
                "when": "" if p.when is None else str(p.when),
                "group": p.group,
                "doc": p.doc,
            }
            for p in space.parameters
        ],
        "rules": [
            {"name": rule.name, "rule": str(rule.expression), "doc": rule.doc}
            for rule in space.rules
        ],
    }


def _draw_environment(data: dict[str, Any]) -> None:
    from rich.text import Text

    out = console()
    out.print(Text(data["environment"], style="bold"), Text(data["description"]))
    _draw_spaces(data["spaces"])
    made = table("metric", "unit", "better", "what it is")
    for metric in data["metrics"]:
        better = {"minimize": "smaller", "maximize": "larger"}[metric["direction"]]
        made.add_row(metric["name"], metric["unit"], better, metric["doc"])
    out.print(made)
    baseline = " ".join(f"{k}={v}" for k, v in data["baseline"].items())
    lines = {
        "Baseline design": baseline,
        "Default objective": str(data["default_objective"]),
        "Simulators": f"{', '.join(data['simulators'])} (embedded: version {data['version']})",
        "Fidelities": "; ".join(
            f"{one['value']:.12g} ({one['doc']}{', ' if one['doc'] else ''}cost {one['cost']:.4g})"
            for one in data["fidelities"]
            if len(data["fidelities"]) > 1
        ),
        "Workloads": ", ".join(data["workloads"])
        + (f" (default {data['default_workload']})" if data["default_workload"] else ""),
    }
    if data["named_designs"]:
        lines["Named designs"] = ", ".join(data["named_designs"])
    for label, text in lines.items():
        if text:
            out.print(Text.assemble((f"{label}: ", "bold"), text))
    for key, default in data["arguments"].items():
        allowed = data["argument_docs"].get(key, "")
        out.print(Text.assemble((f"Argument {key}: ", "bold"), f"{allowed} (default {default})"))
    for title, sentences in (
        ("What metrics do not show", data["caveats"]),
        ("Not modelled", data["not_modelled"]),
    ):
        if sentences:
            out.print(Text(f"{title}:", style="bold"))
        for sentence in sentences:
            out.print(Text(f"  - {sentence}"))


def _draw_spaces(spaces: dict[str, Any]) -> None:
    from rich.text import Text

    out = console()
    # Of a later space only what the first one does not have.
    first: dict[str, Any] = next(iter(spaces.values()))
    for label, space in spaces.items():
        shown = {"parameters": [], "rules": []} if space is first else first
        out.print()
        out.print(
            Text(f"Design space {label!r}", style="bold"),
            Text(f"{_count(space['raw_cardinality'])} raw designs,"),
            Text(f"{_count(space['canonical_cardinality'])} distinct legal ones"),
        )
        if space["fixed"]:
            held = " ".join(f"{name}={value}" for name, value in space["fixed"].items())
            out.print(Text(f"held: {held}"))
        made = table("parameter", "range", "acts when", "what it is")
        for p in space["parameters"]:
            if p not in shown["parameters"]:
                unit = f" {p['unit']}" if p["unit"] else ""
                made.add_row(p["name"], p["range"] + unit, p["when"], p["doc"])
        if made.row_count:
            out.print(made)
        same = len(space["parameters"]) - made.row_count
        if same:
            out.print(Text(f"parameters as in a space above: {same}"))
        for rule in space["rules"]:
            if rule not in shown["rules"]:
                law = textwrap.shorten(rule["rule"], _LONGEST_RULE, placeholder=" ...")
                out.print(Text(f"rule {rule['name']}: {law}  ({rule['doc']})"))


def _count(number: float | None) -> str:
    if number is None:
        return "too many to count"
    return "infinitely many" if math.isinf(number) else f"{int(number):,}"


# -- agents --------------------------------------------------------------------------------------


def agent_json(name: str, cls: type[Agent]) -> dict[str, Any]:
    """All there is to know of an agent, as plain values."""
    schema = cls.Hyperparameters.model_json_schema()
    return {
        "agent": name,
        "description": paragraphs(cls.__doc__),
        "hyperparameters": [
            {"name": field, **_field_json(field, cls, schema["properties"][field])}
            for field in cls.Hyperparameters.model_fields
        ],
    }


def _field_json(name: str, cls: type[Agent], schema: dict[str, Any]) -> dict[str, Any]:
    options = [schema, *schema.get("anyOf", [])]
    values = next((o["enum"] for o in options if "enum" in o), None)
    bounds = [
        f"{sign} {option[key]}"
        for option in options
        for key, sign in (
            ("minimum", ">="),
            ("exclusiveMinimum", ">"),
            ("maximum", "<="),
            ("exclusiveMaximum", "<"),
        )
        if key in option
    ]
    kinds = [str(o["type"]) for o in options if "type" in o]
    return {
        "type": " or ".join(dict.fromkeys(kinds)) or "choice",
        "default": cls.Hyperparameters.model_fields[name].default,
        "allowed": ", ".join(map(str, values)) if values else ", ".join(bounds),
        "doc": schema.get("description", ""),
    }


def _draw_agent(data: dict[str, Any]) -> None:
    from rich.text import Text

    out = console()
    out.print(Text(data["agent"], style="bold"), Text(data["description"]))
    made = table("hyperparameter", "type", ">default", "allowed", "what it is")
    for field in data["hyperparameters"]:
        cells = (
            field["name"],
            field["type"],
            str(field["default"]),
            field["allowed"],
            field["doc"],
        )
        made.add_row(*(Text(cell) for cell in cells))
    if data["hyperparameters"]:
        out.print(made)
    else:
        out.print(Text("It has no hyperparameters."))
