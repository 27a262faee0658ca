"""The page of an environment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from archgym.cli.describe import BETTER, count_text, environment_json, shortened
from archgym.cli.docs.markdown import bullets, join, literal, opening, records, table, text

__all__ = ["agreement_of", "environment_page"]

_UNKNOWN = "more than can be counted"
_LONGEST_RULE = 400
_MAX_NAMED = 40


def environment_page(name: str, cls: type[Any], agreement: Mapping[str, Any] | None = None) -> str:
    """The page of an environment, in Markdown.

    Args:
        name: under which it is made.
        cls: its class.
        agreement: how far it agrees with reference figures, from :func:`agreement_of`.
    """
    data = environment_json(name, cls)
    parts = [
        *opening(
            name,
            cls,
            f'env = archgym.make("{name}")',
            "print(env.evaluate(env.baseline_design).metrics)",
        ),
        f"Version {data['version']} of the embedded simulator. `archgym show {name}` prints "
        "spaces, metrics, workloads and arguments on a terminal.",
        "## What is measured",
        records(
            {"metric": "`name`", "unit": "unit", "better": "better", "what it is": "doc"},
            [{**metric, "better": BETTER[metric["direction"]]} for metric in data["metrics"]],
        ),
        f"Default objective: {literal(data['default_objective'])}.",
        "## What may vary",
        *_spaces(data),
        "## Workloads, simulators and arguments",
        *_choices(data),
    ]
    for title, sentences in (
        ("What metrics do not show", data["caveats"]),
        ("What is modelled", list(cls.modelled)),
        ("What is not modelled", data["not_modelled"]),
    ):
        if sentences:
            parts += [f"## {title}", bullets(map(text, sentences))]
    sources = cls.sources()
    if sources:
        parts += [
            "## Where the constants come from",
            table(("what", "source"), ((text(k), text(v)) for k, v in sources.items())),
        ]
    if agreement is not None:
        parts += ["## How far to trust it", *_agreement(name, agreement)]
    return join(parts)


def agreement_of(name: str, version: str, validation: Mapping[str, Any]) -> dict[str, Any]:
    """What a page keeps of ``archgym validate NAME --json``.

    Args:
        name: of the environment.
        version: of its simulator.
        validation: what the command printed.
    """
    return {
        "environment": name,
        "version": version,
        "archgym": validation["archgym"],
        "references": [
            {
                "title": one["title"],
                "rows": one["rows"],
                "metrics": [
                    {
                        "metric": s["metric"],
                        "cases": s["varying"],
                        **{
                            f"{which}_{name}": _rounded(s[which][name])
                            for which in ("median", "worst")
                            for name in ("spearman", "mean_error")
                        },
                    }
                    for s in one["summaries"]
                    if s["varying"]
                ],
            }
            for one in validation["references"]
        ],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.4f}")


def _agreement(name: str, agreement: Mapping[str, Any]) -> list[str]:
    parts = [
        f"`archgym validate {name}` compares the embedded simulator with these reference figures, "
        "case by case (a workload on one hardware): rank correlation (Spearman) and mean absolute "
        "relative error, in the median case and in the worst one. A metric that hardly varies "
        "within a case ranks nothing there, and the case is left out.",
        f"With archgym {agreement['archgym']}, version {agreement['version']} of the simulator:",
    ]
    rows = []
    for one in agreement["references"]:
        for number, metric in enumerate(one["metrics"]):
            title = f"{one['title']}, {one['rows']} rows" if number == 0 else ""
            rows.append(
                (
                    text(title),
                    f"`{metric['metric']}`",
                    str(metric["cases"]),
                    *(_figure(metric[f"{w}_spearman"], ".3f") for w in ("median", "worst")),
                    *(_figure(metric[f"{w}_mean_error"], ".1%") for w in ("median", "worst")),
                )
            )
    columns = ("reference", "metric", "cases", "rank, median", "worst", "error, median", "worst")
    return [*parts, table(columns, rows)]


def _figure(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _spaces(data: dict[str, Any]) -> list[str]:
    """The design spaces; of a later one only what no earlier one has."""
    parts: list[str] = []
    seen: list[Any] = []
    for label, space in data["spaces"].items():
        parts.append(f"### Space `{label}`")
        parts.append(
            f"{count_text(space['raw_cardinality'], _UNKNOWN)} raw designs, "
            f"{count_text(space['canonical_cardinality'], _UNKNOWN)} distinct legal ones, "
            f"{len(space['parameters'])} parameters."
        )
        new = [p for p in space["parameters"] if p not in seen]
        known = len(space["parameters"]) - len(new)
        if known:
            parts.append(f"Parameters as in a space above: {known}.")
        columns = {
            "parameter": "`name`",
            "range": "range",
            "acts when": "`when`",
            "what it is": "doc",
        }
        if any(p["group"] for p in new):
            columns["group"] = "group"
        if new:
            ranges = [f"{p['range']} {p['unit']}".strip() for p in new]
            rows = [{**p, "range": shown} for p, shown in zip(new, ranges, strict=True)]
            parts.append(records(columns, rows))
        rules = [rule for rule in space["rules"] if rule not in seen]
        if rules:
            parts.append("Rules:\n\n" + bullets(map(_rule, rules)))
        if space["fixed"]:
            parts.append(f"Held: {_design(space['fixed'])}.")
        seen += [*new, *rules]
    parts.append(f"Baseline design: {_design(data['baseline'])}.")
    named = list(data["named_designs"])
    if named:
        more = f" and {len(named) - _MAX_NAMED} more" if len(named) > _MAX_NAMED else ""
        shown = ", ".join(f"`{name}`" for name in named[:_MAX_NAMED])
        parts.append(f"Named designs: {shown}{more}.")
    return parts


def _choices(data: dict[str, Any]) -> list[str]:
    parts = []
    if data["workloads"]:
        workloads = [{"name": name, "doc": doc} for name, doc in data["workloads"].items()]
        parts.append(records({"workload": "`name`", "what it is": "doc"}, workloads))
        parts.append(f"Default workload: {literal(data['default_workload'])}.")
    parts.append(f"Simulators: {', '.join(f'`{name}`' for name in data['simulators'])}.")
    if len(data["fidelities"]) > 1:
        fidelities = [
            {**one, "value": f"{one['value']:.12g}", "cost": f"{one['cost']:.4g}"}
            for one in data["fidelities"]
        ]
        columns = {"fidelity": "value", "relative cost": "cost", "what it is": "doc"}
        parts.append(records(columns, fidelities))
    if data["arguments"]:
        arguments = [
            {"name": name, "default": default, "doc": data["argument_docs"].get(name, "")}
            for name, default in data["arguments"].items()
        ]
        columns = {"argument": "`name`", "default": "`default`", "what it may be": "doc"}
        parts.append(records(columns, arguments))
    return parts


def _rule(rule: dict[str, Any]) -> str:
    law = shortened(rule["rule"], _LONGEST_RULE)
    return f"**{rule['name']}**: `{law}`" + (f" ({text(rule['doc'])})" if rule["doc"] else "")


def _design(values: dict[str, Any]) -> str:
    return " ".join(f"`{name}={value}`" for name, value in values.items())
