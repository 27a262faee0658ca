"""The tables over all problems: the best found, mean ranks, two runs compared, and failures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from archgym.analysis.ranking import StudyRanking
from archgym.analysis.statistics import compare, holm, quantile
from archgym.analysis.study import Group, Problem, Study
from archgym.experiment.results.texts import regret_text
from archgym.problem.goals import direction, goal_label
from archgym.problem.metrics import change_text
from archgym.problem.spread import WITHIN, spread_of_goal, within_spread
from archgym.report.table import SIGNIFICANT, Table, independence, number_text, p_text

_MAX_NAMES = 12
_MAX_REASONS = 12
_MAX_FAILURES = 200
_NOTHING_IN_BOTH = (
    "No agent of the one run has searched a problem of the other: a problem is the same where "
    "environment, settings, workload, objective, limits and held parameters are. "
)
_UNEQUAL = (
    "The two runs simulated unequal numbers of designs, which differences of their values may be "
    "due to. "
)


def overview_table(study: Study) -> Table:
    """The problems, and the best design that was found for each."""
    return Table(
        "Problems",
        ["problem", "goal", ">trials", ">baseline", ">best", ">change", "found by", "optimum"],
        [_problem_row(study, problem) for problem in study.problems],
        "Best of all trials that keeps all limits; with several goals the best value of each. "
        "Change: of the goal's value, against the baseline design"
        + (
            ". An infeasible baseline breaks a limit (which one stands with the problem): there is "
            "no change against it, and it may look better than any design that keeps the limit."
            if any(problem.baseline_breaks for problem in study.problems)
            else "."
        ),
    )


def _problem_row(study: Study, problem: Problem) -> list[str]:
    goals, measures = problem.objective.goals, problem.measures
    trial = int(measures.best_cost.argmin())
    cost, least = float(measures.best_cost[trial]), measures.best.min(axis=0, keepdims=True)
    best = problem.natural_values(least)[0].tolist()
    change = ""
    if problem.found and not problem.several and not problem.baseline_breaks:
        larger = direction(goals[0], problem.metrics) == "maximize"
        change = change_text(math.exp(-cost if larger else cost), 1.0)
    optimum = "exact" if problem.exact else "not known"
    if problem.exact and problem.found:
        regret = float(problem.regret(measures.best_cost).min())
        optimum += ", reached" if regret < 1e-9 else f", +{regret_text(regret)}"
    return [
        problem.name,
        "; ".join(goal_label(goal, problem.metrics) for goal in goals),
        f"{len(problem.trials):,}",
        ", ".join(map(number_text, problem.natural_baseline))
        + (", infeasible" if problem.baseline_breaks else ""),
        ", ".join(map(number_text, best)) if problem.found else "nothing feasible",
        change,
        study.searchers[int(problem.searcher[trial])].name if problem.found else "",
        optimum,
    ]


def ranking_table(ranking: StudyRanking) -> Table:
    """Mean ranks."""
    tests, problems = ranking.tests, ranking.problems
    rows = [
        [
            one.name,
            f"{one.mean_rank.value:.2f}",
            f"{one.mean_rank.low:.2f} to {one.mean_rank.high:.2f}",
            f"{one.wins} of {problems}",
        ]
        for one in ranking.searchers
    ]
    text = ""
    if np.isfinite(tests.friedman_p):
        p = p_text(tests.friedman_p).removeprefix("*")
        text = (
            f" Friedman's test that all are alike: p {p if p.startswith('<') else f'= {p}'}. "
            f"Nemenyi's critical difference at 5 %: {tests.critical_difference:.2f} ranks; two "
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
        f"quite.{text}",
    )


def comparison_table(study: Study) -> Table:
    """Two runs, searcher by searcher and problem by problem."""
    assert study.compared is not None
    first, second = study.compared
    pairs: dict[str, dict[int, int]] = {}
    for number, searcher in enumerate(study.searchers):
        pairs.setdefault(searcher.pair, {})[searcher.source] = number
    found: list[tuple[Problem, str, Group, Group]] = []
    for problem in study.problems:
        groups = {group.searcher: group for group in problem.groups}
        for pair, both in pairs.items():
            if len(both) == 2 and groups.keys() >= set(both.values()):
                one, two = groups[both[0]], groups[both[1]]
                alike = [f"{pair} ({run})" for run in study.compared] == [one.name, two.name]
                found.append((problem, pair if alike else f"{one.name} / {two.name}", one, two))
    tested = [i for i, row in enumerate(found) if min(len(np.unique(g.units)) for g in row[2:]) > 1]
    results = [
        compare(one.scores, two.scores, (one.units, two.units))
        for _, _, one, two in (found[i] for i in tested)
    ]
    corrected = holm([p for p, _ in results])
    p_of = {i: (p, a) for i, p, (_, a) in zip(tested, corrected, results, strict=True)}
    budgets = [
        [float(np.median(problem.measures.spent[group.trials])) for group in (one, two)]
        for problem, _, one, two in found
    ]
    rows = []
    for i, (problem, name, one, two) in enumerate(found):
        p, superiority = p_of.get(i, (math.nan, math.nan))
        medians = [problem.natural_score(quantile(g.scores, 0.5)) for g in (one, two)]
        change = change_text(medians[1], medians[0], 2) if np.isfinite(medians).all() else ""
        conclusion = "no difference shown" if np.isfinite(p) else "too few trials"
        if np.array_equal(one.scores, two.scores):
            conclusion = "the same results"
        if p < SIGNIFICANT:
            conclusion = f"*{second} is {'worse' if superiority > 0.5 else 'better'}"
        spreads = [_spread_of_best(problem, group) for group in (one, two)]
        if within_spread(medians[0], medians[1], *spreads):
            conclusion = WITHIN
        rows.append(
            [
                problem.name,
                name,
                f"{len(one.trials)} / {len(two.trials)}",
                " / ".join(number_text(spent) for spent in budgets[i]),
                *(f"{number_text(median)} {problem.score_unit}".rstrip() for median in medians),
                change or "-",
                p_text(p) if np.isfinite(p) else "-",
                f"{1 - superiority:.2f}" if np.isfinite(superiority) else "-",
                conclusion,
            ]
        )
    return Table(
        f"{first} against {second}",
        [
            "problem",
            "agent",
            ">trials",
            ">simulations",
            f">{first}, median",
            f">{second}, median",
            ">change",
            ">p",
            f">P({second} better)",
            "conclusion",
        ],
        rows,
        ("" if rows else _NOTHING_IN_BOTH)
        + "Simulations: median of the trials. "
        + (_UNEQUAL if any(one != two for one, two in budgets) else "")
        + "p: two-sided Mann-Whitney U test, corrected for all rows (Holm). P: probability that a "
        "trial of the second is better than one of the first, ties counting half. "
        f"{independence(*study.problems)}{_unpaired(study, pairs)}",
    )


def _spread_of_best(problem: Problem, group: Group) -> float:
    """How far runs of a searcher's best design lie apart, over the goal; 0 if not known."""
    if problem.several:
        return 0.0
    of_group = set(group.trials.tolist())
    for number, row in problem.best_trials:
        if number in of_group and row in problem.chosen:
            return spread_of_goal(problem.objective.goals[0], problem.chosen[row].metrics)
    return 0.0


def reasons_table(problem: Problem) -> Iterator[Table]:
    """Reasons why proposals were illegal, infeasible or failed."""
    totals, overall = Counter[tuple[int, str]](), Counter[str]()
    for (trial, reason), count in problem.measures.reasons.items():
        totals[int(problem.searcher[trial]), reason] += count
        overall[reason] += count
    if not totals:
        return
    proposals = {
        group.searcher: max(1, int(problem.measures.counts[group.trials].sum()))
        for group in problem.groups
    }
    rows = [
        [reason, f"{count:,}", *(f"{totals[g, reason] / n:.1%}" for g, n in proposals.items())]
        for reason, count in overall.most_common(_MAX_REASONS)
    ]
    yield Table(
        "Why designs were not good",
        ["reason", ">times", *(f">{group.name}" for group in problem.groups)],
        rows,
        "Share of each agent's proposals, duplicates included." + _rarer(overall, rows),
    )


def failures_table(study: Study) -> Iterator[Table]:
    """Reasons why trials failed, and how many did."""
    if not study.failures:
        return
    by_reason: dict[tuple[int, str], list[str]] = {}
    for trial_id, reason in study.failures.items():
        by_reason.setdefault(reason, []).append(trial_id)
    ordered = sorted(by_reason.items(), key=lambda pair: -len(pair[1]))
    rows = [
        [study.searchers[searcher].name, reason, f"{len(trials):,}", ", ".join(trials[:3])]
        for (searcher, reason), trials in ordered[:_MAX_REASONS]
    ]
    yield Table(
        "Why trials failed",
        ["agent", "reason", ">trials", "such as"],
        rows,
        "Each trial is in the list at the end, and its traceback in the run's folder errors."
        + _rarer(by_reason, rows),
    )


def failed_trials_table(study: Study) -> Iterator[Table]:
    """Trials that ended in an error, with it."""
    if not study.failures:
        return
    rows = [[trial_id, error] for trial_id, (_, error) in study.failures.items()][:_MAX_FAILURES]
    more = len(study.failures) - len(rows)
    note = f"{more:,} more are in results/trials.parquet of the run." if more else ""
    yield Table("Trials that failed", ["trial", "why"], rows, note)


def _unpaired(study: Study, pairs: Mapping[str, Mapping[int, int]]) -> str:
    """Searchers that only one of two compared runs has."""
    alone = [
        study.searchers[n].name for both in pairs.values() if len(both) == 1 for n in both.values()
    ]
    if not alone:
        return ""
    shown = ", ".join(alone[:_MAX_NAMES]) + (", ..." if len(alone) > _MAX_NAMES else "")
    return f" Only one of the two has {shown}; --by agent compares agents whatever their settings."


def _rarer(reasons: Collection[Any], rows: Collection[Any]) -> str:
    more = len(reasons) - len(rows)
    return f" {more} rarer reasons are left out." if more else ""
