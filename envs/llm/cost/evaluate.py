"""The cost model's entry: many plans at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.envs.llm.cost.compiled import entry
from archgym.envs.llm.cost.records import RESULT
from archgym.envs.llm.cost.step import iteration

__all__ = ["evaluate_plans"]


@entry
def _evaluate(sources: int) -> Callable[[Any, Any, Any, bool, Any], None]:
    def evaluate(model: Any, plans: Any, system: Any, closed: bool, results: Any) -> None:
        _ = sources
        for i in range(len(plans)):
            iteration(model[0], plans[i], system[0], closed, results[i])

    return evaluate


def evaluate_plans(
    model: NDArray[Any], plans: NDArray[Any], system: NDArray[Any], *, closed: bool = False
) -> NDArray[Any]:
    """Time and memory of many plans of one model on one cluster.

    Args:
        model: record of :data:`archgym.envs.llm.cost.records.MODEL`, shape (1,).
        plans: records of ``PLAN``, shape (n,).
        system: record of ``SYSTEM``, shape (1,).
        closed: whether bubbles are estimated in closed form instead of by the event graph.

    Returns:
        Records of ``RESULT``, shape (n,).
    """
    results = np.zeros(len(plans), RESULT)
    _evaluate(model, plans, system, closed, results)
    return results
