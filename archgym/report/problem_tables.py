"""The tables of one problem: results, pairs of agents, and sets of hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from archgym.analysis.curves import budgets_to_reach
from archgym.analysis.statistics import (
    Comparison,
    Interval,
    compare_all,
    median_interval,
    quantile,
    share_interval,
)
from archgym.analysis.study import Problem, Study
from archgym.experiment.results.tables import regret_text
from archgym.report.panels import WITHIN
from archgym.report.table import Table, independence, number_text, p_text

__all__ = ["pairs_table", "results_table", "settings_table"]


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
        cells.append(number_text(problem.natural_score(float(scores[i].min()))))
        if reached is not None:
            regret = problem.regret(np.array([quantile(problem.measures.best_cost[mine], 0.5)]))
            share = share_interval(np.isfinite(reached[mine]), units[i])
            median = quantile(reached[mine], 0.5)
            cells.append(f"+{regret_text(regret[0])}" if np.isfinite(regret[0]) else "-")
            cells.append(f"{share.value:.0%} ({share.low:.0%} to {share.high:.0%})")
            cells.append(number_text(median))
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
        f"Delaney's A). {independence(problem)}"
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
            cells.append("" if i == j else "-" if pair is None else p_text(pair.p))
        rows.append(cells)
    return Table(
        "All pairs",
        ["p (Mann-Whitney U, Holm)", *(f">{name}" for name in names)],
        rows,
        f"Bold: different at 5 %, corrected for the number of pairs. {independence(problem)}",
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
            number_text(problem.natural_score(quantile(values, share))) for share in (0.0, 0.5, 1.0)
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


def _trials(
    scores: NDArray[np.float64], units: NDArray[np.int64], failed: int, stillborn: int
) -> str:
    """How many there are, as in ``480 of 10 seeds, 3 failed``."""
    seeds = len(np.unique(units))
    parts = [f"{len(scores):,}" + (f" of {seeds:,} seeds" if seeds < len(scores) else "")]
    parts += [f"{failed:,} failed"] if failed else []
    parts += [f"{stillborn:,} more failed at once"] if stillborn else []
    return ", ".join(parts)


def _median_cells(problem: Problem, interval: Interval) -> list[str]:
    ends = sorted((problem.natural_score(interval.low), problem.natural_score(interval.high)))
    text = f"{number_text(ends[0])} to {number_text(ends[1])}"
    return [
        number_text(problem.natural_score(interval.value)),
        text if interval.exact else f"[{text}]",
    ]


def _verdict(comparisons: Sequence[Comparison], best: int, mine: int) -> str:
    if best == mine:
        return ""
    for one in comparisons:
        if {one.first, one.second} == {best, mine}:
            mine_better = one.superiority if one.first == mine else 1 - one.superiority
            return f"{p_text(one.p)}, A = {mine_better:.2f}"
    return "-"


def _setting(study: Study, number: int) -> str:
    title = study.settings[number]
    return title.partition(" ")[2] or "defaults"
