"""``archgym validate``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import archgym
from archgym.cli.options import EnvironmentName, Json, parsed
from archgym.cli.output import console, line, print_json, table
from archgym.environment.environment import Environment
from archgym.errors import InvalidValueError
from archgym.registry import environment_class

if TYPE_CHECKING:
    from rich.table import Table

    from archgym.problem.reference import Reference, Skipped
    from archgym.validation.validate import Validation

__all__ = ["validate"]

_COLUMNS = {
    "spearman": ("Spearman", ".4f"),
    "kendall": ("Kendall", ".4f"),
    "median_error": ("median", ".2%"),
    "mean_error": ("mean", ".2%"),
    "max_error": ("largest", ".2%"),
    "bias": ("bias", ".2%"),
    "top_overlap": ("top 5%", ".0%"),
    "regret": ("regret", ".2%"),
    "raw_regret": ("raw", ".2%"),
}
"""Heading and form of each statistic."""
_WIDE = 120
"""Characters that all statistics need."""
_SHORT = ("spearman", "median_error", "mean_error", "max_error", "regret", "raw_regret")


def validate(
    environment: EnvironmentName,
    reference: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Table of figures; those that ship if left out."),
    ] = None,
    traces: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the workloads in FILE.")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(metavar="FILE|NAME", help="Hardware of the rows, by file or name."),
    ] = None,
    simulator: Annotated[
        str | None, typer.Option(help="Compare with this simulator, run beside ours.")
    ] = None,
    workloads: Annotated[
        list[str] | None,
        typer.Option(
            "--workload", help="With --simulator: a name, a path, or a YAML mapping; repeatable."
        ),
    ] = None,
    designs: Annotated[
        int, typer.Option(metavar="N", min=2, help="With --simulator: random designs.")
    ] = 100,
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="Seed of the designs.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change an argument of the environment, as in controller.timing_rules=jedec; "
            "repeatable.",
        ),
    ] = None,
    spread: Annotated[
        float,
        typer.Option(min=0.0, help="Rank by a metric where it varies by more than this share."),
    ] = 0.02,
    json: Json = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="All statistics, every column, the worst rows.")
    ] = False,
) -> None:
    """Compare an environment's own simulator with reference figures or another simulator.

    Prints for each metric and workload: spread (largest by smallest figure, less 1), Spearman
    (rank correlation), median, mean and largest of the absolute relative errors, regret (what the
    best design by our figures loses by the reference's; designs within 0.1 % tie, and the best of
    them counts) and raw (the regret without ties).
    """
    from archgym.experiment.spec.checks import make_environment
    from archgym.experiment.spec.load import with_settings
    from archgym.validation.validate import live_reference
    from archgym.validation.validate import validate as compare

    refused = {
        "--reference and --simulator exclude each other": reference and simulator is not None,
        "--traces goes with --reference": traces and reference is None,
        "--memory goes with --reference or --simulator": (
            memory is not None and reference is None and simulator is None
        ),
        "--workload goes with --simulator": workloads and simulator is None,
    }
    for message, wrong in refused.items():
        if wrong:
            raise InvalidValueError(message)

    def make(**arguments: Any) -> Environment:
        return make_environment(environment, with_settings(arguments, settings or ()))

    if simulator is None:
        cls = environment_class(environment)
        references = cls.references(reference, workloads=traces, hardware=memory)
    else:
        live = live_reference(
            make,
            simulator,
            workloads=[parsed(text, "--workload") for text in workloads or ()],
            arguments={} if memory is None else {"memory": memory},
            n=designs,
            seed=seed,
        )
        references = [live]
    # What has no row at all is an error only if nothing else is left.
    chosen = [one for one in references if one.rows] or references
    found = [compare(one, make, min_spread=spread) for one in chosen]
    if json:
        head = {"archgym": archgym.__version__, "environment": environment, "seed": seed}
        print_json({**head, "set": settings or [], "references": [v.to_json() for v in found]})
        return
    line(f"archgym {archgym.__version__}: {environment}, seed {seed}")
    for one in references:
        if not one.rows:
            _show_skipped(f"{one.title}, skipped", one.skipped)
    for validation in found:
        _show(validation, columns=verbose or reference is not None, verbose=verbose)


def _show(validation: Validation, *, columns: bool, verbose: bool) -> None:
    out, reference = console(), validation.reference
    out.print()
    line(f"{reference.title}: {len(reference.rows)} rows ({reference.source})", style="bold")
    if verbose:
        for topic, text in reference.provenance.items():
            line(f"  {topic}: {text}")
    if columns:
        _show_columns(reference)
    _show_skipped("skipped", reference.skipped)
    _show_skipped("not evaluated", validation.failed)
    if not verbose:
        out.print(_statistics(validation, _SHORT))
        return
    out.width = max(out.width, _WIDE)
    out.print(_statistics(validation, tuple(_COLUMNS)))
    _show_worst(validation)


def _show_columns(reference: Reference) -> None:
    for use in ("case", "parameter", "setting", "metric", "check", "ignored"):
        by_note: dict[str, list[str]] = {}
        for column in reference.columns:
            if column.use == use:
                name = f" -> {column.name}" if column.name else ""
                by_note.setdefault(column.note, []).append(f"{column.column}{name}")
        for note, names in by_note.items():
            line(f"  {use}: {', '.join(names)}" + (f" ({note})" if note else ""))


def _show_skipped(title: str, rows: Iterable[Skipped]) -> None:
    by_reason: dict[str, list[int]] = {}
    for number, reason in rows:
        by_reason.setdefault(reason, []).append(number)
    for reason, where in by_reason.items():
        numbers = [str(number) for number in where if number]
        shown = ", ".join(numbers[:8]) + (", ..." if len(numbers) > 8 else "")
        at = f" (line{'s' if len(numbers) > 1 else ''} {shown})" if numbers else ""
        line(f"  {title}: {len(where)} row{'s' if len(where) > 1 else ''}{at}: {reason}")


def _statistics(validation: Validation, names: tuple[str, ...]) -> Table:
    """A table of the statistics: for each metric its cases, their median and the worst."""
    made = table("metric, case", ">spread", *(f">{_COLUMNS[name][0]}" for name in names))
    for summary in validation.summaries:
        made.add_row(summary.metric, style="bold")
        for one in (a for a in validation.agreements if a.metric == summary.metric):
            values = [_text(getattr(one, name), _COLUMNS[name][1]) for name in names]
            spread = _text(one.spread, ".1%") if one.spread < 10 else ">999%"
            style = "" if one.spread > validation.min_spread else "dim"
            made.add_row(f"  {one.case}", spread, *values, style=style)
        left_out = f", {summary.steady} steady" if summary.steady else ""
        title = f"median of {summary.varying}{left_out}"
        for name, found in ((title, summary.median), ("worst", summary.worst)):
            cells = [_text(found[one], _COLUMNS[one][1]) for one in names]
            last = name == "worst"
            made.add_row(f"  {name}", "", *cells, style="italic", end_section=last)
    return made


def _show_worst(validation: Validation) -> None:
    for metric in validation.metrics:
        line(f"worst rows in {metric}", style="bold")
        for _, row, reference, ours, error in validation.worst_rows(metric):
            where = f"line {row.line}, " if row.line else ""
            design = " ".join(f"{name}={value}" for name, value in row.design.items())
            line(f"  {error:+.2%} ({ours:.6g} for {reference:.6g}) {where}{row.case}: {design}")


def _text(value: float, form: str) -> str:
    if math.isnan(value):
        return "-"
    text = format(value, form)
    return text.removeprefix("-") if float(text.removesuffix("%")) == 0 else text
