"""How much a search would gain from knowing which parameters act together: a bound for learning it.

``auto`` on NK-like landscapes, with the sets of parameters that it learns and with the true ones in
their place; everything else, length scales too, is learned in both. Twelve minutes on a quiet core
for thirty landscapes.

    python -m benchmarks.known_structure --first 8000 --count 30
"""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest import mock

import numpy as np
from rich.progress import track

from archgym.agents.auto import Auto
from archgym.agents.gp.interactions import Interactions
from benchmarks.search_quality.landscapes import Landscape, environment_of, nk_landscape

BUDGET = 300
NEAR = 0.01
"""Regret that counts as there; 0 is the optimum, 1 the median random design."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=8000, help="seed of the first landscape")
    parser.add_argument("--count", type=int, default=30, help="landscapes, a run each")
    chosen = parser.parse_args()
    regrets: dict[str, list[list[float]]] = {"learned sets": [], "true sets": []}
    for number in track(range(chosen.first, chosen.first + chosen.count)):
        landscape = nk_landscape(number)
        random = landscape.costs(landscape.space.sample(20_000, np.random.default_rng(0)))
        middle, lowest = float(np.median(random)), landscape.lowest()
        for name, found in regrets.items():
            with told(landscape) if name == "true sets" else nullcontext():
                costs = search(landscape, number)
            best = np.minimum.accumulate(costs)
            found.append([(best[n - 1] - lowest) / (middle - lowest) for n in (100, BUDGET)])
    print(f"{'':14}median regret after 100, mean after {BUDGET}, runs within 1 % then")
    for name, rows in regrets.items():
        first, last = np.array(rows).T
        print(f"{name:14}{np.median(first):.3f} {last.mean():.3f} {(last <= NEAR).mean():.0%}")


def told(landscape: Landscape) -> AbstractContextManager[Any]:
    """Searches of this landscape know the sets of parameters that act together."""
    free = list(landscape.space.free)
    sets = np.zeros((len(landscape.components), len(free)), dtype=np.bool_)
    for row, (axes, _) in enumerate(landscape.components):
        sets[row, [free.index(axis) for axis in axes]] = True

    def walk(self: Interactions, *_: object) -> None:
        self._states, self._terms = [sets], None

    return mock.patch.object(Interactions, "walk", walk)


def search(landscape: Landscape, number: int) -> list[float]:
    """Costs of the designs that ``auto`` tries, in order."""
    env = environment_of(f"Nk{number}", [landscape])()
    agent = Auto(env.design_space, seed=0)
    costs: list[float] = []
    for _ in range(BUDGET):
        designs = agent.ask(1)
        outcomes = env.evaluate_batch(designs)
        agent.tell(outcomes.designs, outcomes)
        costs += landscape.costs(designs).tolist()
    return costs


if __name__ == "__main__":
    main()
