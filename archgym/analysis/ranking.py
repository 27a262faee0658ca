"""Ranking of a study's searchers over its problems."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archgym.analysis.statistics import Interval, Ranking, rank
from archgym.analysis.study import Problem, Study


@dataclass(frozen=True)
class RankedSearcher:
    """One searcher of a ranking.

    Attributes:
        index: of the searcher in the study.
        name: of the searcher.
        mean_rank: over the problems, with its bootstrap interval.
        wins: problems on which it has the best median, alone or with others.
    """

    index: int
    name: str
    mean_rank: Interval
    wins: int


@dataclass(frozen=True)
class StudyRanking:
    """Searchers by their mean rank, the best one first.

    Attributes:
        searchers: that are ranked.
        problems: number of problems on which they are.
        tests: ranks and tests over all of them.
    """

    searchers: list[RankedSearcher]
    problems: int
    tests: Ranking


def rank_searchers(study: Study) -> StudyRanking | None:
    """Ranks searchers on the problems that all of them searched; ``None`` for fewer than two.

    If not all searched the same, those searchers and problems are taken that give most pairs of
    the two. Problems of which no trial found anything feasible are left out.
    """
    searchers, problems = _comparable(study)
    if len(searchers) < 2:
        return None
    groups = [[{g.searcher: g for g in p.groups}[n] for n in searchers] for p in problems]
    scores = [[group.scores for group in some] for some in groups]
    units = [[group.units for group in some] for some in groups]
    found = rank(scores, np.random.default_rng(0), units)
    wins = (found.by_problem == found.by_problem.min(axis=1, keepdims=True)).sum(axis=0)
    ranked = [
        RankedSearcher(number, study.searchers[number].name, found.ranks[i], int(wins[i]))
        for i, number in enumerate(searchers)
    ]
    return StudyRanking(sorted(ranked, key=lambda one: one.mean_rank.value), len(problems), found)


def _comparable(study: Study) -> tuple[list[int], list[Problem]]:
    solved = [n for n, problem in enumerate(study.problems) if problem.found]
    searched = {
        searcher: frozenset(n for n in solved if (study.problems[n].searcher == searcher).any())
        for searcher in range(len(study.searchers))
    }
    best: tuple[list[int], frozenset[int]] = [], frozenset()
    for some in dict.fromkeys(searched.values()):
        groups = [searcher for searcher, mine in searched.items() if mine >= some]
        if len(groups) > 1 and len(groups) * len(some) > len(best[0]) * len(best[1]):
            best = groups, some
    return best[0], [study.problems[n] for n in sorted(best[1])]
