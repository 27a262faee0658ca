"""``archgym dataset``: files for other tools, and results from them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from archgym.cli.dataset.arguments import Source
from archgym.cli.options import Agents, Json, Where, Workloads, selected
from archgym.cli.output import echo, line, print_json

__all__ = ["commands"]

commands = typer.Typer()
_UPLOAD = "look at README.md, then upload it: hf upload NAME {0} --repo-type dataset"


@commands.command("export")
def export(
    folder: Source,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file, or folder, to write.")],
    form: Annotated[
        str,
        typer.Option(
            "--format",
            help="parquet, csv, minari (a folder), optuna (.db or .log), t4 (.json), card (.md), "
            "hf (a folder for the Hugging Face hub, also of a run with several datasets); by "
            "default from the file's ending.",
        ),
    ] = "",
    where: Where = None,
    agent: Agents = None,
    workload: Workloads = None,
    licence: Annotated[
        str,
        typer.Option("--license", "--licence", help="card, hf: licence of the data, as cc-by-4.0."),
    ] = "",
    title: Annotated[str, typer.Option(help="card, hf: heading.")] = "",
    origin: Annotated[
        str, typer.Option("--source", help="card, hf: where the data come from.")
    ] = "",
    episodes: Annotated[
        str,
        typer.Option(
            help="minari: recorded (as the environment ended them), trial, or a number of designs."
        ),
    ] = "",
    action: Annotated[
        str, typer.Option(help="minari: multi_discrete, box or discrete (one number a design).")
    ] = "",
    levels: Annotated[
        int, typer.Option(help="minari: values at which discrete actions see real parameters.")
    ] = 0,
    name: Annotated[str, typer.Option(help="minari: group of the datasets.")] = "",
    study: Annotated[str, typer.Option(help="optuna: name before that of each problem.")] = "",
    formulas: Annotated[
        bool,
        typer.Option(
            "--formulas",
            help="csv: leave texts such as '=1+1' as they are; a spreadsheet calculates them.",
        ),
    ] = False,
) -> None:
    """Export evaluations, with agent, seed and workload, to files of other tools."""
    from archgym.data import Selection, find_datasets
    from archgym.export.files import export as write
    from archgym.export.files import form_of
    from archgym.export.huggingface import export_all

    given = {"licence": licence, "title": title, "source": origin}
    given |= {"episodes": episodes, "action": action, "name": name, "study": study}
    options: dict[str, Any] = {key: value for key, value in given.items() if value}
    options |= {"formulas": True} if formulas else {}
    options |= {"levels": levels} if levels else {}
    form = form_of(file, form)
    if form == "hf" and len(datasets := find_datasets(folder)) > 1:
        parts = {
            one.directory.name: Selection(one).where(
                where or (), agents=agent or (), workloads=workload or ()
            )
            for one in datasets
        }
        rows = export_all(parts, file, **options)
        echo(f"{rows:,} evaluations of {len(parts)} datasets written to {file}")
        echo(_UPLOAD.format(file))
        return
    chosen = selected(folder, where, agent, workload)
    rows = write(chosen, file, form, **options)
    if form == "card":
        echo(f"a card of {rows:,} evaluations written to {file}")
        return
    echo(f"{rows:,} evaluations written to {file}")
    if form == "hf":
        echo(_UPLOAD.format(file))
    if left := len(chosen) - rows:
        echo(f"{left:,} that came from memory or of a lower fidelity are not among them")
    if form == "optuna":
        url = file if file.suffix == ".log" else f"sqlite:///{file}"
        echo(f"look at it, with the package optuna-dashboard: optuna-dashboard {url}")
    if form == "minari":
        for path in sorted(file.glob("*/*/data/metadata.json")):
            name = str(path.parent.parent.relative_to(file))
            echo(f"MINARI_DATASETS_PATH={file}: minari.load_dataset({name!r})")


@commands.command("import")
def import_(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A cache file of Kernel Tuner, or T4 results."),
    ],
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="The dataset: a new one, or one of this file.")
    ],
    agent: Annotated[
        str, typer.Option(help="Name of who tuned; by default after the form of the file.")
    ] = "",
    json: Json = False,
) -> None:
    """Record what an autotuner measured as a trial of a dataset."""
    from archgym.tuning import import_tuning

    rows = import_tuning(file, out, agent=agent)
    if json:
        print_json({"dataset": str(out), "rows": rows})
    else:
        line(f"{out}: {rows:,} evaluations of {file}")
