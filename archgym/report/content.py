"""What a report shows, in its order: the sections of the study and of every problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from archgym.analysis.statistics import Ranking, rank
from archgym.analysis.study import Problem, Study
from archgym.charts.charts import Axis, Chart, Series
from archgym.report import panels
from archgym.report.designs import ShownDesign, best_designs, front_designs
from archgym.report.failure_tables import failures_table, reasons_table
from archgym.report.front_table import front_table
from archgym.report.problem_tables import pairs_table, results_table, settings_table
from archgym.report.space_charts import importance_chart, parallel_coordinates
from archgym.report.study_tables import comparison_table, overview_table, ranking_table
from archgym.report.table import Table

__all__ = ["Section", "overview", "problem_sections"]


@dataclass(frozen=True)
class Section:
    """A part of the report.

    Attributes:
        key: a word that names it.
        title: its heading.
        charts: what is drawn.
        tables: what is listed.
        designs: what is shown of single designs.
    """

    key: str
    title: str
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()
    designs: Sequence[ShownDesign] = field(default_factory=list)


def overview(study: Study) -> Section:
    """The study as a whole: what was searched, who is best over all problems, and what changed."""
    tables = [overview_table(study)]
    charts = []
    groups, problems = _ranked(study)
    if len(groups) > 1 and problems:
        scores = [[p.score[p.searcher == group] for group in groups] for p in problems]
        units = [[p.units[p.searcher == group] for group in groups] for p in problems]
        ranking = rank(scores, np.random.default_rng(0), units)
        charts.append(_ranking_chart(study, ranking, groups, len(problems)))
        tables.append(ranking_table(study, ranking, groups, len(problems)))
    if study.compared is not None:
        tables.insert(0, comparison_table(study))
    tables += failures_table(study)
    return Section("overview", "Overview", charts, tables)


def problem_sections(study: Study, problem: Problem, points: int, designs: int) -> list[Section]:
    """Everything about one problem.

    Args:
        study: the study.
        problem: one of its problems.
        points: of a curve, at most.
        designs: in parallel coordinates, at most.
    """
    if not problem.found:  # there are no best values to draw or compare
        return [
            Section("parameters", "Parameters", parallel_coordinates(problem, designs)),
            _proposals(study, problem),
        ]
    progress = [
        *panels.best_so_far(study, problem, points),
        *panels.best_so_far(study, problem, points, time=True),
    ]
    pairs = pairs_table(study, problem)
    front = front_designs(problem)
    sections = [
        Section("progress", "Best so far", progress),
        Section(
            "regret",
            "Regret and probability",
            [*panels.regrets(study, problem, points), *panels.reaching(study, problem, points)],
        ),
        Section(
            "pareto",
            "Pareto",
            [*panels.hypervolumes(study, problem), *panels.fronts(study, problem)],
            [front_table(study, problem, front)] if front else [],
            front,
        ),
        Section(
            "results",
            "Results and significance",
            (),
            [results_table(study, problem), *([pairs] if pairs is not None else [])],
        ),
        Section(
            "lottery", "Spread", panels.lottery(study, problem), settings_table(study, problem)
        ),
        Section(
            "parameters",
            "Parameters",
            [*importance_chart(problem), *parallel_coordinates(problem, designs)],
        ),
        _proposals(study, problem),
        Section("designs", "Best designs", designs=best_designs(study, problem)),
    ]
    return [one for one in sections if one.charts or one.tables or one.designs]


def _proposals(study: Study, problem: Problem) -> Section:
    return Section(
        "proposals",
        "Feasibility and time",
        [panels.feasibility(study, problem), panels.time_split(study, problem)],
        reasons_table(study, problem),
    )


def _ranked(study: Study) -> tuple[list[int], list[Problem]]:
    """Searchers that are ranked, and the problems on which they are.

    If not all searched the same, those searchers and problems that give most pairs of the two.
    Problems of which no trial found anything feasible are left out.
    """
    solved = [n for n, problem in enumerate(study.problems) if problem.found]
    of = {
        searcher: frozenset(n for n in solved if (study.problems[n].searcher == searcher).any())
        for searcher in range(len(study.searchers))
    }
    best: tuple[list[int], frozenset[int]] = [], frozenset()
    for some in dict.fromkeys(of.values()):
        groups = [searcher for searcher, mine in of.items() if mine >= some]
        if len(groups) > 1 and len(groups) * len(some) > len(best[0]) * len(best[1]):
            best = groups, some
    return best[0], [study.problems[n] for n in sorted(best[1])]


def _ranking_chart(study: Study, ranking: Ranking, groups: Sequence[int], problems: int) -> Chart:
    order = sorted(range(len(groups)), key=lambda i: ranking.ranks[i].value)
    series = [
        Series(
            study.searchers[groups[i]].name,
            groups[i],
            x=[ranking.ranks[i].value],
            low=[ranking.ranks[i].low],
            high=[ranking.ranks[i].high],
        )
        for i in order
    ]
    critical = (
        f" Critical difference (Nemenyi, 5 %): {ranking.critical_difference:.2f}."
        if np.isfinite(ranking.critical_difference)
        else ""
    )
    over = "problem" if problems == 1 else "problems"
    return Chart(
        key="ranking",
        kind="intervals",
        title=f"Ranking of agents over {problems} {over}",
        x=Axis("mean rank, 1 is best", low=0.8, high=len(groups) + 0.2),
        y=Axis(""),
        series=series,
        categories=[one.name for one in series],
        note=f"Ends: 95 % bootstrap interval, over problems and seeds.{critical}",
    )
