"""The tables over all problems: the best found, mean ranks, and two runs compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from archgym.analysis.statistics import Ranking, compare, holm, quantile
from archgym.analysis.study import Study
from archgym.experiment.results.tables import regret_text
from archgym.problem.goals import direction, goal_label, natural
from archgym.problem.metrics import change_text
from archgym.report.table import SIGNIFICANT, Table, independence, number_text, p_text

__all__ = ["comparison_table", "overview_table", "ranking_table"]

_MOST_NAMES = 12
_NOTHING_IN_BOTH = (
    "No agent of the one run has searched a problem of the other: a problem is the same where "
    "environment, settings, workload, objective, limits and held parameters are. "
)


def overview_table(study: Study) -> Table:
    """What was searched, and the best that was found."""
    rows = []
    for problem in study.problems:
        measures = problem.measures
        number = int(measures.best_cost.argmin())
        found = bool(np.isfinite(measures.best_cost[number]))
        goals = problem.objective.goals
        baseline = ", ".join(
            number_text(natural(goals[i], problem.metrics, float(problem.baseline[i])))
            for i in range(len(goals))
        )
        best = ", ".join(
            number_text(natural(goals[i], problem.metrics, float(measures.best[:, i].min())))
            for i in range(len(goals))
        )
        change = ""
        if found and not problem.several and not problem.baseline_breaks:
            cost = float(measures.best_cost[number])
            larger = direction(goals[0], problem.metrics) == "maximize"
            change = change_text(math.exp(-cost if larger else cost), 1.0)
        if problem.baseline_breaks:
            baseline += ", infeasible"
        regret = problem.regret(measures.best_cost[number : number + 1])[0]
        rows.append(
            [
                problem.name,
                "; ".join(goal_label(goal, problem.metrics) for goal in goals),
                f"{len(problem.ids):,}",
                baseline,
                best if found else "nothing feasible",
                change,
                study.searchers[int(problem.searcher[number])].name if found else "",
                ("exact, reached" if regret < 1e-9 else f"exact, +{regret_text(regret)}")
                if problem.exact and found
                else ("exact" if problem.exact else "not known"),
            ]
        )
    return Table(
        "Problems",
        ["problem", "goal", ">trials", ">baseline", ">best", ">change", "found by", "optimum"],
        rows,
        "Best of all trials that keeps all limits; with several goals the best value of each. "
        "Change: of the goal's value, against the baseline design"
        + (
            ". An infeasible baseline breaks a limit (which, stands with the problem): there is "
            "no change against it, and it may look better than any design that keeps the limit."
            if any(problem.baseline_breaks for problem in study.problems)
            else "."
        ),
    )


def ranking_table(study: Study, ranking: Ranking, groups: Sequence[int], problems: int) -> Table:
    """Mean ranks."""
    order = sorted(range(len(groups)), key=lambda i: ranking.ranks[i].value)
    rows = []
    for i in order:
        found, least = ranking.ranks[i], ranking.by_problem.min(axis=1)
        wins = int((ranking.by_problem[:, i] == least).sum())
        rows.append(
            [
                study.searchers[groups[i]].name,
                f"{found.value:.2f}",
                f"{found.low:.2f} to {found.high:.2f}",
                f"{wins} of {problems}",
            ]
        )
    tests = ""
    if np.isfinite(ranking.friedman_p):
        tests = (
            f" Friedman's test that all are alike: p {_relation(p_text(ranking.friedman_p))}. "
            f"Nemenyi's critical difference at 5 %: {ranking.critical_difference:.2f} ranks; two "
            "agents that are closer cannot be told apart by it."
        )
    return Table(
        "Ranking",
        ["agent", ">mean rank", ">95 % interval", ">first on"],
        rows,
        f"Rank of the median trial among the agents on each of {problems} "
        f"{'problem' if problems == 1 else 'problems'}, 1 is the best; equal medians share a rank, "
        "and the first place. Interval: percentile "
        "bootstrap that draws problems and, crossed with them, seeds with all of their trials. "
        "Problems count as independent of one another, which those on one workload are not "
        f"quite.{tests}",
    )


def comparison_table(study: Study) -> Table:
    """Two runs, searcher by searcher and problem by problem."""
    assert study.compared is not None
    first, second = study.compared
    twins: dict[str, dict[int, int]] = {}
    for number, searcher in enumerate(study.searchers):
        twins.setdefault(searcher.twin, {})[searcher.source] = number
    found = []
    for problem in study.problems:
        for twin, both in twins.items():
            if len(both) == 2:
                names = [study.searchers[both[side]].name for side in (0, 1)]
                alike = [f"{twin} ({run})" for run in study.compared] == names
                name = twin if alike else " / ".join(names)
                mine = [problem.searcher == both[side] for side in (0, 1)]
                one, two = (problem.score[some] for some in mine)
                if len(one) and len(two):
                    units = problem.units[mine[0]], problem.units[mine[1]]
                    found.append((problem, name, one, two, units))
    tested = [i for i, row in enumerate(found) if min(len(np.unique(u)) for u in row[4]) > 1]
    results = [compare(*found[i][2:5]) for i in tested]
    corrected = holm([p for p, _ in results])
    p_of = {i: (p, a) for i, p, (_, a) in zip(tested, corrected, results, strict=True)}
    rows = []
    for i, (problem, name, one, two, _) in enumerate(found):
        medians = [quantile(values, 0.5) for values in (one, two)]
        shown = [problem.natural_score(median) for median in medians]
        change = change_text(shown[1], shown[0], 2) if np.isfinite(shown).all() else ""
        p, superiority = p_of.get(i, (math.nan, math.nan))
        verdict = "too few trials" if not np.array_equal(one, two) else "the same results"
        if np.isfinite(p):
            if not np.array_equal(one, two):
                verdict = "no difference shown"
            if p < SIGNIFICANT:
                verdict = f"*{second} is {'worse' if superiority > 0.5 else 'better'}"
        rows.append(
            [
                problem.name,
                name,
                f"{len(one)} / {len(two)}",
                _with_unit(shown[0], problem.score_unit),
                _with_unit(shown[1], problem.score_unit),
                change or "-",
                p_text(p) if np.isfinite(p) else "-",
                f"{1 - superiority:.2f}" if np.isfinite(superiority) else "-",
                verdict,
            ]
        )
    return Table(
        f"{first} against {second}",
        [
            "problem",
            "agent",
            ">trials",
            f">{first}, median",
            f">{second}, median",
            ">change",
            ">p",
            f">P({second} better)",
            "verdict",
        ],
        rows,
        ("" if rows else _NOTHING_IN_BOTH)
        + "p: two-sided Mann-Whitney U test, corrected for all rows (Holm). P: probability that a "
        "trial of the second is better than one of the first, ties counting half. "
        f"{independence(*study.problems)}{_unpaired(study, twins)}",
    )


def _unpaired(study: Study, twins: Mapping[str, Mapping[int, int]]) -> str:
    """What only one of two compared runs has."""
    alone = [
        study.searchers[n].name for both in twins.values() if len(both) == 1 for n in both.values()
    ]
    if not alone:
        return ""
    shown = ", ".join(alone[:_MOST_NAMES]) + (", ..." if len(alone) > _MOST_NAMES else "")
    return f" Only one of the two has {shown}; --by agent compares agents whatever their settings."


def _relation(p: str) -> str:
    text = p.removeprefix("*")
    return text if text.startswith("<") else f"= {text}"


def _with_unit(value: float, unit: str) -> str:
    return f"{number_text(value)} {unit}".rstrip()
