"""How much the earlier problems could say at most.

``python -m benchmarks.history.foreknowledge [PROBLEM ...]`` takes the earlier problems as known
completely, and orders designs by the mean of what they say of the new objective. Printed is at
which place the first design stands that is within 1 % of the optimum, or of the best known. A
search that follows the earlier problems without learning needs so many designs.

The designs are all those of a table. On the environments' own spaces they are what long searches of
the new and of the earlier problems find, under the new objective: far better ones than usual, so
the places there are lower bounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import archgym
from archgym.evaluation.outcome import Outcomes
from archgym.registry import make_agent
from archgym.space import Designs
from benchmarks.history.__main__ import WITHIN_1_PERCENT
from benchmarks.history.problems import PAIRS, TABLES, Problem
from benchmarks.history.runs import goals

_SEEDS, _BUDGET = (101, 102, 103), 300
"""Of the long searches, by agent ``gp``."""


def main() -> None:
    """Prints a line a problem."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history.foreknowledge")
    every = {problem.name: problem for problem in (*TABLES, *PAIRS)}
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help=", ".join(every))
    for name in parser.parse_args().problems or every:
        _report(every[name])


def _report(problem: Problem) -> None:
    env = problem.make()
    earlier = [
        archgym.make(problem.environment, **_scored_anew(arguments, problem.arguments))
        for arguments in problem.earlier
    ]
    if env.optimum is not None:
        codes = np.concatenate([part.codes for part in env.design_space.enumerate()])
    else:
        codes = np.concatenate([_found(one, seed) for one in (env, *earlier) for seed in _SEEDS])
    designs = Designs(env.design_space, np.unique(codes, axis=0))
    costs = _costs(env.evaluate_batch(designs))
    said = np.mean([_costs(one.evaluate_batch(designs)) for one in earlier], axis=0)
    order = said.argsort(kind="stable")
    place = int((costs[order] <= costs.min() + WITHIN_1_PERCENT).argmax()) + 1
    first = ", ".join(f"{n}: {costs[order][:n].min():.4f}" for n in (5, 25, 75))
    print(
        f"{problem.name:25} {len(designs):7,} designs, best {costs.min():.4f}; in the order of the "
        f"earlier problems the first within 1 % is number {place:,}; best of the first {first}",
        flush=True,
    )


def _scored_anew(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of the earlier environment with the new objective."""
    others = {name: value for name, value in earlier.items() if name != "objective"}
    return others | {name: value for name, value in now.items() if name == "objective"}


def _found(env: archgym.Environment, seed: int) -> NDArray[np.int64]:
    """Codes of what a long search evaluates."""
    parts: list[Outcomes] = []
    env.on_evaluated = parts.append
    make_agent("gp", env.design_space, goals(env), seed=seed).search(env, _BUDGET)
    env.on_evaluated = None
    return np.concatenate([part.designs.codes for part in parts])


def _costs(outcomes: Outcomes) -> NDArray[np.float64]:
    return np.where(outcomes.feasible, outcomes.costs[:, 0], np.inf)


if __name__ == "__main__":
    main()
