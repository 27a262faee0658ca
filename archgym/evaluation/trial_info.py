"""The settings of a trial: agent, hyperparameters, seed and budget."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from archgym.errors import InvalidValueError, check_integer, check_seed

EXTERNAL = "external"
"""The agent of evaluations of which only is known that a library asked for them."""
_MAX_NAME = 200
"""Characters of a trial's id, and of the names of its agent and its purpose."""
_MAX_COUNT = (1 << 63) - 1
"""The largest number that a column of the table of trials holds."""


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
        trial_id: unique in its dataset, up to 200 characters without slashes; empty for a name
            made from time and process.
        agent: name of the agent; ``external`` if another library drives the environment.
        hyperparameters: of the agent, as JSON has them; NumPy's values become plain ones.
        seed: of the agent, below 2^63; ``None`` if not known.
        budget: maximum number of distinct legal designs to simulate; one at a lower fidelity
            counts as its relative cost. ``None`` is without limit.
        proposals_per_budget: the search also ends when its proposals, duplicates and illegal ones
            included and each by the cost of its fidelity, reach this multiple of the budget.
        hours: maximum hours that all simulations take together. ``None`` is without limit.
        history: what the search learned from before; ``None`` if it began from nothing.
        resume: go on with a trial of this id that the dataset already holds.
        label: what the evaluations are for, such as ``train`` or ``eval``; ``None`` if not known.

    Raises:
        InvalidValueError: for a value that is not possible; with its name and what is allowed.
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
        plain: dict[str, Any] = {"hyperparameters": plain_hyperparameters(self.hyperparameters)}
        plain["trial_id"] = _name("trial_id", self.trial_id or "", least=0)
        if set(plain["trial_id"]) & {"/", "\\"} or plain["trial_id"] in (".", ".."):
            raise InvalidValueError(
                f"trial_id is a name and no path, so without slashes, not {self.trial_id!r:.80}"
            )
        plain["agent"] = _name("agent", self.agent)
        if self.label is not None:
            plain["label"] = _name("label", self.label)
        if self.seed is not None:
            plain["seed"] = check_seed(self.seed)
        if self.budget is not None:
            plain["budget"] = check_integer("budget", self.budget, 1)
            if plain["budget"] > _MAX_COUNT:
                raise InvalidValueError(f"budget must be below 2^63, not {self.budget}")
        if self.hours is not None:
            plain["hours"] = _hours(self.hours)
        per_budget = check_integer("proposals_per_budget", self.proposals_per_budget, 1)
        plain["proposals_per_budget"] = per_budget
        if not isinstance(self.resume, bool):
            raise InvalidValueError(f"resume must be True or False, not {self.resume!r:.80}")
        if not isinstance(self.history, HistoryInfo | None):
            raise InvalidValueError(f"history must be a HistoryInfo, not {self.history!r:.80}")
        for name, value in plain.items():
            object.__setattr__(self, name, value)


def plain_hyperparameters(given: Mapping[str, Any], *, finite: bool = False) -> dict[str, Any]:
    """Hyperparameters as JSON has them.

    Args:
        given: names and values, which may be NumPy's.
        finite: whether numbers that are not finite are refused.

    Raises:
        InvalidValueError: if they are no mapping, or JSON has no such value.
    """
    if not isinstance(given, Mapping):
        raise InvalidValueError(
            f"hyperparameters must be a mapping of names to values, not {given!r:.80}"
        )
    return {str(name): _plain(str(name), value, finite) for name, value in given.items()}


def _plain(name: str, value: Any, finite: bool) -> Any:
    try:
        return json.loads(json.dumps(value, allow_nan=not finite, default=_of_numpy))
    except (TypeError, ValueError, RecursionError):
        raise InvalidValueError(
            f"hyperparameters[{name!r}] is recorded as JSON: give a number, text, list or mapping, "
            f"not {value!r:.80}"
        ) from None


def _of_numpy(value: object) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError


def _name(field: str, value: object, least: int = 1) -> str:
    """The value, if it is a text that a name may be."""
    if not isinstance(value, str) or not least <= len(value) <= _MAX_NAME:
        raise InvalidValueError(
            f"{field} must be a text of {least or 'up'} to {_MAX_NAME} characters, "
            f"not {value!r:.80}"
        )
    if not value.isprintable():
        raise InvalidValueError(f"{field} must consist of printable characters, not {value!r:.80}")
    return str(value)


def _hours(value: object) -> float:
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 < float(value) < math.inf:  # type: ignore[arg-type]
        raise InvalidValueError(f"hours must be a positive number, not {value!r:.80}")
    return float(value)  # type: ignore[arg-type]
