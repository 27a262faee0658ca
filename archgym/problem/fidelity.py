"""Fidelities: how much of the full simulation is run, and at what cost.

A shorter trace or fewer epochs of training estimate the metrics of a design, in the same units,
for a part of the cost of the full simulation. Only the full simulation settles which design is
best.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from archgym.errors import InvalidValueError

_FINEST = 1_000_000
"""Costs are fractions with denominators up to this."""


@dataclass(frozen=True)
class Fidelity:
    """One way to simulate a design: fully, or a part of it.

    >>> Fidelity(0.1, 0.1, "2 of 20 epochs").cost
    0.1

    Attributes:
        value: how much is simulated, in (0, 1]; 1 is the full simulation.
        cost: what that costs, as a share of the full simulation's cost, in (0, 1]; what the
            budget counts.
        doc: what it means.

    Raises:
        InvalidValueError: if value or cost is not a number above 0 and up to 1.
    """

    value: float
    cost: float
    doc: str = ""

    def __post_init__(self) -> None:
        for name in ("value", "cost"):
            number = getattr(self, name)
            if (
                isinstance(number, bool)
                or not isinstance(number, int | float)
                or not 1 / _FINEST <= number <= 1
            ):
                raise InvalidValueError(
                    f"fidelity: {name} is a number from {1 / _FINEST:g} to 1, not {number!r}"
                )
            object.__setattr__(self, name, float(number))

    def to_json(self) -> dict[str, float | str]:
        """A JSON object with the fields."""
        return dict(vars(self))


FULL = Fidelity(1.0, 1.0, "the full simulation")


def check_fidelities(fidelities: Iterable[Fidelity], owner: str) -> tuple[Fidelity, ...]:
    """Checks the fidelities that an environment declares.

    Args:
        fidelities: what it declares.
        owner: name of the environment, for the message.

    Raises:
        InvalidValueError: unless values and costs ascend and the last one is the full simulation.
    """
    found = tuple(fidelities)
    for one in found:
        if not isinstance(one, Fidelity):
            raise InvalidValueError(f"{owner}: fidelities holds {one!r}, not a Fidelity")
    if not found or (found[-1].value, found[-1].cost) != (1.0, 1.0):
        raise InvalidValueError(
            f"{owner}: the last of the fidelities is the full simulation, with value and cost 1"
        )
    for one, other in itertools.pairwise(found):
        if not (one.value < other.value and one.cost <= other.cost):
            raise InvalidValueError(
                f"{owner}: fidelities ascend in value and cost, but {other} follows {one}"
            )
    return found


def cost_units(fidelities: Sequence[Fidelity]) -> list[int]:
    """Costs as whole numbers of a common unit, so that ten tenths are exactly one.

    >>> cost_units([Fidelity(0.1, 0.1), Fidelity(0.5, 1 / 3), FULL])
    [3, 10, 30]
    """
    costs = [Fraction(one.cost).limit_denominator(_FINEST) for one in fidelities]
    unit = math.lcm(*(cost.denominator for cost in costs))
    return [int(cost * unit) for cost in costs]
