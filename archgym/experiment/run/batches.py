"""Packs: trials that one process runs one after the other, so that none pays for a start.

Ray Tune schedules packs, not trials: a search on a table takes milliseconds, and what Tune does
for each of its own trials takes as long as several of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from archgym.experiment.spec.expand import Trial

__all__ = ["Pack", "make_packs", "shard_of"]

_PACKS_PER_WORKER = 12
"""The last packs end at different times: a twelfth of a worker's time is at stake, at most."""
_MOST_EVALUATIONS = 20_000
"""Budgets in a pack, summed: what is shown and scheduled stays in steps of about a minute."""


@dataclass(frozen=True)
class Pack:
    """Trials of one environment with one set of arguments, which it is made once for.

    Attributes:
        name: unique in a run, usable as a file name.
        trials: in the order in which they run.
    """

    name: str
    trials: tuple[Trial, ...]


def make_packs(trials: Sequence[Trial], workers: int) -> list[Pack]:
    """Deals trials into packs; every trial is in one of them.

    The trials of an environment are dealt out in turn, so that its packs hold the same mix of
    agents and take about the same time, whatever an agent costs.

    Args:
        trials: what is to be run.
        workers: processes that will run packs at the same time.

    >>> trial = Trial("a", "a", "a", "DRAM-v0", "ga", "ga", 0, budget=100)
    >>> [len(pack.trials) for pack in make_packs([trial] * 100, 2)]
    [5, 5, 5, 5, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4]
    """
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        key = json.dumps([trial.dataset, trial.environment, trial.arguments], sort_keys=True)
        groups.setdefault(key, []).append(trial)
    total = sum(trial.budget for trial in trials)
    size = min(_MOST_EVALUATIONS, total / (_PACKS_PER_WORKER * max(1, workers)))
    packs: list[tuple[Trial, ...]] = []
    for group in groups.values():
        wanted = math.ceil(sum(trial.budget for trial in group) / max(1.0, size))
        number = max(1, min(len(group), wanted))
        packs += [tuple(group[start::number]) for start in range(number)]
    return [Pack(f"{number:05d}", pack) for number, pack in enumerate(packs)]


def shard_of(trials: Sequence[Trial], number: int, of: int) -> list[Trial]:
    """Every ``of``-th trial, from the ``number``-th on, counted from 1: one of ``of`` shards.

    >>> shard_of(["a", "b", "c", "d", "e"], 2, 3)
    ['b', 'e']
    """
    return list(trials[number - 1 :: of])
