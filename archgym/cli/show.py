"""``archgym show``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from archgym.cli import describe, options
from archgym.cli.options import Json, Named
from archgym.cli.output import console, print_json, print_table
from archgym.environment.environment import Environment
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["show"]

_LONGEST_RULE = 300
"""Characters of a rule beyond which it is cut; ``--json`` has all of it."""


def show(
    name: Named,
    picture: Annotated[
        Path | None,
        typer.Option(help="Draw a design of the environment into this file, such as pe.svg."),
    ] = None,
    design: Annotated[
        str | None, typer.Option(help="Named design to draw; the baseline if left out.")
    ] = None,
    workload: options.Workload = None,
    space: options.Space = None,
    simulator: options.Simulator = None,
    arguments: options.Arguments = None,
    json: Json = False,
) -> None:
    """Show everything about an environment or an agent.

    With a workload, a space, a simulator or other arguments: the design space, the baseline design,
    the metrics and the objective that they lead to.
    """
    found = describe.find(name)
    given = options.environment_arguments(
        arguments, workload=workload, space=space, simulator=simulator
    )
    if picture is not None or design is not None:
        if given:
            raise InvalidValueError(f"--picture draws without {next(iter(given))}")
        _draw_picture(name, found, picture, design)
        return
    is_environment = issubclass(found, Environment)
    if given and not is_environment:
        raise InvalidValueError(f"agent {name!r} has no {next(iter(given))}; environments have")
    to_json = describe.environment_json if is_environment else describe.agent_json
    data = to_json(name, found)
    if given:
        from archgym.experiment.spec.checks import make_environment

        data |= describe.instance_json(make_environment(name, given))
    if json:
        print_json(data)
    elif is_environment:
        _show_environment(data)
    else:
        _show_agent(data)


def _draw_picture(name: str, found: Any, picture: Path | None, design: str | None) -> None:

    if not issubclass(found, Environment):
        raise InvalidValueError(f"agent {name!r} has no picture; --picture is for environments")
    if picture is None:
        raise InvalidValueError("--design is for --picture FILE")
    named = found.named_designs()
    if design is not None and design not in named:
        raise UnknownNameError("named design", design, named)
    found.draw(found.baseline if design is None else named[design], picture)
    console().print(f"drew {design or 'the baseline design'} into {picture}")


def _show_environment(data: dict[str, Any]) -> None:
    _heading(data["environment"], data["description"])
    _show_spaces(data["spaces"])
    metrics = data["metrics"]
    print_table(
        ("metric", "unit", "better", "what it is"),
        [(m["name"], m["unit"], describe.BETTER[m["direction"]], m["doc"]) for m in metrics],
    )
    fidelities = data["fidelities"] if len(data["fidelities"]) > 1 else ()
    default = f" (default {data['default_workload']})" if data["default_workload"] else ""
    if chosen := data.get("workload"):
        default = f" (shown: {chosen})"
    labelled = {
        "Workload": f"{chosen}: {data['workload_doc']}" if data.get("workload_doc") else "",
        "Baseline design": _assignments(data["baseline"]),
        "Default objective": str(data["default_objective"]),
        "Simulators": f"{', '.join(data['simulators'])} (embedded: version {data['version']})",
        "Fidelities": "; ".join(
            f"{one['value']:.12g} ({one['doc']}{', ' if one['doc'] else ''}cost {one['cost']:.4g})"
            for one in fidelities
        ),
        "Workloads": ", ".join(data["workloads"]) + default,
        "Named designs": ", ".join(data["named_designs"]),
    }
    for key, value in data["arguments"].items():
        allowed = data["argument_docs"].get(key, "")
        labelled[f"Argument {key}"] = f"{allowed} (default {value})"
    for label, text in labelled.items():
        if text:
            _heading(f"{label}:", text)
    for title, sentences in (
        ("What metrics do not show", data["caveats"]),
        ("Not modelled", data["not_modelled"]),
    ):
        if sentences:
            _heading(f"{title}:")
        for sentence in sentences:
            _heading("", f"  - {sentence}")


def _show_spaces(spaces: dict[str, Any]) -> None:
    """Shows design spaces; of a later space only what the first one does not have."""
    first: dict[str, Any] = next(iter(spaces.values()))
    for label, space in spaces.items():
        shown = {"parameters": [], "rules": []} if space is first else first
        raw, legal = (
            describe.count_text(space[f"{kind}_cardinality"], "too many to count")
            for kind in ("raw", "canonical")
        )
        console().print()
        _heading(f"Design space {label!r}", f"{raw} raw designs, {legal} distinct legal ones")
        for text in describe.not_searched(space):
            _heading("", text)
        new = [p for p in space["parameters"] if p not in shown["parameters"]]
        if new:
            print_table(
                ("parameter", "range", "acts when", "what it is"),
                [
                    (p["name"], f"{p['range']} {p['unit']}".strip(), p["when"], p["doc"])
                    for p in new
                ],
            )
        if len(space["parameters"]) > len(new):
            same = len(space["parameters"]) - len(new)
            _heading("", f"parameters as in a space above: {same}")
        for rule in space["rules"]:
            if rule not in shown["rules"]:
                law = describe.shortened(rule["rule"], _LONGEST_RULE)
                _heading("", f"rule {rule['name']}: {law}  ({rule['doc']})")


def _show_agent(data: dict[str, Any]) -> None:
    _heading(data["agent"], data["description"])
    if data["hyperparameters"]:
        fields = ("name", "type", "default", "allowed", "doc")
        print_table(
            ("hyperparameter", "type", ">default", "allowed", "what it is"),
            [[str(one[field]) for field in fields] for one in data["hyperparameters"]],
        )
    else:
        _heading("", "It has no hyperparameters.")


def _heading(bold: str, text: str = "") -> None:
    """Writes a line whose first part is bold."""
    from rich.text import Text

    console().print(Text.assemble((bold, "bold"), " " if bold and text else "", text))


def _assignments(values: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())
