"""Accuracies for the tasks of NASAIC (DAC 2020) without training: a curve through published points.

**These accuracies are synthetic.** Nobody trained the networks. Per task the paper gives accuracies
of a smallest network, of the best one, and of solutions between; of the networks behind them only
the best one for CIFAR-10. The curve is this project's choice: the log odds of a right answer grow
with the logarithm of the multiply-accumulates, ever more slowly,

    logit(accuracy) = logit(best) - (logit(best) - logit(smallest)) * |1 - x| ** p
    x = log(work / work of the smallest) / log(work of the best / work of the smallest)

and fall symmetrically beyond the best network. The exponent p makes the curve pass through NASAIC's
solution, on the assumption that the work of its networks, relative to the best ones, equals their
relative energy. So networks are ordered by work alone: enough to study how searches trade accuracy
for hardware, useless to compare networks of the same work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.nas.families import Architecture, Task
from archgym.envs.nas.space import smallest_architecture
from archgym.envs.nas.tasks import family_of
from archgym.errors import UnknownNameError

__all__ = ["ANCHORS", "Anchors", "PublishedAccuracy"]


@dataclass(frozen=True)
class Anchors:
    """Published accuracies of a task, percent.

    Attributes:
        smallest: of the smallest network; ``None`` if it is not published: then its log odds are
            as far from the best one's as those of CIFAR-10.
        best: of the most accurate network.
        best_architecture: that network.
        between: of a solution between them.
        between_energy: energy of that solution's networks, as a share of the best ones' energy.
    """

    smallest: float | None
    best: float
    best_architecture: Architecture
    between: float
    between_energy: float


def _residual(stem: int, *stages: tuple[int, int]) -> dict[str, int]:
    found = {"stem_filters": stem}
    for number, (filters, skips) in enumerate(stages, start=1):
        found |= {f"stage{number}_filters": filters, f"stage{number}_skips": skips}
    return found


ANCHORS: Final[Mapping[str, Anchors]] = {
    "cifar10": Anchors(
        78.9, 94.17, _residual(32, (128, 2), (256, 2), (256, 2)), 92.85, 1.43e9 / 3.56e9
    ),
    "stl10": Anchors(
        None,
        76.50,
        _residual(32, (32, 0), (32, 0), (256, 0), (256, 0), (256, 0)),
        75.72,
        2.50e9 / 3.55e9,
    ),
    "nuclei": Anchors(
        64.0,
        83.94,
        {
            "height": 4,
            "level1_filters": 4,
            "level2_filters": 16,
            "level3_filters": 64,
            "level4_filters": 64,
        },
        83.74,
        1.43e9 / 3.56e9,
    ),
}
"""NASAIC, table 1 and section 5: accuracy, and intersection over union for nuclei.

The best networks for STL-10 and nuclei are not published. They are those of our space whose latency
and energy, beside the best network for CIFAR-10 on the published chips of NAS, then ASIC, come
nearest to the published 9.31e5 cycles and 3.55e9 nJ (ours: 9.9e5, 2.9e9) and 9.45e5 cycles and
3.56e9 nJ (ours: 9.3e5, 3.3e9), among those with one depth for all stages and filters that do not
fall from stage to stage."""


class PublishedAccuracy:
    """The curve, as a source of accuracies; see the module.

    >>> from archgym.envs.nas.tasks import TASKS
    >>> best = ANCHORS["cifar10"].best_architecture
    >>> PublishedAccuracy().accuracies(TASKS["cifar10"], [best], 1).round(2).tolist()
    [94.17]
    """

    name = "synthetic"
    synthetic = True
    epochs: tuple[int, ...] = (1,)

    def accuracies(
        self, task: Task, architectures: Sequence[Architecture], epochs: int
    ) -> NDArray[np.float64]:
        """Accuracy of each architecture, percent, shape (n,).

        Args:
            task: one of :data:`ANCHORS`.
            architectures: of the task.
            epochs: has no effect: the curve has one fidelity.

        Raises:
            UnknownNameError: if nothing is published for the task.
        """
        curve = _curve(task)
        return np.array([curve.percent(_work(task, each)) for each in architectures])


@dataclass(frozen=True)
class _Curve:
    """Log odds and work of the two ends, and the exponent."""

    low: float
    high: float
    smallest: int
    best: int
    exponent: float

    def distance(self, work: float) -> float:
        """How far some work is from the best network's, either way; 1 at the smallest network."""
        return abs(math.log(self.best / work)) / math.log(self.best / self.smallest)

    def percent(self, work: float) -> float:
        odds = self.high - (self.high - self.low) * self.distance(work) ** self.exponent
        return 100.0 / (1.0 + math.exp(-odds))


@cache
def _curve(task: Task) -> _Curve:
    if task.name not in ANCHORS:
        raise UnknownNameError("task with published accuracies", task.name, ANCHORS)
    anchors = ANCHORS[task.name]
    high = _log_odds(anchors.best)
    if anchors.smallest is not None:
        low = _log_odds(anchors.smallest)
    else:
        known = ANCHORS["cifar10"]
        assert known.smallest is not None
        low = high - (_log_odds(known.best) - _log_odds(known.smallest))
    ends = (_work(task, smallest_architecture(task)), _work(task, anchors.best_architecture))
    straight = _Curve(low, high, *ends, 1.0)
    share = (high - _log_odds(anchors.between)) / (high - low)
    exponent = math.log(share) / math.log(straight.distance(anchors.between_energy * ends[1]))
    return _Curve(low, high, *ends, exponent)


def _work(task: Task, architecture: Architecture) -> int:
    """Multiply-accumulates of one inference."""
    return sum(layer.macs for layer in family_of(task).layers(task, architecture).layers)


def _log_odds(percent: float) -> float:
    return math.log(percent / (100.0 - percent))
