"""The settings of a trial: agent, hyperparameters, seed and budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from archgym.errors import InvalidValueError, check_integer

EXTERNAL = "external"
"""The agent of evaluations of which only is known that a library asked for them."""


@dataclass(frozen=True)
class SourceInfo:
    """An earlier problem of which a search learned.

    Attributes:
        name: of the source.
        designs: how many designs of it were known.
        same: whether it is the problem of the trial, but for objective, limits and held values.
        used: whether the search made use of it; an agent may leave out what contradicts itself.
    """

    name: str
    designs: int
    same: bool
    used: bool = True


@dataclass(frozen=True)
class HistoryInfo:
    """What a search learned from before its first evaluation.

    Attributes:
        sources: the earlier problems.
        sha256: of all that was known; equal for equal history.
        first: keys of the designs that it suggested to begin with, see
            :meth:`archgym.space.DesignSpace.key`, as texts.
    """

    sources: list[SourceInfo]
    sha256: str
    first: list[str]

    @property
    def designs(self) -> int:
        """How many designs were known."""
        return sum(source.designs for source in self.sources)


@dataclass(frozen=True)
class TrialInfo:
    """One agent, hyperparameters, seed and budget; the row of the dataset's table of trials.

    Attributes:
        trial_id: unique in its dataset; empty for a name made from time and process.
        agent: name of the agent; ``external`` if another library drives the environment.
        hyperparameters: of the agent.
        seed: of the agent; ``None`` if not known.
        budget: maximum number of distinct legal designs to simulate; one at a lower fidelity
            counts as its relative cost. ``None`` is without limit.
        proposals_per_budget: the search also ends when its proposals, duplicates and illegal ones
            included and each by the cost of its fidelity, reach this multiple of the budget.
        hours: maximum hours that all simulations take together. ``None`` is without limit.
        history: what the search learned from before; ``None`` if it began from nothing.
        resume: go on with a trial of this id that the dataset already holds.
        label: what the evaluations are for, such as ``train`` or ``eval``; ``None`` if not known.

    Raises:
        InvalidValueError: if the budget or ``proposals_per_budget`` is not a positive integer, or
            the hours are not a positive number.
    """

    trial_id: str = ""
    agent: str = EXTERNAL
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    budget: int | None = None
    resume: bool = False
    proposals_per_budget: int = 10
    hours: float | None = None
    history: HistoryInfo | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        if self.budget is not None:
            check_integer("budget", self.budget, 1)
        if self.hours is not None and not 0 < self.hours < math.inf:
            raise InvalidValueError(f"hours must be a positive number, not {self.hours!r}")
        check_integer("proposals_per_budget", self.proposals_per_budget, 1)
