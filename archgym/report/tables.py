"""The tables of a report, as texts in cells."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archgym.experiment.summary import goal_label
from archgym.report.curves import budgets_to_reach
from archgym.report.panels import WITHIN
from archgym.report.study import Problem, Study
from archgym.statistics import (
    Comparison,
    Interval,
    Ranking,
    compare,
    compare_all,
    holm,
    median_interval,
    quantile,
    share_interval,
)

__all__ = [
    "Table",
    "comparison_table",
    "failed_trials_table",
    "failures_table",
    "overview_table",
    "pairs_table",
    "ranking_table",
    "reasons_table",
    "results_table",
    "settings_table",
]

SIGNIFICANT = 0.05
_MOST_REASONS = 12
_MOST_FAILURES = 200


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        title: what it shows.
        columns: headings; one that begins with ``>`` is of numbers.
        rows: texts; one that begins with ``*`` stands out.
        note: how to read it.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


def results_table(study: Study, problem: Problem) -> Table:
    """What each searcher reached, and whether the best one is really better."""
    from scipy.stats import rankdata

    groups = np.unique(problem.searcher).tolist()
    scores = [problem.score[problem.searcher == group] for group in groups]
    units = [problem.units[problem.searcher == group] for group in groups]
    together = rankdata(np.concatenate(scores))
    ranks = np.split(together, np.cumsum([len(some) for some in scores])[:-1])
    order = sorted(
        range(len(groups)), key=lambda i: (quantile(scores[i], 0.5), float(ranks[i].mean()), i)
    )
    comparisons = compare_all(scores, units)
    failed = np.array([state == "failed" for state in problem.states])
    best = order[0]
    reached = None if problem.several else budgets_to_reach(problem, WITHIN)
    unit = f" [{problem.score_unit}]" if problem.score_unit else ""
    columns = ["agent", ">trials", ">median", ">95 % interval", ">best"]
    target = "optimum" if problem.exact else "best known"
    if reached is not None:
        columns += [f">median over {target}", ">within 1 % of it", ">after simulations"]
    columns += [">against the first"]
    rows = []
    for i in order:
        mine = problem.searcher == groups[i]
        interval = median_interval(scores[i], units[i])
        cells = [
            study.searchers[groups[i]].name,
            _trials(scores[i], units[i], int((failed & mine).sum()), problem.stillborn[groups[i]]),
        ]
        cells += _median_cells(problem, interval)
        cells.append(_number(problem.natural_score(float(scores[i].min()))))
        if reached is not None:
            regret = problem.regret(np.array([quantile(problem.measures.best_cost[mine], 0.5)]))
            share = share_interval(np.isfinite(reached[mine]), units[i])
            median = quantile(reached[mine], 0.5)
            cells.append(f"+{regret[0]:.2%}" if np.isfinite(regret[0]) else "-")
            cells.append(f"{share.value:.0%} ({share.low:.0%} to {share.high:.0%})")
            cells.append(_number(median))
        cells.append(_verdict(comparisons, best, i))
        rows.append(cells)
    return Table(
        f"Results: {problem.score_name}{unit}",
        columns,
        rows,
        "Median over trials, its 95 % interval from order statistics (in brackets the range, "
        "where there are fewer than six). Within 1 %: share of trials with its 95 % Wilson "
        "interval, and the median budget that it took. Last column: p of a two-sided "
        "Mann-Whitney U test against the first row, corrected for all pairs (Holm), and the "
        "probability that a trial of this row is better than one of the first (Vargha and "
        f"Delaney's A). {_independence(problem)}"
        + (
            " Trials that failed count with what they had found until then; those that failed at "
            "once, before they had evaluated anything, count nowhere."
            if study.failures
            else ""
        ),
    )


def pairs_table(study: Study, problem: Problem) -> Table | None:
    """Corrected p-values of all pairs."""
    groups = np.unique(problem.searcher).tolist()
    if not 2 < len(groups) <= 12:
        return None
    scores = [problem.score[problem.searcher == group] for group in groups]
    units = [problem.units[problem.searcher == group] for group in groups]
    found = {(c.first, c.second): c for c in compare_all(scores, units)}
    if not found:
        return None
    names = [study.searchers[group].name for group in groups]
    rows = []
    for i, name in enumerate(names):
        cells = [name]
        for j in range(len(names)):
            pair = found.get((min(i, j), max(i, j)))
            cells.append("" if i == j else "-" if pair is None else _p(pair.p))
        rows.append(cells)
    return Table(
        "All pairs",
        ["p (Mann-Whitney U, Holm)", *(f">{name}" for name in names)],
        rows,
        f"Bold: different at 5 %, corrected for the number of pairs. {_independence(problem)}",
    )


def settings_table(study: Study, problem: Problem) -> list[Table]:
    """The hyperparameter lottery: what the choice of hyperparameters does to each agent."""
    sets = problem.setting
    agents: dict[str, list[int]] = {}
    for number in np.unique(sets).tolist():
        agents.setdefault(study.setting_agent[number], []).append(number)
    if all(len(some) < 2 for some in agents.values()):
        return []
    medians = {n: quantile(problem.score[sets == n], 0.5) for some in agents.values() for n in some}
    unit = f" [{problem.score_unit}]" if problem.score_unit else ""
    rows = []
    simple = min(
        (medians[n] for name, some in agents.items() if name == "random" for n in some),
        default=None,
    )
    for agent, some in agents.items():
        ranked = sorted(some, key=lambda n: medians[n])
        values = np.array([medians[n] for n in some])
        cells = [agent.rpartition(":")[2], f"{len(some):,}"]
        cells += [
            _number(problem.natural_score(quantile(values, share))) for share in (0.0, 0.5, 1.0)
        ]
        if simple is not None:
            beaten = float((values < simple).mean())
            cells.append("" if agent == "random" else f"{beaten:.0%}")
        cells += [_setting(study, ranked[0]), _setting(study, ranked[-1]) if len(some) > 1 else ""]
        rows.append(cells)
    columns = ["agent", ">sets", f">best{unit}", ">middle", ">worst"]
    columns += [">better than random"] if simple is not None else []
    return [
        Table(
            "The hyperparameter lottery",
            [*columns, "best set", "worst set"],
            rows,
            f"Of each set of hyperparameters the median {problem.score_name} over seeds; of these "
            "the best, the median and the worst set, and the share of sets whose median beats that "
            "of random search. The best of many sets is better than it will be again: choose on "
            "other seeds than those that you report.",
        )
    ]


def reasons_table(study: Study, problem: Problem) -> list[Table]:
    """Why proposals were illegal, infeasible or failed."""
    totals: Counter[tuple[int, str]] = Counter()
    for (trial, reason), count in problem.measures.reasons.items():
        totals[int(problem.searcher[trial]), reason] += count
    if not totals:
        return []
    overall: Counter[str] = Counter()
    for (_, reason), count in totals.items():
        overall[reason] += count
    groups = np.unique(problem.searcher).tolist()
    proposals = {g: int(problem.measures.counts[problem.searcher == g].sum()) for g in groups}
    rows = [
        [
            reason,
            f"{count:,}",
            *(f"{totals[g, reason] / max(1, proposals[g]):.1%}" for g in groups),
        ]
        for reason, count in overall.most_common(_MOST_REASONS)
    ]
    more = len(overall) - len(rows)
    return [
        Table(
            "Why designs were not good",
            ["reason", ">times", *(f">{study.searchers[g].name}" for g in groups)],
            rows,
            "Share of each agent's proposals, duplicates included."
            + (f" {more} rarer reasons are left out." if more else ""),
        )
    ]


def overview_table(study: Study) -> Table:
    """What was searched, and the best that was found."""
    rows = []
    for problem in study.problems:
        measures = problem.measures
        number = int(measures.best_cost.argmin())
        found = bool(np.isfinite(measures.best_cost[number]))
        goals = problem.objective.goals
        baseline = ", ".join(
            _number(_natural(problem, i, float(problem.baseline[i]))) for i in range(len(goals))
        )
        best = ", ".join(
            _number(_natural(problem, i, float(measures.best[:, i].min())))
            for i in range(len(goals))
        )
        change = (
            f"{math.expm1(float(measures.best_cost[number])):+.1%}"
            if found and not problem.several and not problem.baseline_breaks
            else ""
        )
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
                ("exact, reached" if regret < 1e-9 else f"exact, +{regret:.2%}")
                if problem.exact and found
                else ("exact" if problem.exact else "not known"),
            ]
        )
    return Table(
        "Problems",
        ["problem", "goal", ">trials", ">baseline", ">best", ">change", "found by", "optimum"],
        rows,
        "Best of all trials that keeps all limits; with several goals the best value of each. "
        "Change: against the baseline design, less is better"
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
            f" Friedman's test that all are alike: p {_relation(_p(ranking.friedman_p))}. "
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
        change = f"{shown[1] / shown[0] - 1:+.2%}" if np.isfinite(shown).all() and shown[0] else "-"
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
                change,
                _p(p) if np.isfinite(p) else "-",
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
        "p: two-sided Mann-Whitney U test, corrected for all rows (Holm). P: probability that a "
        "trial of the second is better than one of the first, ties counting half. "
        f"{_independence(*study.problems)}{_unpaired(study, twins)}",
    )


def failures_table(study: Study) -> list[Table]:
    """Why trials failed, and how many."""
    if not study.failures:
        return []
    by_reason: dict[tuple[int, str], list[str]] = {}
    for trial_id, reason in study.failures.items():
        by_reason.setdefault(reason, []).append(trial_id)
    ordered = sorted(by_reason.items(), key=lambda pair: -len(pair[1]))
    rows = [
        [study.searchers[searcher].name, reason, f"{len(trials):,}", ", ".join(trials[:3])]
        for (searcher, reason), trials in ordered[:_MOST_REASONS]
    ]
    more = len(ordered) - len(rows)
    return [
        Table(
            "Why trials failed",
            ["agent", "reason", ">trials", "such as"],
            rows,
            "Each trial is in the list at the end, and its traceback in the run's folder errors."
            + (f" {more} rarer reasons are left out." if more else ""),
        )
    ]


def failed_trials_table(study: Study) -> list[Table]:
    """Trials that ended in an error, for looking up."""
    if not study.failures:
        return []
    some = list(study.failures.items())[:_MOST_FAILURES]
    more = len(study.failures) - len(some)
    note = f"{more:,} more are in results/trials.parquet of the run." if more else ""
    rows = [[trial_id, error] for trial_id, (_, error) in some]
    return [Table("Trials that failed", ["trial", "why"], rows, note)]


def _trials(
    scores: NDArray[np.float64], units: NDArray[np.int64], failed: int, stillborn: int
) -> str:
    """How many there are, as in ``480 of 10 seeds, 3 failed``."""
    seeds = len(np.unique(units))
    parts = [f"{len(scores):,}" + (f" of {seeds:,} seeds" if seeds < len(scores) else "")]
    parts += [f"{failed:,} failed"] if failed else []
    parts += [f"{stillborn:,} more failed at once"] if stillborn else []
    return ", ".join(parts)


def _independence(*problems: Problem) -> str:
    """What counts as an independent repetition in intervals and tests."""
    pooled = any(
        len(np.unique(problem.units[mine])) < mine.sum()
        for problem in problems
        for mine in (problem.searcher == n for n in np.unique(problem.searcher).tolist())
    )
    if not pooled:
        return "The unit of independence is the trial, each with a seed of its own."
    return (
        "The unit of independence is the seed: trials of one seed with several sets of "
        "hyperparameters share its luck, so intervals take the median of each seed's trials, "
        "tests their mean rank, and intervals of shares what varies between seeds. They speak of "
        "these sets of hyperparameters, not of others."
    )


def _unpaired(study: Study, twins: Mapping[str, Mapping[int, int]]) -> str:
    """What only one of two compared runs has."""
    alone = [
        study.searchers[n].name for both in twins.values() if len(both) == 1 for n in both.values()
    ]
    if not alone:
        return ""
    shown = ", ".join(alone[:_MOST_REASONS]) + (", ..." if len(alone) > _MOST_REASONS else "")
    return f" Only one of the two has {shown}; --by agent compares agents whatever their settings."


def _natural(problem: Problem, goal: int, value: float) -> float:
    return -value if problem.objective.goals[goal].kind == "maximize" else value


def _median_cells(problem: Problem, interval: Interval) -> list[str]:
    ends = sorted((problem.natural_score(interval.low), problem.natural_score(interval.high)))
    text = f"{_number(ends[0])} to {_number(ends[1])}"
    return [
        _number(problem.natural_score(interval.value)),
        text if interval.exact else f"[{text}]",
    ]


def _verdict(comparisons: Sequence[Comparison], best: int, mine: int) -> str:
    if best == mine:
        return ""
    for one in comparisons:
        if {one.first, one.second} == {best, mine}:
            mine_better = one.superiority if one.first == mine else 1 - one.superiority
            return f"{_p(one.p)}, A = {mine_better:.2f}"
    return "-"


def _setting(study: Study, number: int) -> str:
    title = study.settings[number]
    return title.partition(" ")[2] or "defaults"


def _p(value: float) -> str:
    text = "< 0.0001" if value < 1e-4 else f"{value:.2g}" if value < 0.1 else f"{value:.2f}"
    return f"*{text}" if value < SIGNIFICANT else text


def _relation(p: str) -> str:
    text = p.removeprefix("*")
    return text if text.startswith("<") else f"= {text}"


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "-"
    if value != 0 and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.4g}"
    return f"{value:,.5g}" if abs(value) < 1e5 else f"{value:,.0f}"


def _with_unit(value: float, unit: str) -> str:
    return f"{_number(value)} {unit}".rstrip()
