"""The sections of a report, in their order: of the study and of every problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from archgym.analysis.ranking import StudyRanking, rank_searchers
from archgym.analysis.study import Problem, Study
from archgym.charts.description import Axis, Chart, Series
from archgym.report import search_charts
from archgym.report.designs import ShownDesign, best_designs, front_designs
from archgym.report.explanation_tables import explanation_tables
from archgym.report.held_out_table import held_out_table
from archgym.report.history_table import history_table
from archgym.report.problem_tables import front_table, pairs_table, results_table, settings_table
from archgym.report.space_charts import (
    good_values_chart,
    importance_chart,
    parallel_coordinates,
)
from archgym.report.study_tables import (
    comparison_table,
    failures_table,
    overview_table,
    ranking_table,
    reasons_table,
)
from archgym.report.table import Table

_FIRST_PROBLEMS = 2


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


def overview(study: Study, points: int = 0) -> Section:
    """The study as a whole: its first problems, the ranking over all of them, and what changed.

    Args:
        study: the study.
        points: of the curves of its first problems, at most; these are left out if 0.
    """
    tables = [comparison_table(study)] if study.compared is not None else []
    tables.append(overview_table(study))
    charts = []
    for number, problem in enumerate(study.problems[: _FIRST_PROBLEMS if points else 0]):
        if problem.found:
            curves = next(search_charts.best_so_far(problem, points))
            charts.append(replace(curves, key=f"first_{number + 1}", title=problem.name, note=""))
    if ranking := rank_searchers(study):
        charts.append(_ranking_chart(ranking))
        tables.append(ranking_table(ranking))
    return Section("overview", "Overview", charts, [*tables, *failures_table(study)])


def problem_sections(study: Study, problem: Problem, points: int, designs: int) -> list[Section]:
    """Everything about one problem.

    Args:
        study: the study.
        problem: one of its problems.
        points: of a curve, at most.
        designs: in parallel coordinates, at most.
    """
    parallel = list(parallel_coordinates(problem, designs))
    proposals = Section(
        "proposals",
        "Feasibility and time",
        [
            search_charts.feasibility(problem),
            search_charts.time_split(problem),
            *search_charts.utilisation(problem, points),
        ],
        list(reasons_table(problem)),
    )
    if not problem.found:  # there are no best values to draw or compare
        return [Section("parameters", "Parameters", parallel), proposals]
    parallel_runs = any(len(flights) for flights in problem.measures.flights)
    by_budget = search_charts.best_so_far(problem, points)
    by_time = search_charts.best_so_far(problem, points, "wall" if parallel_runs else "busy")
    regrets = [*search_charts.regrets(problem, points), *search_charts.reaching(problem, points)]
    fronts = [*search_charts.hypervolumes(problem), *search_charts.fronts(problem)]
    front = front_designs(problem)
    front_tables = [front_table(problem, front)] if front else []
    tables = (*pairs_table(problem), *held_out_table(problem), *history_table(problem))
    results = [results_table(study, problem), *tables]
    spread, settings = [search_charts.lottery(study, problem)], list(settings_table(study, problem))
    sections = [
        Section("progress", "Best so far", [*by_budget, *by_time]),
        Section("regret", "Regret and probability", regrets),
        Section("pareto", "Pareto", fronts, front_tables, front),
        Section("results", "Results and significance", (), results),
        Section("lottery", "Spread", spread, settings),
        Section(
            "parameters",
            "Parameters",
            [*importance_chart(problem), *good_values_chart(problem), *parallel],
        ),
        proposals,
        Section("designs", "Best designs", designs=best_designs(problem)),
        Section("explained", "Why the best", (), list(explanation_tables(study, problem))),
    ]
    return [one for one in sections if one.charts or one.tables or one.designs]


def _ranking_chart(ranking: StudyRanking) -> Chart:
    series = []
    for one in ranking.searchers:
        mean = one.mean_rank
        ends = {"low": [mean.low], "high": [mean.high]}
        series.append(Series(one.name, one.index, [mean.value], **ends))
    difference = ranking.tests.critical_difference
    critical = f" Critical difference (Nemenyi, 5 %): {difference:.2f}."
    over = "problem" if ranking.problems == 1 else "problems"
    return Chart(
        key="ranking",
        kind="intervals",
        title=f"Ranking of agents over {ranking.problems} {over}",
        x=Axis("mean rank, 1 is best", low=0.8, high=len(series) + 0.2),
        series=series,
        categories=[one.name for one in series],
        note="Ends: 95 % bootstrap interval, over problems and seeds."
        + (critical if np.isfinite(difference) else ""),
    )
