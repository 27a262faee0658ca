"""What knowing the spread of noisy metrics is worth: the true cost of what searches choose.

Run as ``python -m benchmarks.noisy_search``. Each design is measured three times, with noise that
differs between designs. One environment gives the medians alone, the other one their spread, too;
agents search both with the same seeds. The figure is the noise-free cost of the design that a
search ends with, over the optimum's.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from archgym.environment.environment import Environment
from archgym.problem.metrics import Metric
from archgym.registry import make_agent
from archgym.space import DesignSpace, Ordinal

_VALUES = (1, 2, 4, 8, 16, 32, 64, 128)
_NAMES = ("ways", "sets", "line", "depth", "width")


def true_ms(design: Mapping[str, Any]) -> float:
    """The time of a design without noise: effects that act together, with an optimum inside."""
    x = [np.log2(design[name]) / 7.0 for name in _NAMES]
    bowl = (x[0] - 0.6) ** 2 + 2 * (x[1] - x[0] * 0.8) ** 2 + (x[2] - 0.3) ** 2
    return float(10.0 * np.exp(1.5 * bowl + 0.6 * abs(x[3] - x[4]) + 0.3 * (x[3] - 0.5) ** 2))


class Noisy(Environment):
    """Times that are measured three times; the noise depends on the design."""

    design_space = DesignSpace([Ordinal(name, _VALUES) for name in _NAMES])
    baseline = dict.fromkeys(_NAMES, 1)
    metrics: ClassVar[tuple[Metric, ...]] = (Metric("time_ms", "ms"),)
    default_objective = "minimize time_ms"
    repeats = 3
    incidental_arguments = ("noise",)

    def __init__(self, *, noise: float = 0.1, **arguments: Any) -> None:
        self._noise = noise
        super().__init__(**arguments)

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        """The median of three runs."""
        rng = np.random.default_rng([*(design[name] for name in _NAMES), 7])
        share = self._noise * (0.2 + 3.0 * (design["depth"] % 3 == 1))
        runs = true_ms(design) * (1.0 + share * rng.normal(size=self.repeats)).clip(0.1)
        median = statistics.median(runs)
        return self.given(median, statistics.stdev(runs) / median)

    def given(self, median: float, spread: float) -> dict[str, float]:
        """What it tells."""
        return {"time_ms": median}


class NoisyWithSpread(Noisy):
    """The same, with the spread."""

    metrics = (*Noisy.metrics, Metric("time_ms_spread_share", ""))

    def given(self, median: float, spread: float) -> dict[str, float]:
        """What it tells."""
        return {"time_ms": median, "time_ms_spread_share": spread}


def main() -> None:
    """Prints a line for each agent and noise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--agents", default="gp,bayesian,auto")
    options = parser.parse_args()
    every = itertools.product(_VALUES, repeat=len(_NAMES))
    best = min(true_ms(dict(zip(_NAMES, values, strict=True))) for values in every)
    for noise in (0.0, 0.1, 0.3):
        for agent in options.agents.split(","):
            excess: dict[type[Noisy], list[float]] = {Noisy: [], NoisyWithSpread: []}
            for seed in range(options.seeds):
                for kind, found in excess.items():
                    env = kind(noise=noise)
                    result = make_agent(agent, env.design_space, seed=seed).search(
                        env, options.budget
                    )
                    assert result.best is not None
                    found.append(true_ms(result.best.design) / best - 1.0)
            without, known = (100 * statistics.fmean(one) for one in excess.values())
            better = sum(b < a for a, b in zip(*excess.values(), strict=True))
            worse = sum(b > a for a, b in zip(*excess.values(), strict=True))
            print(
                f"noise {noise:.0%} {agent:9} above the optimum: {without:5.1f} % without the "
                f"spread, {known:5.1f} % with it (better in {better}, worse in {worse} of "
                f"{options.seeds})",
                flush=True,
            )


if __name__ == "__main__":
    main()
