"""Earlier evaluations, scored by the objective of the problem that is searched now."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from archgym.evaluation.outcome import Outcomes
from archgym.evaluation.trial_info import HistoryInfo, SourceInfo
from archgym.history.account import SourceAccount
from archgym.space import Designs

HistoryPaths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A folder, or several: each of a run or a dataset."""


@dataclass(frozen=True)
class HistorySource:
    """What was evaluated for one earlier problem.

    Attributes:
        name: what messages and reports call it.
        outcomes: of distinct designs at full fidelity, in the design space of the problem that is
            searched now, scored by its objective and limits; costs are relative to the baseline
            of the earlier problem.
        same: whether it is the same problem but for objective, limits and parameters that were
            held: the same environment, simulator, source, workload and settings. Its metrics are
            then those that the simulator would give now.
        ordered: whether the outcomes stand in the order in which their designs are to be
            evaluated; otherwise the best come first.
    """

    name: str
    outcomes: Outcomes
    same: bool = False
    ordered: bool = False

    def __len__(self) -> int:
        return len(self.outcomes)


@dataclass(frozen=True)
class History:
    """The sources that a search may learn from; it decides by itself how far it trusts each.

    Attributes:
        sources: the earlier problems, in the order in which they were given.
        accounts: of each earlier problem that was read, those that are no source included: which
            rows were used, and why others were not.
    """

    sources: tuple[HistorySource, ...] = ()
    accounts: tuple[SourceAccount, ...] = ()

    def __len__(self) -> int:
        return len(self.sources)

    def __iter__(self) -> Iterator[HistorySource]:
        return iter(self.sources)

    def info(self, first: Designs, ignored: Collection[int] = ()) -> HistoryInfo:
        """The description that is recorded of a search.

        Args:
            first: the designs that it suggests to begin with.
            ignored: places of the sources of which the search made no use.
        """
        digest = hashlib.sha256()
        for source in self.sources:
            known = source.outcomes
            head = [source.name, source.same, list(known.metrics.shape)]
            digest.update(json.dumps(head).encode())
            for array in (known.designs.codes, known.metrics, known.costs, known.status):
                digest.update(np.ascontiguousarray(array).tobytes())
        sources = [
            SourceInfo(one.name, len(one), one.same, used=place not in ignored)
            for place, one in enumerate(self.sources)
        ]
        return HistoryInfo(sources, digest.hexdigest(), list(map(str, first.keys())))

    def start(self, n: int) -> Designs:
        """The best feasible designs: the best of each source, then the second of each, and so on.

        Args:
            n: how many at most.
        """
        ranked = []
        for source in self.sources:
            good = np.flatnonzero(source.outcomes.feasible)
            order = source.outcomes.reward[good].argsort(kind="stable")[::-1]
            if source.ordered:
                good = order = np.arange(len(source))
            ranked.append(source.outcomes.designs[good[order][:n]])
        found: dict[int, Designs] = {}
        for place in range(n):
            for designs in ranked:
                if place < len(designs):
                    one = designs[place : place + 1]
                    found.setdefault(one.keys()[0], one)
        first, *others = list(found.values())[:n] or [self.sources[0].outcomes.designs[:0]]
        return functools.reduce(Designs.concatenate, others, first)
