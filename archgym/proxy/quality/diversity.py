"""A study of diversity: do data of several agents make better proxies than as many of one?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from archgym.errors import InvalidValueError
from archgym.proxy.quality.evaluation import evaluate
from archgym.proxy.training.data import TrainingData
from archgym.proxy.training.settings import Settings
from archgym.proxy.training.train import Progress, train

MIXED = "mixed"
"""Name of the source that takes as much from each agent."""


@dataclass(frozen=True)
class Point:
    """Proxies trained on so many rows of one source.

    Attributes:
        source: an agent, or :data:`MIXED`.
        size: rows of the training data.
        metric: that was predicted.
        workload: on which.
        errors: relative RMSE of each repetition, each with other rows.
    """

    source: str
    size: int
    metric: str
    workload: str
    errors: tuple[float, ...]

    @property
    def interval(self) -> tuple[float, float, float]:
        """Tenth, fiftieth and ninetieth percentile of the errors."""
        low, middle, high = np.quantile(self.errors, [0.1, 0.5, 0.9]).tolist()
        return float(low), float(middle), float(high)


def study_diversity(
    agents: Mapping[str, TrainingData],
    test: TrainingData,
    sizes: Sequence[int],
    settings: Settings,
    *,
    repetitions: int = 5,
    progress: Progress | None = None,
) -> list[Point]:
    """Trains on samples of each agent's data and of all agents' data, of equal size.

    Args:
        agents: data of each agent, on the same workloads.
        test: designs drawn at random; those that a proxy was trained on are left out.
        sizes: rows to train on; a source that has fewer is passed over at that size.
        settings: how to train; the seed is that of the first repetition.
        repetitions: samples of each source and size.
        progress: called with what is trained next.

    Raises:
        InvalidValueError: if there are fewer than two agents, or no source is large enough.
    """
    if len(agents) < 2:
        raise InvalidValueError("a study of diversity needs the data of two agents or more")
    found: dict[tuple[str, int, str, str], list[float]] = {}
    for size in sizes:
        for source in [*agents, MIXED]:
            for repetition in range(repetitions):
                seed = settings.seed + repetition
                data = _sample(agents, source, size, seed)
                if data is None:
                    break
                if progress is not None:
                    progress(f"{size:,} designs of {source}, {repetition + 1} of {repetitions}")
                own = replace(settings, seed=seed, folds=2)  # the test data say how good it is
                for one in evaluate(train(data, own), test)[0]:
                    key = (source, size, one.metric, one.workload)
                    found.setdefault(key, []).append(one.scores.relative_rmse)
    if not found:
        raise InvalidValueError(f"no agent has {min(sizes)} distinct designs to train on")
    return [Point(*key, tuple(errors)) for key, errors in found.items()]


def _sample(
    agents: Mapping[str, TrainingData], source: str, size: int, seed: int
) -> TrainingData | None:
    """Rows of one agent, or as many of each; ``None`` if there are not enough."""
    if source != MIXED:
        return agents[source].sample(size, seed) if len(agents[source]) >= size else None
    least, more = divmod(size, len(agents))
    shares = {name: least + (number < more) for number, name in enumerate(agents)}
    if any(len(agents[name]) < share for name, share in shares.items()):
        return None
    return TrainingData.join([agents[name].sample(n, seed) for name, n in shares.items()])
