"""Options that several commands of ``archgym proxy`` take, and what is made of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from archgym.proxy import TrainingData

__all__ = [
    "File",
    "Form",
    "Models",
    "Options",
    "Per",
    "Rows",
    "Source",
    "Targets",
    "percent",
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
    typer.Option(
        help="A model for each 'workload', one for 'all', or one that knows 'workload-features' "
        "and predicts workloads that it has not seen."
    ),
]
Form = Annotated[
    str, typer.Option(help="Learn metrics linear, log, or relative to the baseline design.")
]
Rows = Annotated[int | None, typer.Option(min=1, help="Train on so many rows, drawn at random.")]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="KEY=VALUE", help="Setting of a family, as in epochs=100."),
]


def training_data(
    folder: Path,
    target: list[str] | None,
    where: list[str] | None,
    workload: list[str] | None,
    agent: list[str] | None,
    *,
    described: bool = False,
    read_files: bool = False,
) -> TrainingData:
    """Rows of a dataset that options select, with the metrics to learn.

    Args:
        folder: of the dataset.
        target: metrics.
        where: conditions.
        workload: names.
        agent: names.
        described: whether features of the workloads are needed.
        read_files: whether workloads are read from files that the dataset names.
    """
    from archgym.cli.options import selected
    from archgym.proxy import read_training_data

    rows = selected(folder, where, agent, workload)
    if not described:
        return read_training_data(rows, target)
    from archgym.proxy.training.recorded_features import recorded_features

    features = recorded_features(rows, read_files=read_files)
    return read_training_data(rows, target, features=features)


def percent(value: float) -> str:
    """A share as people read it; ``-`` for one that is not known."""
    return "-" if math.isnan(value) else f"{value:.2%}"
