"""``archgym report``."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from archgym.cli.options import named, one_of
from archgym.cli.output import echo, line
from archgym.errors import InvalidValueError

__all__ = ["report"]


class _By(StrEnum):
    auto = "auto"
    agent = "agent"
    hyperparameters = "hyperparameters"


def report(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="Folder of a run, or a dataset.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The HTML file; DIR/report.html if left out, or comparison.html here.",
            show_default=False,
        ),
    ] = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--compare", metavar="A B", help="Compare run A with run B instead."),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(help="Folder for figures as files too.", show_default=False),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", help="Formats of the figures, any of pdf, png, svg.")
    ] = "pdf,png,svg",
    tables: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the tables as files too: CSV, and LaTeX with booktabs.",
            show_default=False,
        ),
    ] = None,
    agents: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            "--agents",
            metavar="A,B",
            help="Only these agents; repeatable. Tests are corrected for the pairs among them: "
            "name those that were to be compared before results were seen.",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        _By,
        typer.Option(
            parser=one_of(_By, "value of --by"),
            metavar="|".join(_By),
            help="Put the trials of an agent together, or only those with the same "
            "hyperparameters; auto: the latter up to ten sets.",
        ),
    ] = _By.auto,
) -> None:
    """Make one HTML page of a run, with every chart and table, that works offline."""
    from archgym import report as pages

    if (folder is None) == (compare is None):
        raise InvalidValueError("give one folder DIR, or two with --compare A B")
    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise InvalidValueError(f"--out is {str(out)!r}; the page is a file that ends in .html")
    formats = pages.check_formats(form)
    default = Path("comparison.html") if folder is None else folder / "report.html"
    runs = [folder] if folder is not None else compare or ()
    chosen = named(agents, "--agent")
    study = pages.read_study(runs, by=by.value, compare=compare is not None, agents=chosen)
    trials = sum(len(problem.ids) for problem in study.problems)
    count = f"{trials:,} trial{'s' if trials != 1 else ''}"
    problems = f"{len(study.problems)} problem{'s' if len(study.problems) != 1 else ''}"
    echo(f"{count} on {problems}: drawing ...", err=True)
    written = pages.write_report(study, out or default, shlex.join(["archgym", *sys.argv[1:]]))
    line(f"report:   {written} ({written.stat().st_size / 1e6:.1f} MB)")
    if figures is not None:
        files = pages.write_figures(study, figures, formats)
        line(f"figures:  {len(files)} files in {figures}")
    if tables is not None:
        files = pages.write_tables(study, tables)
        line(f"tables:   {len(files)} files in {tables}")
