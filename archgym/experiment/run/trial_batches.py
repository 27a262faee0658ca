"""Divides trials into batches, which one process runs one trial after the other, and into shards.

Ray Tune schedules batches, not trials: a search on a table takes milliseconds, and Tune's own work
for one of its trials takes as long as several such searches.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from archgym.experiment.spec.expand import Trial

__all__ = ["TrialBatch", "environment_key", "make_batches", "shard_of"]

_BATCHES_PER_WORKER = 12
"""The last batches end at different times: at most a twelfth of a worker's time is lost."""
_MAX_EVALUATIONS = 20_000
"""Sum of the budgets in a batch: it is shown and scheduled in steps of about a minute."""


@dataclass(frozen=True)
class TrialBatch:
    """Trials that one process runs one after the other.

    Attributes:
        name: unique in a run, usable as a file name.
        trials: in the order in which they run.
    """

    name: str
    trials: tuple[Trial, ...]


def make_batches(trials: Sequence[Trial], workers: int) -> list[TrialBatch]:
    """Divides trials into batches; each trial is in one of them.

    All trials of a batch have the same environment, which is made once. The trials of an
    environment are dealt out in turn: its batches hold the same mix of agents and take about the
    same time, whatever an agent costs.

    Args:
        trials: all trials to run.
        workers: processes that will run batches at the same time.

    >>> trial = Trial("a", "a", "a", "DRAM-v0", "ga", "ga", 0, budget=100)
    >>> [len(batch.trials) for batch in make_batches([trial] * 100, 2)]
    [5, 5, 5, 5, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4]
    """
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(environment_key(trial), []).append(trial)
    total = sum(trial.weight for trial in trials)
    size = min(_MAX_EVALUATIONS, total / (_BATCHES_PER_WORKER * max(1, workers)))
    batches: list[tuple[Trial, ...]] = []
    for group in groups.values():
        wanted = math.ceil(sum(trial.weight for trial in group) / max(1.0, size))
        number = max(1, min(len(group), wanted))
        batches += [tuple(group[start::number]) for start in range(number)]
    return [TrialBatch(f"{number:05d}", batch) for number, batch in enumerate(batches)]


def environment_key(trial: Trial) -> str:
    """A text that is the same for trials that can run in the same environment."""
    return json.dumps([trial.dataset, trial.environment, trial.arguments], sort_keys=True)


def shard_of(trials: Sequence[Trial], number: int, of: int) -> list[Trial]:
    """Every ``of``-th trial, beginning with the ``number``-th, counted from 1.

    >>> shard_of(["a", "b", "c", "d", "e"], 2, 3)
    ['b', 'e']
    """
    return list(trials[number - 1 :: of])
