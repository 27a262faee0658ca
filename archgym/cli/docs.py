"""``archgym docs``: a page of documentation for each environment, made from the environment."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from archgym.cli.listing import paragraphs
from archgym.cli.output import console
from archgym.cli.show import environment_json

__all__ = ["add_to", "docs", "environment_page"]

_LONGEST_RULE = 400
_MOST_NAMED = 40


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("docs")(docs)


def docs(
    environments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ENV]...",
            help="Registered names, or module:Class; all if left out.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder that takes the pages.")] = Path(
        "docs/environments"
    ),
) -> None:
    """Write a page of documentation for each environment: space, metrics, workloads, limits."""
    from archgym.data.problems import identifier
    from archgym.errors import ReportError
    from archgym.registry import environment_class, environment_names

    show = console()
    for name in environments or environment_names():
        text = environment_page(name, environment_class(name))
        path = out / f"{identifier(name.removeprefix('archgym/').rpartition(':')[2])}.md"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ReportError(f"cannot write {path}: {error.strerror or error}") from error
        show.print(f"{name}: {path}", soft_wrap=True, markup=False)


def environment_page(name: str, cls: type[Any]) -> str:
    """The page of an environment, in Markdown.

    Args:
        name: under which it is made.
        cls: its class.
    """
    data = environment_json(name, cls)
    parts = [
        f"# {_text(name)}",
        f"<!-- Made by `archgym docs {name}` from the environment itself: do not edit. -->",
        _text(paragraphs(cls.__doc__)),
        "```python\nimport archgym\n\n"
        f'env = archgym.make("{name}")\n'
        "print(env.evaluate(env.baseline_design).metrics)\n```",
        f"Version {data['version']} of the embedded simulator. `archgym show {name}` prints the "
        "same on a terminal.",
        "## What is measured",
        _table(
            ("metric", "unit", "better", "what it is"),
            (
                (
                    f"`{metric['name']}`",
                    _text(metric["unit"]),
                    {"minimize": "smaller", "maximize": "larger"}[metric["direction"]],
                    _text(metric["doc"]),
                )
                for metric in data["metrics"]
            ),
        ),
        f"Default objective: `{_json(data['default_objective'])}`.",
        "## What may vary",
        *_spaces(data),
        "## Workloads, simulators and arguments",
        *_choices(data),
    ]
    if data["not_modelled"]:
        parts += ["## What is not modelled", _list(map(_text, data["not_modelled"]))]
    return "\n\n".join(part for part in parts if part) + "\n"


def _spaces(data: dict[str, Any]) -> list[str]:
    """The design spaces; of a later one only what no earlier one has."""
    parts: list[str] = []
    seen: list[Any] = []
    for label, space in data["spaces"].items():
        parts.append(f"### Space `{label}`")
        parts.append(
            f"{_count(space['raw_cardinality'])} raw designs, "
            f"{_count(space['canonical_cardinality'])} distinct legal ones, "
            f"{len(space['parameters'])} parameters."
        )
        new = [p for p in space["parameters"] if p not in seen]
        known = len(space["parameters"]) - len(new)
        if known:
            parts.append(f"Parameters as in a space above: {known}.")
        groups = any(p["group"] for p in new)
        if new:
            parts.append(
                _table(
                    ("parameter", "range", "acts when", "what it is", *(["group"] * groups)),
                    (
                        (
                            f"`{p['name']}`",
                            _text(f"{p['range']} {p['unit']}".strip()),
                            f"`{p['when']}`" if p["when"] else "",
                            _text(p["doc"]),
                            *([_text(p["group"])] * groups),
                        )
                        for p in new
                    ),
                )
            )
        rules = [rule for rule in space["rules"] if rule not in seen]
        if rules:
            parts.append("Rules:\n\n" + _list(map(_rule, rules)))
        if space["fixed"]:
            parts.append(f"Held: {_design(space['fixed'])}.")
        seen += [*new, *rules]
    parts.append(f"Baseline design: {_design(data['baseline'])}.")
    named = list(data["named_designs"])
    if named:
        more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        shown = ", ".join(f"`{name}`" for name in named[:_MOST_NAMED])
        parts.append(f"Named designs: {shown}{more}.")
    return parts


def _choices(data: dict[str, Any]) -> list[str]:
    parts = []
    if data["workloads"]:
        parts.append(
            _table(
                ("workload", "what it is"),
                ((f"`{name}`", _text(what)) for name, what in data["workloads"].items()),
            )
        )
        parts.append(f"Default workload: `{_json(data['default_workload'])}`.")
    parts.append(f"Simulators: {', '.join(f'`{name}`' for name in data['simulators'])}.")
    if len(data["fidelities"]) > 1:
        parts.append(
            _table(
                ("fidelity", "relative cost", "what it is"),
                (
                    (f"{one['value']:.12g}", f"{one['cost']:.4g}", _text(one["doc"]))
                    for one in data["fidelities"]
                ),
            )
        )
    if data["arguments"]:
        parts.append(
            _table(
                ("argument", "default", "what it may be"),
                (
                    (f"`{name}`", f"`{default}`", _text(data["argument_docs"].get(name, "")))
                    for name, default in data["arguments"].items()
                ),
            )
        )
    return parts


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [list(columns), ["---"] * len(columns), *map(list, rows)]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _rule(rule: dict[str, Any]) -> str:
    law = textwrap.shorten(rule["rule"], _LONGEST_RULE, placeholder=" ...")
    return f"**{rule['name']}**: `{law}`" + (f" ({_text(rule['doc'])})" if rule["doc"] else "")


def _design(values: dict[str, Any]) -> str:
    return " ".join(f"`{name}={value}`" for name, value in values.items())


def _text(text: str) -> str:
    """A text in Markdown that shows as it is."""
    for character in "\\*_<`[":
        text = text.replace(character, f"\\{character}")
    return text


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _count(number: float | None) -> str:
    if number is None:
        return "more than can be counted"
    return "infinitely many" if math.isinf(number) else f"{int(number):,}"
