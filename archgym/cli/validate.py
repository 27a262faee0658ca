"""``archgym validate``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import archgym
from archgym.cli.output import console, print_json, table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from archgym.environment.environment import Environment
    from archgym.problem.reference import Reference, Skipped
    from archgym.validation.agreement import Agreement, Summary
    from archgym.validation.validate import Validation

__all__ = ["add_to", "validate"]

_COLUMNS = {
    "spearman": ("Spearman", ".4f"),
    "kendall": ("Kendall", ".4f"),
    "mean_error": ("error", ".2%"),
    "max_error": ("largest", ".2%"),
    "bias": ("bias", ".2%"),
    "top_overlap": ("top 5%", ".0%"),
    "regret": ("regret", ".2%"),
}
"""Heading and form of each statistic."""
_WIDE = 120
"""Characters that all statistics need."""
_SHORT = ("spearman", "mean_error", "max_error", "regret")


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("validate")(validate)


def validate(
    environment: Annotated[
        str, typer.Argument(metavar="ENV", help="A registered name, or module:Class.")
    ],
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
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="All statistics, every column, the worst rows.")
    ] = False,
) -> None:
    """Compare an environment's own simulator with reference figures or another simulator.

    Prints for each metric and workload: spread (largest by smallest figure, less 1), Spearman
    (rank correlation), error and largest (mean and maximum of the absolute relative errors) and
    regret (what the best design by our figures loses by the reference's).
    """
    from archgym.experiment.spec.checks import make_environment
    from archgym.experiment.spec.load import with_settings
    from archgym.validation.validate import validate as compare

    _check_options(reference, traces, memory, simulator, workloads)

    def make(**arguments: Any) -> Environment:
        return make_environment(environment, with_settings(arguments, settings or ()))

    if simulator is None:
        references = _tables(environment, reference, traces, memory)
    else:
        references = [_live(make, simulator, workloads, memory, designs, seed)]
    # What has no row at all is an error only if nothing else is left.
    chosen = [one for one in references if one.rows] or references
    found = [compare(one, make, min_spread=spread) for one in chosen]
    if json:
        head = {"archgym": archgym.__version__, "environment": environment, "seed": seed}
        print_json({**head, "set": settings or [], "references": [v.to_json() for v in found]})
        return
    out = console()
    _line(out, f"archgym {archgym.__version__}: {environment}, seed {seed}")
    for one in references:
        if not one.rows:
            _draw_skipped(out, f"{one.title}, skipped", one.skipped)
    for validation in found:
        _draw(out, validation, columns=verbose or reference is not None, verbose=verbose)


def _check_options(
    reference: Path | None,
    traces: Path | None,
    memory: str | None,
    simulator: str | None,
    workloads: list[str] | None,
) -> None:
    from archgym.errors import InvalidValueError

    if reference is not None and simulator is not None:
        raise InvalidValueError("--reference and --simulator exclude each other")
    if traces is not None and reference is None:
        raise InvalidValueError("--traces goes with --reference")
    if memory is not None and reference is None and simulator is None:
        raise InvalidValueError("--memory goes with --reference or --simulator")
    if workloads and simulator is None:
        raise InvalidValueError("--workload goes with --simulator")


def _tables(
    environment: str, reference: Path | None, traces: Path | None, memory: str | None
) -> list[Reference]:
    from archgym.registry import environment_class

    cls = environment_class(environment)
    return cls.references(reference, workloads=traces, hardware=memory)


def _live(
    make: Callable[..., Environment],
    simulator: str,
    workloads: list[str] | None,
    memory: str | None,
    designs: int,
    seed: int,
) -> Reference:
    from archgym.experiment.spec.load import parse_value
    from archgym.validation.validate import live_reference

    return live_reference(
        make,
        simulator,
        workloads=[parse_value(text, "--workload") for text in workloads or ()],
        arguments={} if memory is None else {"memory": memory},
        n=designs,
        seed=seed,
    )


def _draw(out: Console, validation: Validation, *, columns: bool, verbose: bool) -> None:
    reference = validation.reference
    out.print()
    _line(out, f"{reference.title}: {len(reference.rows)} rows ({reference.source})", "bold")
    if verbose:
        for topic, text in reference.provenance.items():
            _line(out, f"  {topic}: {text}")
    if columns:
        _draw_columns(out, reference)
    _draw_skipped(out, "skipped", reference.skipped)
    _draw_skipped(out, "not evaluated", validation.failed)
    if not verbose:
        out.print(_statistics(validation, _SHORT))
        return
    out.width = max(out.width, _WIDE)
    out.print(_statistics(validation, tuple(_COLUMNS)))
    _draw_worst(out, validation)


def _draw_columns(out: Console, reference: Reference) -> None:
    for use in ("case", "parameter", "setting", "metric", "check", "ignored"):
        by_note: dict[str, list[str]] = {}
        for column in reference.columns:
            if column.use == use:
                name = f" -> {column.name}" if column.name else ""
                by_note.setdefault(column.note, []).append(f"{column.column}{name}")
        for note, names in by_note.items():
            _line(out, f"  {use}: {', '.join(names)}" + (f" ({note})" if note else ""))


def _draw_skipped(out: Console, title: str, rows: Iterable[Skipped]) -> None:
    lines: dict[str, list[int]] = {}
    for line, reason in rows:
        lines.setdefault(reason, []).append(line)
    for reason, where in lines.items():
        numbers = [str(line) for line in where if line]
        shown = ", ".join(numbers[:8]) + (", ..." if len(numbers) > 8 else "")
        at = f" (line{'s' if len(numbers) > 1 else ''} {shown})" if numbers else ""
        _line(out, f"  {title}: {len(where)} row{'s' if len(where) > 1 else ''}{at}: {reason}")


def _statistics(validation: Validation, names: tuple[str, ...]) -> Table:
    headings = [f">{_COLUMNS[name][0]}" for name in names]
    made = table("metric, case", ">spread", *headings)
    for summary in validation.summaries:
        made.add_row(summary.metric, style="bold")
        for one in validation.agreements:
            if one.metric == summary.metric:
                counted = one.spread > validation.min_spread
                _add_case(made, one, names, "" if counted else "dim")
        _add_summary(made, summary, names)
    return made


def _add_case(made: Table, one: Agreement, names: tuple[str, ...], style: str) -> None:
    values = [_text(getattr(one, name), _COLUMNS[name][1]) for name in names]
    spread = _text(one.spread, ".1%") if one.spread < 10 else ">999%"
    made.add_row(f"  {one.case}", spread, *values, style=style)


def _add_summary(made: Table, summary: Summary, names: tuple[str, ...]) -> None:
    left_out = f", {summary.steady} steady" if summary.steady else ""
    rows = {f"median of {summary.varying}{left_out}": summary.median, "worst": summary.worst}
    for title, values in rows.items():
        cells = [_text(values[name], _COLUMNS[name][1]) for name in names]
        last = title == "worst"
        made.add_row(f"  {title}", "", *cells, style="italic", end_section=last)


def _draw_worst(out: Console, validation: Validation) -> None:
    for metric in validation.metrics:
        _line(out, f"worst rows in {metric}", "bold")
        for _, row, reference, ours, error in validation.worst_rows(metric):
            where = f"line {row.line}, " if row.line else ""
            design = " ".join(f"{name}={value}" for name, value in row.design.items())
            _line(
                out,
                f"  {error:+.2%} ({ours:.6g} for {reference:.6g}) {where}{row.case}: {design}",
            )


def _text(value: float, form: str) -> str:
    if math.isnan(value):
        return "-"
    text = format(value, form)
    return text.removeprefix("-") if float(text.removesuffix("%")) == 0 else text


def _line(out: Console, text: str, style: str = "") -> None:
    out.print(text, style=style or None, soft_wrap=True, markup=False)
