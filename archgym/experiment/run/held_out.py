"""Evaluates what a search has found on the workload that it left out."""

from __future__ import annotations

import contextlib
from typing import Any

from archgym.analysis.held_out import HeldOut
from archgym.environment.environment import Environment
from archgym.errors import ArchgymError
from archgym.evaluation.outcome import Outcome
from archgym.experiment.run.environments import Environments
from archgym.experiment.spec.expand import Trial
from archgym.reading.texts import text_of

__all__ = ["evaluated_held_out"]


def evaluated_held_out(
    trial: Trial, environment: Environment, best: Outcome | None, environments: Environments
) -> HeldOut | None:
    """The best design of a trial on the workload that was held out; it costs no budget.

    Whatever goes wrong there is told in the result, and does not fail the trial.

    Args:
        trial: that has ended.
        environment: in which it searched.
        best: what it found.
        environments: of this process.

    Returns:
        ``None`` if no workload is held out, or nothing was found.
    """
    workload: Any = trial.held_out
    if workload is None:
        workload = environment.held_out_workload()
    if workload is None or best is None:
        return None
    name = str(workload)
    try:
        with contextlib.closing(environments.held_out(trial, workload)) as other:
            outcome = other.evaluate(best.design)
            names = (metric.name for metric in other.metrics)
            baseline = dict(zip(names, other.simulate_baseline().tolist(), strict=True))
    except (ArchgymError, TimeoutError, OSError) as error:
        return HeldOut(name, best.design, reason=text_of(error).partition("\n")[0])
    return HeldOut(
        name,
        best.design,
        outcome.metrics,
        {metric: value if value == value else None for metric, value in baseline.items()},
        outcome.feasible,
        outcome.reason,
    )
