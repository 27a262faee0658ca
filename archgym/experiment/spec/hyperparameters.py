"""Grids and distributions over an agent's hyperparameters."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from archgym.errors import InvalidValueError, UnknownNameError
from archgym.experiment.spec.schema import MAX_TRIALS, AgentEntry

__all__ = ["DISTRIBUTIONS", "hyperparameter_sets", "number_of_sets"]

DISTRIBUTIONS = ("uniform", "log_uniform", "integer", "choice")
_DIGITS = 6  # of a drawn number: readable, and the same on every machine
_TRIES = 200  # draws for each sample before distributions count as too narrow


def hyperparameter_sets(entry: AgentEntry, seed: int, where: str = "") -> list[dict[str, Any]]:
    """Every set of hyperparameters of an entry, each once: grid points x draws.

    The n-th draw of a hyperparameter depends on the seed, the agent's name, the
    hyperparameter's name and n alone, so that it is the same at every grid point, in every
    environment, and whatever else the file holds.

    Args:
        entry: the agent's entry in the experiment.
        seed: seed of the draws.
        where: place of the entry, for messages.

    Raises:
        UnknownNameError: for an unknown distribution.
        InvalidValueError: for an impossible distribution, samples without a distribution or the
            reverse, or a repeated grid value.
    """
    grid: dict[str, list[Any]] = {}
    drawn: dict[str, Callable[[np.random.Generator], Any]] = {}
    for name, value in entry.hyperparameters.items():
        place = f"{where}.hyperparameters.{name}"
        if isinstance(value, Mapping):
            drawn[name] = _distribution(value, place)
        else:
            grid[name] = _grid_values(value, place)
    if drawn and entry.samples is None:
        raise InvalidValueError(
            f"{where}.samples is missing: {', '.join(drawn)} is drawn from a distribution, "
            "say how many draws to try"
        )
    if entry.samples is not None and not drawn:
        raise InvalidValueError(
            f"{where}.samples cannot be {entry.samples}: no hyperparameter is a distribution"
        )
    number = number_of_sets(entry)
    if number > MAX_TRIALS:
        raise InvalidValueError(
            f"{where}.hyperparameters stand for {number:,} sets; at most {MAX_TRIALS:,} can be "
            "listed"
        )
    points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    draws = _draws(entry, drawn, seed, where) if drawn else [{}]
    names = list(entry.hyperparameters)
    both = [{**point, **draw} for point in points for draw in draws]
    return [{name: values[name] for name in names} for values in both]


def number_of_sets(entry: AgentEntry) -> int:
    """How many sets of hyperparameters an entry stands for; none of them is made.

    Args:
        entry: the agent's entry in the experiment.
    """
    grids = (len(value) for value in entry.hyperparameters.values() if isinstance(value, list))
    return math.prod(grids) * (entry.samples or 1)


def _grid_values(value: Any, where: str) -> list[Any]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise InvalidValueError(f"{where} cannot be []: a grid lists at least one value")
    texts = [json.dumps(v, sort_keys=True) for v in values]
    if len(set(texts)) != len(texts):
        raise InvalidValueError(f"{where} cannot be {value!r}: a value is listed twice")
    return values


def _draws(
    entry: AgentEntry,
    drawn: Mapping[str, Callable[[np.random.Generator], Any]],
    seed: int,
    where: str,
) -> list[dict[str, Any]]:
    """As many different draws as there are samples."""
    assert entry.samples is not None
    found: dict[str, dict[str, Any]] = {}
    for number in range(_TRIES * entry.samples):
        draw = {
            name: pick(_generator(seed, entry.name, name, number)) for name, pick in drawn.items()
        }
        found.setdefault(json.dumps(draw, sort_keys=True), draw)
        if len(found) == entry.samples:
            return list(found.values())
    raise InvalidValueError(
        f"{where}.samples cannot be {entry.samples}: the distributions give only {len(found)} "
        "different draws"
    )


def _generator(seed: int, *names: str | int) -> np.random.Generator:
    digest = hashlib.sha256(json.dumps([seed, *names]).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def _distribution(spec: Mapping[str, Any], where: str) -> Callable[[np.random.Generator], Any]:
    """A function that draws one value."""
    if len(spec) != 1:
        raise InvalidValueError(
            f"{where} cannot be {dict(spec)!r}: a distribution has one key of "
            f"{', '.join(DISTRIBUTIONS)}"
        )
    ((kind, values),) = spec.items()
    if kind not in DISTRIBUTIONS:
        raise UnknownNameError("distribution", kind, DISTRIBUTIONS, where)
    place = f"{where}.{kind}"
    if kind == "choice":
        if not isinstance(values, list) or not values:
            raise InvalidValueError(f"{place} cannot be {values!r}: give a list of values")
        options = _grid_values(values, place)
        return lambda rng: options[int(rng.integers(len(options)))]
    low, high = _bounds(values, kind, place)
    if kind == "integer":
        return lambda rng: int(rng.integers(int(low), int(high) + 1))
    if kind == "uniform":
        return lambda rng: _rounded(low + (high - low) * rng.random(), low, high)
    ratio = math.log(high / low)
    return lambda rng: _rounded(low * math.exp(ratio * rng.random()), low, high)


def _bounds(values: Any, kind: str, where: str) -> tuple[float, float]:
    whole = kind == "integer"
    kinds = int if whole else (int, float)
    if not (
        isinstance(values, list)
        and len(values) == 2
        and all(isinstance(v, kinds) and not isinstance(v, bool) for v in values)
        and all(map(math.isfinite, values))
        and values[0] < values[1]
    ):
        what = "two integers" if whole else "two numbers"
        raise InvalidValueError(
            f"{where} cannot be {values!r}: give {what} [low, high] with low < high"
        )
    if kind == "log_uniform" and values[0] <= 0:
        raise InvalidValueError(f"{where} cannot be {values!r}: a log scale needs low > 0")
    return values[0], values[1]


def _rounded(value: float, low: float, high: float) -> float:
    return float(min(max(float(f"{value:.{_DIGITS}g}"), low), high))
