"""``archgym explain``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archgym.cli.interruption import interruptible
from archgym.cli.options import Json, Quiet, ReadFiles
from archgym.cli.output import console, echo, paragraph, print_json, print_table

if TYPE_CHECKING:
    from archgym.analysis.explanation import Explanation

__all__ = ["explain"]


def explain(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run, or a dataset.")],
    budget: Annotated[
        int,
        typer.Option(
            min=0,
            help="Designs to simulate for each problem, beside those that the run has; 0 for none.",
        ),
    ] = 60,
    environment: Annotated[
        str,
        typer.Option(
            help="Environment of the run, if it is not a registered one: module:Class, or the "
            "path of a YAML file.",
            show_default=False,
        ),
    ] = "",
    simulator: Annotated[
        str,
        typer.Option(
            help="Simulator in place of the recorded one, as tabular:PATH.", show_default=False
        ),
    ] = "",
    read_files: ReadFiles = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say why the best design is the best: which limits bind, and what each difference is worth.

    Each difference of the best design to the baseline is put back, and tried alone on the
    baseline, one at a time. Where one alone breaks a rule of the design space, those that the
    rule ties together go together. archgym report shows the result too.
    """
    from archgym.experiment.results.explain import explain_run
    from archgym.experiment.results.explanation_tables import difference_rows, limit_rows, summary

    command = shlex.join(["archgym", "explain", str(folder)])
    with interruptible(lambda: [f"what was simulated is kept: {command} goes on"]):
        found = explain_run(
            folder,
            budget,
            environment=environment,
            simulator=simulator,
            read_files=read_files,
            progress=lambda text: None if quiet or json else echo(text, err=True),
        )
    if json:
        print_json([one.to_json() for one in found])
        return
    for one in found:
        _show(one, limit_rows(one), difference_rows(one), summary(one))


def _show(
    one: Explanation,
    limits: tuple[list[str], list[list[str]]],
    differences: tuple[list[str], list[list[str]]],
    lines: list[str],
) -> None:
    console().print()
    paragraph(" on ".join(filter(None, [one.environment, one.workload])), "bold")
    for text in lines[:1]:
        paragraph(text)
    if limits[1]:
        console().print()
        print_table(*limits)
    if differences[1]:
        console().print()
        print_table(*differences)
    for text in lines[1:]:
        paragraph(text)
