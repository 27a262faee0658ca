"""``archgym dataset``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archgym.cli.output import console, print_json

if TYPE_CHECKING:
    from archgym.data import Dataset

__all__ = ["add_to"]

commands = typer.Typer(no_args_is_help=True, help="Look into and export trajectory datasets.")


def add_to(app: typer.Typer) -> None:
    """Adds the commands."""
    app.add_typer(commands, name="dataset")


@commands.command("info")
def info(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A dataset, or a run's folder.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what a dataset holds."""
    from archgym.experiment.summary import open_datasets

    found = [dataset.info() for dataset in open_datasets(folder)]
    if json:
        print_json(found)
        return
    for data in found:
        _draw(data)


@commands.command("export")
def export(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A dataset, or the folder of a run with one.")
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")],
    form: Annotated[
        str, typer.Option("--format", help="csv or parquet; by default from the file's ending.")
    ] = "",
) -> None:
    """Export all evaluations, with agent, seed and workload, to one file."""
    from archgym.data.export import export as write

    rows = write(_only_dataset(folder), file, form)
    typer.echo(f"{rows} evaluations written to {file}")


def _only_dataset(folder: Path) -> Dataset:
    from archgym.errors import DatasetError
    from archgym.experiment.summary import open_datasets

    found = open_datasets(folder)
    if len(found) > 1:
        names = ", ".join(str(dataset.directory) for dataset in found)
        raise DatasetError(f"{folder} holds several datasets, export one of them: {names}")
    return found[0]


def _draw(data: dict[str, Any]) -> None:
    from rich.text import Text

    from archgym.cli.output import table

    made = table("dataset", data["directory"])
    for name, value in data.items():
        if name == "directory":
            continue
        if isinstance(value, dict):
            text = ", ".join(f"{key} {count}" for key, count in value.items())
        elif isinstance(value, list):
            text = ", ".join(map(str, value))
        else:
            text = f"{value:,}" if isinstance(value, int) else str(value)
        made.add_row(name, Text(text))
    console().print(made)
