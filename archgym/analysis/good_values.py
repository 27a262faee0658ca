"""Which values of the parameters good designs have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archgym.space import Parameter

_MAX_LEVELS = 24
"""Parameters with more levels have too few designs for each of them."""
_BEST_SHARE = 0.1


@dataclass(frozen=True)
class GoodValue:
    """One value of a parameter.

    Attributes:
        parameter: its name.
        value: the value.
        among_best: share of the best tenth of the designs that have it.
        among_all: share of all designs that have it.
    """

    parameter: str
    value: object
    among_best: float
    among_all: float


def good_values(
    parameters: Sequence[Parameter], codes: NDArray[np.int64], costs: NDArray[np.float64]
) -> list[GoodValue]:
    """How often each value that was tried occurs among the best tenth, and among all designs.

    A design that was evaluated several times counts once.

    Args:
        parameters: of the design space; those with many levels or one value tried are left out.
        codes: level of each parameter, -1 where it is inactive, shape (n, n_parameters).
        costs: of the designs, smaller is better, shape (n,).
    """
    distinct = np.unique(codes, axis=0, return_index=True)[1]
    codes, costs = codes[distinct], costs[distinct]
    best = codes[np.argsort(costs, kind="stable")[: max(1, round(_BEST_SHARE * len(codes)))]]
    found = []
    for position, parameter in enumerate(parameters):
        tried = np.unique(codes[:, position])
        tried = tried[tried >= 0]
        if not 1 < len(tried) <= _MAX_LEVELS or parameter.size > _MAX_LEVELS:
            continue
        for code in tried.tolist():
            among_best, among_all = ((rows[:, position] == code).mean() for rows in (best, codes))
            value = GoodValue(
                parameter.name, parameter.value(code), float(among_best), float(among_all)
            )
            found.append(value)
    return found
