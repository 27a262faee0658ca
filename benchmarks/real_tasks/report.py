"""From runs to tables: median best values, the best contestant of each task, and mean ranks."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import rankdata

from benchmarks.real_tasks.runs import Line, Run

__all__ = ["BUDGETS", "as_markdown", "best_after", "medians"]

BUDGETS = (50, 100, 300, 1000)
Cell = tuple[str, str, int]
"""Task, contestant, evaluations."""


def best_after(line: Line, n: int) -> float:
    """Best value after n evaluations, minimised; ``inf`` if nothing kept the limits."""
    best = math.inf
    for at, value in line["steps"]:
        if at > n:
            break
        best = value
    return best


def medians(runs: Mapping[Run, Line]) -> dict[Cell, tuple[float, int]]:
    """Median best value and number of runs for each task, contestant and budget reached."""
    found: dict[Cell, list[float]] = defaultdict(list)
    for (task, contestant, _, budget), line in runs.items():
        if "unsuitable" not in line:
            for n in BUDGETS:
                if n <= budget:
                    found[task, contestant, n].append(best_after(line, n))
    return {cell: (float(np.median(values)), len(values)) for cell, values in found.items()}


def as_markdown(runs: Mapping[Run, Line], tasks: Sequence[str]) -> str:
    """A table a budget: each contestant's median as a share worse than the best known value."""
    table = medians(runs)
    known = dict.fromkeys(tasks, math.inf)
    for (task, *_), line in runs.items():
        known[task] = min(known[task], best_after(line, 10**9))
    contestants = sorted({contestant for _, contestant, _ in table})
    parts = ["# Search on real tasks", ""]
    for n in BUDGETS:
        here = [t for t in tasks if any((t, c, n) in table for c in contestants)]
        if not here:
            continue
        ranks: dict[str, list[float]] = defaultdict(list)
        within: dict[str, int] = defaultdict(int)
        rows = []
        for task in here:
            taking = [c for c in contestants if (task, c, n) in table]
            values = np.array([table[task, c, n][0] for c in taking])
            best = values.min()
            for c, value, rank in zip(taking, values, rankdata(values), strict=True):
                ranks[c].append(float(rank))
                within[c] += value <= best + 0.02 * abs(best)
            shown = [
                _worse(table[task, c, n][0], known[task]) if c in taking else ""
                for c in contestants
            ]
            rows.append(f"| {task} | {known[task]:.4g} | " + " | ".join(shown) + " |")
        parts += [
            f"## After {n} evaluations",
            "",
            "How much worse the median best value is than the best known one, %.",
            "",
            "| task | best known | " + " | ".join(contestants) + " |",
            "|---|---|" + "---|" * len(contestants),
            *rows,
            "| mean rank | | "
            + " | ".join(f"{np.mean(ranks[c]):.1f}" if ranks[c] else "" for c in contestants)
            + " |",
            "| tasks within 2 % of the best median | | "
            + " | ".join(f"{within[c]} of {len(ranks[c])}" for c in contestants)
            + " |",
            "",
        ]
    return "\n".join(parts)


def _worse(value: float, best: float) -> str:
    if math.isinf(value):
        return "nothing feasible"
    if best == 0:  # a share of nothing says nothing
        return "0.0" if value == 0 else f"{value:.3g} in place of 0"
    return f"{100 * (value - best) / abs(best):.1f}"
