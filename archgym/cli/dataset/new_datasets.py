"""``archgym dataset``: new datasets of the rows of others."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archgym.cli.dataset.arguments import Source, Target
from archgym.cli.options import Agents, Json, Seed, Where, Workloads, pairs, selected
from archgym.cli.output import echo, print_json
from archgym.errors import DatasetError, InvalidValueError

if TYPE_CHECKING:
    from archgym.data import Selection

__all__ = ["commands"]

commands = typer.Typer()


@commands.command("merge")
def merge(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR DIR... OUT", help="Datasets, then the new folder.")
    ],
    json: Json = False,
) -> None:
    """Merge datasets into one; if they cannot be merged, every difference is named."""
    from archgym.data import find_dataset
    from archgym.data.merging import merge as write

    if len(folders) < 3:
        raise InvalidValueError("merge takes two datasets or more, and the folder of the new one")
    *sources, out = folders
    merged = write([find_dataset(source) for source in sources], out)
    if json:
        notes = [vars(note) for note in merged.notes]
        print_json({**vars(merged), "notes": notes})
        return
    for note in merged.notes:
        echo(f"note: they differ in {note}")
    for source, old, new in merged.renamed:
        echo(f"renamed: trial {old} of {source} is now {new}")
    twice = f", {merged.repeated:,} that were there twice left out" if merged.repeated else ""
    echo(f"{merged.evaluations:,} evaluations of {merged.trials:,} trials in {out}{twice}")


@commands.command("filter")
def filter_rows(
    folder: Source,
    out: Target,
    where: Where = None,
    agent: Agents = None,
    workload: Workloads = None,
    distinct: Annotated[
        bool, typer.Option("--distinct", help="Only the first row of a design on a workload.")
    ] = False,
) -> None:
    """Write the rows that meet conditions as a new dataset."""
    if not (where or agent or workload or distinct):
        raise InvalidValueError("say which rows: --where, --agent, --workload or --distinct")
    chosen = selected(folder, where, agent, workload)
    _write(chosen.distinct() if distinct else chosen, out, selected(folder))


@commands.command("sample")
def sample(
    folder: Source,
    out: Target,
    rows: Annotated[int | None, typer.Option(min=1, help="How many rows.")] = None,
    designs: Annotated[
        int | None, typer.Option(min=1, help="How many distinct designs, each with all its rows.")
    ] = None,
    seed: Seed = 0,
    where: Where = None,
    agent: Agents = None,
    workload: Workloads = None,
) -> None:
    """Write rows, or designs, drawn at random as a new dataset."""
    if (rows is None) == (designs is None):
        raise InvalidValueError("say how many: --rows N or --designs N")
    chosen = selected(folder, where, agent, workload)
    drawn = (
        chosen.sample(rows, seed) if rows is not None else chosen.sample_designs(designs or 0, seed)
    )
    _write(drawn, out, chosen)


@commands.command("split")
def split(
    folder: Source,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder of the new datasets.")],
    by: Annotated[str, typer.Option(help="design, workload, agent or time.")] = "design",
    shares: Annotated[
        str, typer.Option(help="Share of each part, as train=0.8,test=0.2.")
    ] = "train=0.8,test=0.2",
    hold_out: Annotated[
        list[str] | None,
        typer.Option("--hold-out", help="Workload or agent for the second part; repeatable."),
    ] = None,
    seed: Seed = 0,
    where: Where = None,
    agent: Agents = None,
    workload: Workloads = None,
) -> None:
    """Split into datasets with no design in two of them; never by row."""
    from archgym.data.files import new_folder

    parts = {}
    for name, text in pairs(shares.split(","), "--shares ").items():
        try:
            parts[name.strip()] = float(text)
        except ValueError:
            raise InvalidValueError(f"--shares: {text!r} is not a number") from None
        if not name.strip().isidentifier():
            raise InvalidValueError(f"--shares: {name!r} cannot be the name of a folder")
    for name in parts:
        if (out / name).exists():
            raise DatasetError(f"{out / name} exists already")
    chosen = selected(folder, where, agent, workload)
    made = chosen.split(by, parts, seed=seed, hold_out=hold_out or ())
    with contextlib.nullcontext(out) if out.exists() else new_folder(out) as place:
        rows = {name: part.write(place / name) for name, part in made.parts.items()}
    for name, count in rows.items():
        lost = made.dropped[name]
        why = f", {lost:,} rows left out whose designs are in an earlier part" if lost else ""
        echo(f"{count:,} evaluations in {out / name}{why}")


def _write(selection: Selection, out: Path, source: Selection) -> None:
    rows = selection.write(out)
    echo(f"{rows:,} of {len(source):,} evaluations written to {out}")
