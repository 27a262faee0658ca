"""``archgym status``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archgym.cli.options import Json
from archgym.cli.output import line, print_json, print_table

if TYPE_CHECKING:
    from archgym.experiment.results.status import RunStatus

__all__ = ["status"]

_MAX_SHOWN = 40


def status(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")],
    json: Json = False,
) -> None:
    """Show how a run is doing: trials, what is in flight, busy workers, the best, the end.

    The run may be going on, on this or another machine that sees the folder, or be over.
    """
    from archgym.experiment.results.status import read_status

    found = read_status(folder)
    if json:
        print_json(found.to_json())
    else:
        _show(found, folder)


def _show(run: RunStatus, folder: Path) -> None:
    from archgym.experiment.run.busy import clock_text

    total = sum(run.trials.values())
    parts = [f"{run.trials['finished']:,} of {total:,} finished"]
    parts += [f"{n:,} {name}" for name, n in run.trials.items() if n and name != "finished"]
    lines = {
        "run": f"{run.name}, {run.state}",
        "trials": ", ".join(parts),
        "designs": _designs(run),
        "workers": _workers(run, folder),
    }
    for label, text in lines.items():
        if text:
            line(f"{label + ':':<10}{text}")
    for one in run.best:
        infeasible = "" if one.feasible else " (not feasible)"
        known = ", suggested by history" if one.from_history else ""
        values = ", ".join(one.values)
        line(f"{'best:':<10}{one.setting}: {values}{infeasible}, by {one.agent}{known}")
    if run.in_flight:
        rows = [
            [one.worker or "waits for a worker", clock_text(run.at - one.started), trial]
            for trial, one in run.in_flight[:_MAX_SHOWN]
        ]
        print_table(["worker", ">for", "trial"], rows, title="in flight")
        if len(run.in_flight) > _MAX_SHOWN:
            line(f"... and {len(run.in_flight) - _MAX_SHOWN:,} more, with --json")
    elif run.state == "interrupted":
        line(f"          go on with archgym run YAML --out {folder} --resume", style="dim")


def _designs(run: RunStatus) -> str:
    from archgym.experiment.run.busy import clock_text

    share = f" ({run.spent / run.budget:.0%})" if run.budget else ""
    unit = "" if run.unit == "designs" else " hours of simulation"
    spent = f"{run.spent:,.6g} of {run.budget:,.6g}{unit} spent{share}"
    parts = [f"{run.simulations:,} simulated, {spent}"]
    if run.stopped:
        saved = clock_text(run.saved_s)
        parts.append(f"{run.stopped:,} stopped early, which saved about {saved} of simulation")
    if run.state == "running" and run.per_hour is not None:
        rate = f"{run.per_hour:,.0f}" if run.per_hour >= 100 else f"{run.per_hour:.3g}"
        parts.append(f"{rate}{unit} an hour")
    if run.left_s is not None:
        end = time.strftime("%a %H:%M", time.localtime(run.at + run.left_s))
        parts.append(f"about {clock_text(run.left_s)} left, until {end}")
    return ", ".join(parts)


def _workers(run: RunStatus, folder: Path) -> str:
    slots = sum(state.slots for state in run.live)
    now = sum(bool(one.worker) for _, one in run.in_flight)
    parts = []
    if run.live:
        none = f"none is there; start some by archgym worker {folder}"
        parts.append(f"{now:,} of {slots:,} busy now" if slots else none)
    when = "lately" if run.live else "on average"
    if run.busy is not None and run.workers:
        parts.append(f"{run.busy:.1f} of {run.workers:,} {when} ({run.busy / run.workers:.0%})")
    return ", ".join(parts)
