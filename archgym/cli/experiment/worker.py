"""``archgym worker``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from archgym.cli.options import Quiet

__all__ = ["worker"]


def worker(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")],
    slots: Annotated[
        int, typer.Option(min=1, max=4096, help="Designs to simulate at the same time.")
    ] = 1,
    max_wait: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="How long to wait for a run that has not begun, or has stopped and may be "
            "resumed.",
        ),
    ] = 1800.0,
    max_idle: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="End after this time without a design, though the run goes on; never if left out.",
            show_default=False,
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Simulate for a run whose experiment has simulation: {executor: workers}.

    Start any number of workers on any machines that see the folder, and end them at any time.
    A worker takes one design after the other until the run ends; its exit code is then 0. What
    a worker was doing when it was ended goes to another one.
    """
    from archgym.experiment.workers.worker import WorkerOptions, work

    say = (lambda text: None) if quiet else (lambda text: typer.echo(f"worker: {text}", err=True))
    options = WorkerOptions(slots=slots, max_wait_s=max_wait, max_idle_s=max_idle, say=say)
    number = work(folder, options)
    if number:
        raise typer.Exit(128 + number)
