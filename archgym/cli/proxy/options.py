"""Options that several commands of ``archgym proxy`` take, and what is made of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from archgym.proxy import TrainingData

__all__ = [
    "Agents",
    "File",
    "Form",
    "Json",
    "Models",
    "Options",
    "Per",
    "Quiet",
    "Rows",
    "Seed",
    "Source",
    "Targets",
    "Where",
    "Workloads",
    "clocked",
    "percent",
    "settings_of",
    "training_data",
]

Source = Annotated[Path, typer.Argument(metavar="DATASET", help="A dataset, or a run's folder.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="A proxy, as train wrote it.")]
Targets = Annotated[
    list[str] | None,
    typer.Option("--target", help="A metric to learn; repeatable. All by default."),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        help="forest, boosting, gp, mlp, blend or residual; repeatable. They compete; by default "
        "all but residual, which takes minutes.",
    ),
]
Per = Annotated[
    str,
    typer.Option(help="A model for each 'workload', or one for 'all' with their features."),
]
Form = Annotated[
    str, typer.Option(help="Learn metrics linear, log, or relative to the baseline design.")
]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="CONDITION", help="Only rows that meet it; repeatable."),
]
Workloads = Annotated[
    list[str] | None, typer.Option("--workload", help="Only rows of this workload; repeatable.")
]
Agents = Annotated[
    list[str] | None, typer.Option("--agent", help="Only rows of this agent; repeatable.")
]
Rows = Annotated[int | None, typer.Option(min=1, help="Train on so many rows, drawn at random.")]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="KEY=VALUE", help="Setting of a family, as in epochs=100."),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def training_data(
    folder: Path,
    target: list[str] | None,
    where: list[str] | None,
    workload: list[str] | None,
    agent: list[str] | None,
) -> TrainingData:
    """Rows of a dataset that options select, with the metrics to learn."""
    from archgym.data import load
    from archgym.proxy import read_training_data

    selection = load(folder, where or (), agents=agent or (), workloads=workload or ())
    return read_training_data(selection, target)


def settings_of(texts: list[str] | None, option: str = "--option") -> Mapping[str, Any]:
    """Values by name from texts such as ``epochs=100``; ``option`` is named where one is wrong."""
    from archgym.cli.evaluate import pairs
    from archgym.experiment.spec.load import parse_value

    given = pairs(texts, f"{option} ")
    return {name: parse_value(text, f"{option} {name}") for name, text in given}


def clocked() -> Callable[[str], None]:
    """What writes lines to stderr, each with the minutes and seconds since now."""
    began = time.perf_counter()

    def write(text: str) -> None:
        minutes, seconds = divmod(int(time.perf_counter() - began), 60)
        typer.echo(f"{minutes}:{seconds:02d} {text}", err=True)

    return write


def percent(value: float) -> str:
    """A share as people read it; ``-`` for one that is not known."""
    return "-" if math.isnan(value) else f"{value:.2%}"
