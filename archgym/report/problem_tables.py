"""The tables of one problem: results, pairs of agents, Pareto set, sets of hyperparameters."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from archgym.analysis.curves import budgets_to_reach
from archgym.analysis.measures import WITHIN
from archgym.analysis.statistics import median_interval, quantile, quantiles, share_interval
from archgym.analysis.study import Group, Problem, Study
from archgym.experiment.results.texts import (
    common_values,
    design_text,
    regret_text,
    seed_text,
)
from archgym.problem.goals import goal_label
from archgym.report.designs import ShownDesign
from archgym.report.table import Table, independence, number_text, p_text

_MAX_PAIRED = 12


def results_table(study: Study, problem: Problem) -> Table:
    """Scores of each searcher, and whether the best one is significantly better."""
    from scipy.stats import rankdata

    groups = problem.groups
    ranks = rankdata(np.concatenate([group.scores for group in groups]))
    parts = np.split(ranks, np.cumsum([len(group.scores) for group in groups])[:-1])
    means = [float(some.mean()) for some in parts]
    order = sorted(range(len(groups)), key=lambda i: (quantile(groups[i].scores, 0.5), means[i], i))
    reached = None if problem.several else budgets_to_reach(problem, WITHIN)
    columns = ["agent", ">trials", ">median", ">95 % interval", ">best"]
    if reached is not None:
        target = "optimum" if problem.exact else "best known"
        columns += [f">median over {target}", ">within 1 % of it", ">after simulations"]
    rows = []
    for i in order:
        group = groups[i]
        interval = median_interval(group.scores, group.units)
        ends = map(problem.natural_score, (interval.low, interval.high))
        span = " to ".join(map(number_text, sorted(ends)))
        best = problem.natural_score(float(group.scores.min()))
        cells = [
            group.name,
            _trials(problem, group),
            number_text(problem.natural_score(interval.value)),
            span if interval.exact else f"[{span}]",
            number_text(best),
        ]
        if reached is not None:
            mine = reached[group.trials]
            median = np.array([quantile(problem.measures.best_cost[group.trials], 0.5)])
            regret = problem.regret(median)[0]
            share = share_interval(np.isfinite(mine), group.units)
            cells.append(f"+{regret_text(regret)}" if np.isfinite(regret) else "-")
            cells.append(f"{share.value:.0%} ({share.low:.0%} to {share.high:.0%})")
            cells.append(number_text(quantile(mine, 0.5)))
        against = "" if i == order[0] else "-"
        if pair := problem.comparisons.get(frozenset((order[0], i))):
            better = pair.superiority if pair.first == i else 1 - pair.superiority
            against = f"{p_text(pair.p)}, A = {better:.2f}"
        rows.append([*cells, against])
    return Table(
        f"Results: {problem.score_label}",
        [*columns, ">against the first"],
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


def pairs_table(problem: Problem) -> Iterator[Table]:
    """Corrected p-values of all pairs."""
    groups = problem.groups
    if not 2 < len(groups) <= _MAX_PAIRED or not problem.comparisons:
        return
    rows = [[group.name, *([""] * len(groups))] for group in groups]
    for i, j in itertools.permutations(range(len(groups)), 2):
        pair = problem.comparisons.get(frozenset((i, j)))
        rows[i][j + 1] = "-" if pair is None else p_text(pair.p)
    yield Table(
        "All pairs",
        ["p (Mann-Whitney U, Holm)", *(f">{group.name}" for group in groups)],
        rows,
        f"Bold: different at 5 %, corrected for the number of pairs. {independence(problem)}",
    )


def front_table(problem: Problem, shown: Sequence[ShownDesign]) -> Table:
    """Goals of the designs of the Pareto set, and the parameters in which they differ.

    Args:
        problem: one with several goals.
        shown: of its Pareto set; at least one.
    """
    values = problem.goal_values([one.metrics for one in shown])
    alike = common_values([one.design for one in shown])
    rows = []
    for one, found in zip(shown, values.tolist(), strict=True):
        own = {name: value for name, value in one.design.items() if name not in alike}
        by = f"{one.name}{seed_text(one.seed)}"
        rows.append([*map(number_text, found), by, design_text(own)])
    size = len(problem.pareto_set[0])
    count = f"{len(shown):,} of its {size:,} designs" if size > len(shown) else f"{size:,} designs"
    labels = [goal_label(goal, problem.metrics) for goal in problem.objective.goals]
    return Table(
        "Pareto set of all trials",
        [*(f">{label}" for label in labels), "found by", "design"],
        rows,
        f"Designs that keep all limits and that no other beats in every goal: {count}, by the "
        "first goal. Below, each with its metrics and the command that evaluates it again."
        + (f" All of them: {design_text(alike)}." if alike else ""),
    )


def settings_table(study: Study, problem: Problem) -> Iterator[Table]:
    """The hyperparameter lottery: how much the choice of hyperparameters matters to each agent."""
    agents: dict[str, dict[int, float]] = {}
    for number in np.unique(problem.setting).tolist():
        median = quantile(problem.score[problem.setting == number], 0.5)
        agents.setdefault(study.setting_agent[number], {})[number] = median
    if all(len(medians) < 2 for medians in agents.values()):
        return
    random = min(agents.get("random", {}).values(), default=None)
    rows = []
    for agent, medians in agents.items():
        values = np.array(list(medians.values()))
        ranked = sorted(medians, key=lambda n: medians[n])
        titles = [study.settings[n].partition(" ")[2] or "defaults" for n in ranked]
        cells = [agent.rpartition(":")[2], f"{len(values):,}"]
        shown = problem.natural_scores(quantiles(values, (0.0, 0.5, 1.0)))
        cells += map(number_text, shown.tolist())
        if random is not None:
            cells.append("" if agent == "random" else f"{(values < random).mean():.0%}")
        rows.append([*cells, titles[0], titles[-1] if len(titles) > 1 else ""])
    unit = f" [{problem.score_unit}]" if problem.score_unit else ""
    columns = ["agent", ">sets", f">best{unit}", ">middle", ">worst"]
    columns += [">better than random"] if random is not None else []
    yield Table(
        "The hyperparameter lottery",
        [*columns, "best set", "worst set"],
        rows,
        f"Of each set of hyperparameters the median {problem.score_name} over seeds; of these "
        "the best, the median and the worst set, and the share of sets whose median beats that "
        "of random search. The best of many sets is better than it will be again: choose on "
        "other seeds than those that you report.",
    )


def _trials(problem: Problem, group: Group) -> str:
    """Number of trials, as in ``480 of 10 seeds, 3 failed``."""
    n, seeds = len(group.trials), len(np.unique(group.units))
    failed = sum(problem.trials[i].state == "failed" for i in group.trials.tolist())
    stillborn = problem.stillborn[group.searcher]
    parts = [f"{n:,}" + (f" of {seeds:,} seeds" if seeds < n else "")]
    parts += [f"{failed:,} failed"] if failed else []
    parts += [f"{stillborn:,} more failed at once"] if stillborn else []
    return ", ".join(parts)
