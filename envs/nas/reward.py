"""Specifications of a chip, and the reward with which NASAIC (DAC 2020) holds networks to them.

    R = sum_i alpha_i * accuracy_i - rho * P
    P = max(l - LS, 0) / (bl - LS) + max(e - ES, 0) / (be - ES) + max(a - AS, 0) / (ba - AS)

with accuracies as shares, latency l, energy e, area a, their specifications LS, ES, AS, upper
bounds bl, be, ba, and rho = 10. The bounds say how bad an excess is. In the paper they are the
largest values met while exploring hardware for the most accurate networks, and not published; here
they are twice the specifications, so that an excess of 1 % costs as much as 10 points of accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["RHO", "Specs", "nasaic_reward", "spec_penalty", "weighted_accuracy"]

RHO: Final = 10.0
"""Weight of the penalty (NASAIC, DAC 2020)."""


@dataclass(frozen=True)
class Specs:
    """Specifications: upper limits of a design (also used for bounds and for measured figures).

    Attributes:
        latency_cycles: until the last network is done, cycles.
        energy_nj: of one inference of every network, nJ.
        area_um2: of the chip, µm².

    Raises:
        InvalidValueError: if one is not a positive number.
    """

    latency_cycles: float
    energy_nj: float
    area_um2: float

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            wrong = isinstance(value, bool) or not isinstance(value, int | float)
            if wrong or not 0 < value < math.inf:
                raise InvalidValueError(f"specs: {name} is {value!r}; it must be a number above 0")

    @staticmethod
    def parse(data: Specs | Mapping[str, Any], where: str = "specs") -> Specs:
        """The three figures from a mapping by their names.

        Raises:
            UnknownNameError, InvalidValueError: if it has other keys, or other values.
        """
        if isinstance(data, Specs):
            return data
        names = [field.name for field in fields(Specs)]
        if not isinstance(data, Mapping):
            raise InvalidValueError(
                f"{where} is {data!r:.80}; it must be a mapping with {', '.join(names)}"
            )
        for name in data:
            if name not in names:
                raise UnknownNameError("key", str(name), names, where)
        for name in names:
            if name not in data:
                raise InvalidValueError(f"{where} lacks {name}")
        return Specs(**data)

    def limits(self) -> list[str]:
        """The limits of an objective that hold a design to them."""
        return [f"{name} <= {value!r}" for name, value in asdict(self).items()]


def spec_penalty(found: Specs, specs: Specs, bounds: Specs) -> float:
    """The penalty P: 0 exactly if every specification is met, 1 for each bound that is reached.

    >>> specs, bounds = Specs(800, 2000, 4000), Specs(1600, 4000, 8000)
    >>> spec_penalty(Specs(1000, 1500, 5000), specs, bounds)
    0.5
    """
    total = 0.0
    for field in fields(Specs):
        value, spec = getattr(found, field.name), getattr(specs, field.name)
        if value > spec:
            total += (value - spec) / (getattr(bounds, field.name) - spec)
    return total


def weighted_accuracy(accuracies: Sequence[float], weights: Sequence[float]) -> float:
    """The sum of alpha_i * accuracy_i, in the unit of the accuracies."""
    return math.fsum(a * w for a, w in zip(accuracies, weights, strict=True))


def nasaic_reward(accuracy_percent: float, penalty: float) -> float:
    """The reward R of a weighted accuracy in percent and a penalty."""
    return accuracy_percent / 100.0 - RHO * penalty
