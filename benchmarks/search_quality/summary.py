"""From runs to figures: one row for each problem, contestant and number of evaluations."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from benchmarks.search_quality.facts import WITHIN, Facts
from benchmarks.search_quality.statistics import (
    EXACT,
    bootstrap_interval,
    expected_evaluations,
    first_within,
    holm,
    rank_sum,
    regret_at,
    scaled_ranks,
    signed_rank,
)
from benchmarks.search_quality.tracker import CHECKPOINTS

__all__ = ["Cell", "Overall", "Summary", "summarise"]

Line = dict[str, Any]
WASTE = ("identical", "equivalent", "functional", "same_outcome")
RANDOM = "random"
STAND_INS = {"optuna TPE-limits": "optuna TPE"}
"""Whose runs count for a contestant where it is the same, so that it has some on every problem."""


@dataclass(frozen=True)
class Cell:
    """A contestant on a problem after some evaluations.

    Attributes:
        problem, contestant, evaluations, runs: what it is of.
        settings: hyperparameters that are not the defaults.
        median, low, high: median normalised regret, and its 95 % bootstrap interval.
        mean, worst: of the regret.
        within: share of runs within 1 % of the optimum.
        exact: share of runs at the optimum.
        expected: evaluations until within 1 %, restarts included (``inf``: no run did).
        waste: mean number of proposals that were the very same vector, the same design, the same
            one but for dead parameters, and had the same outcome as an earlier one.
        illegal: mean number of proposals that broke a rule.
        infeasible: mean number of proposals that broke a rule or a limit.
        agent_s: the contestant's own processor seconds a proposal, median over runs.
    """

    problem: str
    contestant: str
    settings: dict[str, Any]
    evaluations: int
    runs: int
    median: float
    low: float
    high: float
    mean: float
    worst: float
    within: float
    exact: float
    expected: float
    waste: dict[str, float]
    illegal: float
    infeasible: float
    agent_s: float
    regrets: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """All but the regret of each run; what is infinite or unknown is null."""
        data = {k: v for k, v in asdict(self).items() if k != "regrets"}
        return {k: finite_or_none(v) for k, v in data.items()}


def finite_or_none(value: Any) -> Any:
    """A value as JSON can hold it."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True)
class Overall:
    """A contestant over all counting problems after some evaluations.

    Attributes:
        contestant: its name.
        rank: mean over problems of the mean rank of its runs, from 1.
        worst_median: its largest median regret on a problem.
        worst: its largest regret of any run.
        better, worse: problems on which its runs are significantly better or worse than those of
            the contestant that it is compared with (rank sum, Holm over problems and contestants).
        p: of the difference over all problems (signed ranks, Holm over contestants).
    """

    contestant: str
    rank: float
    worst_median: float
    worst: float
    better: tuple[str, ...] = ()
    worse: tuple[str, ...] = ()
    p: float | None = None


@dataclass(frozen=True)
class Summary:
    """Everything that is reported.

    Attributes:
        optima: of each problem.
        random_evaluations: of each problem, that random search needs; measured where it is not
            known otherwise, ``None`` where that is not known either.
        counting: names of the problems that count.
        cells: with default hyperparameters.
        grids: with other ones.
        overall: by evaluations: contestants that ran on all counting problems with one goal, best
            rank first, each compared with the one named under ``reference``.
        against_random: the same, each compared with random search.
        reference: by evaluations, our best agent.
        failures: lines of runs that ended in an error.
        unsuitable: problem, contestant and reason.
    """

    optima: dict[str, float]
    random_evaluations: dict[str, float | None]
    counting: list[str]
    cells: list[Cell]
    grids: list[Cell]
    overall: dict[int, list[Overall]]
    against_random: dict[int, list[Overall]]
    reference: dict[int, str]
    failures: list[Line]
    unsuitable: list[tuple[str, str, str]]


def summarise(
    lines: Sequence[Line],
    facts: Mapping[str, Facts],
    best: Mapping[str, float],
    own: frozenset[str],
) -> Summary:
    """All figures of some runs.

    Args:
        lines: the runs.
        facts: of each problem.
        best: the best value ever found for each problem.
        own: names of our agents.
    """
    sound = [line for line in lines if "steps" in line]
    optima = {}
    for name, fact in facts.items():
        optimum = best.get(name) if fact.optimum is None else fact.optimum
        if optimum is not None:
            optima[name] = optimum
    groups: dict[tuple[str, str, str, int], list[Line]] = defaultdict(list)
    for line in sound:
        if line["problem"] in optima:
            for n in CHECKPOINTS:
                if str(n) in line["marks"]:
                    settings = repr(sorted(line["settings"].items()))
                    groups[line["problem"], line["contestant"], settings, n].append(line)
    cells = [_cell(group, n, facts, optima) for (_, _, _, n), group in groups.items()]
    cells.sort(key=lambda cell: (cell.problem, cell.evaluations, cell.median, cell.mean))
    plain = [cell for cell in cells if not cell.settings]
    needed = {name: _random_evaluations(name, facts[name], plain) for name in facts}
    counting = [n for n in facts if n in optima and (needed[n] is None or needed[n] >= 1000)]  # type: ignore[operator]
    one_goal = [name for name in counting if not name.startswith("pareto")]
    everybody = plain + _stand_ins(plain)
    overall, against, reference = {}, {}, {}
    for n in CHECKPOINTS:
        ranked = _overall([c for c in everybody if c.evaluations == n], one_goal)
        ours = [one.contestant for one in ranked if one.contestant in own]
        if ours:
            reference[n] = ours[0]
            overall[n] = _compared(ranked, ours[0], everybody, one_goal, n)
        if any(one.contestant == RANDOM for one in ranked):
            against[n] = _compared(ranked, RANDOM, everybody, one_goal, n)
    unsuitable = {
        (x["problem"], x["contestant"], x["unsuitable"]) for x in lines if "unsuitable" in x
    }
    return Summary(
        optima,
        needed,
        counting,
        plain,
        [cell for cell in cells if cell.settings],
        overall,
        against,
        reference,
        [line for line in lines if "error" in line],
        sorted(unsuitable),
    )


def _stand_ins(cells: Sequence[Cell]) -> list[Cell]:
    """Cells of contestants where others stand in for them."""
    have = {(c.problem, c.evaluations, c.contestant) for c in cells}
    takers = {taker for _, _, taker in have} & set(STAND_INS)
    return [
        replace(cell, contestant=taker)
        for taker in sorted(takers)
        for cell in cells
        if cell.contestant == STAND_INS[taker]
        and (cell.problem, cell.evaluations, taker) not in have
    ]


def _cell(
    group: Sequence[Line], n: int, facts: Mapping[str, Facts], optima: Mapping[str, float]
) -> Cell:
    name = group[0]["problem"]
    span = optima[name], facts[name].median
    regrets = [regret_at(line["steps"], n, *span) for line in group]
    low, high = bootstrap_interval(regrets)
    marks = [line["marks"][str(n)] for line in group]
    return Cell(
        problem=name,
        contestant=group[0]["contestant"],
        settings=group[0]["settings"],
        evaluations=n,
        runs=len(group),
        median=_median(regrets),
        low=low,
        high=high,
        mean=float(np.mean(regrets)),
        worst=max(regrets),
        within=float(np.mean([r <= WITHIN for r in regrets])),
        exact=float(np.mean([r <= EXACT for r in regrets])),
        expected=expected_evaluations(
            [first_within(line["steps"], WITHIN, *span) for line in group], n
        ),
        waste={key: float(np.mean([mark[key] for mark in marks])) for key in WASTE},
        illegal=float(np.mean([mark["illegal"] for mark in marks])),
        infeasible=float(np.mean([mark["infeasible"] for mark in marks])),
        agent_s=float(np.median([mark["agent_s"] / n for mark in marks])),
        regrets=tuple(regrets),
    )


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return low if low == high else (low + high) / 2


def _random_evaluations(name: str, fact: Facts, cells: Sequence[Cell]) -> float | None:
    if fact.random_evaluations is not None:
        return fact.random_evaluations
    measured = [c for c in cells if c.problem == name and c.contestant == RANDOM]
    return max(measured, key=lambda c: c.evaluations).expected if measured else None


def _overall(cells: Sequence[Cell], counting: Sequence[str]) -> list[Overall]:
    """Contestants that ran on every counting problem that suits anybody, best rank first."""
    by_problem: dict[str, dict[str, Cell]] = defaultdict(dict)
    for cell in cells:
        if cell.problem in counting:
            by_problem[cell.problem][cell.contestant] = cell
    if not by_problem:
        return []
    everywhere = set.intersection(*(set(found) for found in by_problem.values()))
    ranks: dict[str, list[float]] = defaultdict(list)
    for found in by_problem.values():
        for name, rank in scaled_ranks({c: found[c].regrets for c in everywhere}).items():
            ranks[name].append(rank)
    mine = {c: [found[c] for found in by_problem.values()] for c in everywhere}
    return sorted(
        (
            Overall(
                c,
                float(np.mean(ranks[c])),
                max(cell.median for cell in mine[c]),
                max(cell.worst for cell in mine[c]),
            )
            for c in everywhere
        ),
        key=lambda one: (one.rank, one.contestant),
    )


def _compared(
    ranked: Sequence[Overall],
    reference: str,
    cells: Sequence[Cell],
    counting: Sequence[str],
    n: int,
) -> list[Overall]:
    """The same contestants, each tested against one of them."""
    regrets = {
        (c.problem, c.contestant): c.regrets
        for c in cells
        if c.evaluations == n and c.problem in counting
    }
    names = [one.contestant for one in ranked]
    problems = sorted({problem for problem, _ in regrets})
    ranks = {p: scaled_ranks({c: regrets[p, c] for c in names}) for p in problems}
    others = [c for c in names if c != reference]
    single = holm(
        {
            f"{p}|{c}": rank_sum(regrets[p, c], regrets[p, reference])
            for p in problems
            for c in others
        }
    )
    over = holm(
        {
            c: signed_rank([ranks[p][c] for p in problems], [ranks[p][reference] for p in problems])
            for c in others
        }
    )
    compared = []
    for one in ranked:
        c = one.contestant
        if c != reference:
            told = [p for p in problems if single[f"{p}|{c}"] < 0.05]
            better = tuple(p for p in told if _beats(regrets[p, c], regrets[p, reference]))
            worse = tuple(p for p in told if p not in better)
            one = Overall(c, one.rank, one.worst_median, one.worst, better, worse, over[c])
        compared.append(one)
    return compared


def _beats(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    ranks = scaled_ranks({"ours": ours, "theirs": theirs})
    return ranks["ours"] < ranks["theirs"]
