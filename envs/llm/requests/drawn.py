"""Requests of the generators."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["Drawn", "Lengths", "draw_arrivals", "draw_prefixes"]


@dataclass(frozen=True)
class Drawn:
    """Requests as they stand in a file, or come from a generator.

    Attributes:
        arrival_s: from the first request on, ascending, shape (n,).
        prompt_tokens: shape (n,).
        output_tokens: shape (n,).
        prefixes: for each request the numbers of the blocks at the start of its prompt, equal
            where prompts are equal up to there; empty where none are shared.
    """

    arrival_s: NDArray[np.float64]
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    prefixes: list[NDArray[np.int64]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.arrival_s)

    @property
    def rate_per_s(self) -> float:
        """Mean rate of arrival, requests a second; 0 where all arrive at once."""
        last = float(self.arrival_s[-1])
        return (len(self) - 1) / last if last > 0 else 0.0


@dataclass(frozen=True)
class Lengths:
    """A log-normal distribution of lengths.

    Attributes:
        mean: tokens.
        variation: standard deviation by the mean; 0 for lengths that are all equal.
        most: longest one, tokens.
    """

    mean: float
    variation: float
    most: int

    def draw(self, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """So many lengths, at least one token each, shape (count,)."""
        sigma = math.sqrt(math.log1p(self.variation**2))
        drawn = self.mean * np.exp(sigma * generator.standard_normal(count) - sigma**2 / 2)
        return np.clip(np.rint(drawn), 1, self.most).astype(np.int64)


def draw_arrivals(
    count: int, rate_per_s: float, variation: float, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Times of arrival with gamma-distributed gaps, s from the first request on, shape (count,).

    Args:
        count: how many.
        rate_per_s: mean rate, requests a second.
        variation: standard deviation of the gaps by their mean: 1 for a Poisson process, above 1
            for bursts, 0 for a steady stream.
        generator: of random numbers.
    """
    gaps = np.full(count - 1, 1.0)
    if variation > 0:
        shape = 1.0 / variation**2
        gaps = generator.gamma(shape, 1.0 / shape, count - 1)
    return np.concatenate([[0.0], np.cumsum(gaps) / rate_per_s])


def draw_prefixes(
    count: int, kinds: int, blocks: int, generator: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Blocks of the shared prefix of each request.

    Args:
        count: requests.
        kinds: different prefixes, of which each request has one, all equally likely.
        blocks: of a prefix.
        generator: of random numbers.
    """
    chosen = generator.integers(kinds, size=count)
    return [np.arange(kind * blocks, (kind + 1) * blocks) for kind in chosen]
