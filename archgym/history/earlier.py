"""What was recorded for an earlier problem, before it is scored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archgym.environment.environment import Environment
from archgym.history.account import SourceAccount
from archgym.history.history import History, HistorySource
from archgym.history.transfer import transferred
from archgym.space import Designs

__all__ = ["Earlier", "scored"]


@dataclass(frozen=True, eq=False)
class Earlier:
    """The designs of an earlier problem with their metrics.

    Attributes:
        name: of the source.
        codes: of distinct designs in the space that is searched now, shape (n, n_parameters).
        metrics: as recorded, NaN where there are none, shape (n, n_metrics).
        status: codes of :class:`~archgym.problem.status.Status`, shape (n,).
        baseline: metrics of the baseline design, NaN where there are none, shape (n_metrics,).
        same: see :class:`~archgym.history.history.HistorySource`.
        ordered: likewise.
    """

    name: str
    codes: NDArray[np.int64]
    metrics: NDArray[np.float64]
    status: NDArray[np.int8]
    baseline: NDArray[np.float64]
    same: bool
    ordered: bool = False


def scored(
    found: tuple[Iterable[Earlier], tuple[SourceAccount, ...]], environment: Environment
) -> History:
    """The history of a search in an environment: earlier designs, scored by its objective.

    Args:
        found: the earlier problems, and what became of their rows.
        environment: whose baseline design is simulated, if its metrics are not known yet.
    """
    earlier, accounts = found
    sources = []
    for one in earlier:
        baseline = environment.baseline_metrics if one.same else one.baseline
        designs = Designs(environment.design_space, one.codes)
        outcomes = transferred(designs, one.metrics, one.status, baseline, environment)
        sources.append(HistorySource(one.name, outcomes, one.same, one.ordered))
    return History(tuple(sources), accounts)
