"""Takes in the rows of earlier problems, a block at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from archgym.data.designs import looked_up
from archgym.environment.environment import Environment
from archgym.history.account import SourceAccount
from archgym.history.earlier import Earlier
from archgym.history.pool import Kept, Pool, design_words, number_of_scores, scores
from archgym.history.transfer import transferred
from archgym.history.translation import Sieve, Translation
from archgym.problem.status import STATUS_OF, Status
from archgym.space import Designs

__all__ = ["SourceReader", "hand_out"]

_FAILED = (Status.FAILED, Status.TIMEOUT)


@dataclass
class SourceReader:
    """Takes in the rows of one earlier problem.

    Attributes:
        key: of the problem, see :func:`archgym.history.problem.problem_key`.
        name: of the source.
        environment: in which is searched.
        baseline: metrics of the baseline design, shape (n_metrics,).
        now: metrics of the baseline design of the environment, shape (n_metrics,).
        differences: in what the problem differs from that of the environment.
        refused: why none of its rows can be used; empty if they can.
        folders: datasets that hold rows of it.
        pool: designs that are kept.
        rows: number of rows.
        left_out: number of rows that are not used, by the reason.
    """

    key: tuple[Any, ...]
    name: str
    environment: Environment
    baseline: NDArray[np.float64]
    now: NDArray[np.float64]
    differences: tuple[str, ...]
    refused: str
    folders: list[str] = field(default_factory=list)
    pool: Pool = field(default_factory=Pool)
    rows: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def why_not(self) -> str:
        """Why there is no design."""
        if self.refused or not self.left_out:
            return self.refused or "no row"
        return ", ".join(f"{n:,} {reason}" for reason, n in self.left_out.items())

    def take(self, found: Kept, failed: NDArray[np.bool_]) -> None:
        """Takes in rows that can be used; ``scores`` are not set yet."""
        bad = found.take(np.flatnonzero(failed))
        new = self.pool.unseen_failed(bad.words)
        self.pool.add_failed(bad.take(new))
        good = found.take(np.flatnonzero(~failed))
        good = good.take(self.pool.unseen(good.words))
        if len(good.words):
            designs = Designs(self.environment.design_space, good.codes)
            outcomes = transferred(
                designs, good.metrics, good.status, self.baseline, self.environment, self.now
            )
            self.pool.add(good._replace(scores=scores(outcomes)))

    def finish(self) -> tuple[Earlier | None, SourceAccount]:
        """The source, if there is a design, and what became of all rows."""
        kept = self.pool.kept()
        used = 0 if kept is None else len(kept.words)
        more = self.pool.distinct - used
        left_out = Counter(self.left_out)
        if twice := self.rows - left_out.total() - self.pool.distinct:
            left_out["that repeat a design"] = twice
        if more:
            left_out["beyond the best and a sample of the others"] = more
        differs = self.differences
        if kept is not None and kept.moved.any():
            differs += (
                f"with the nearest values in {np.count_nonzero(kept.moved):,} of the designs",
            )
        refused = self.refused or ("" if used else self.why_not)
        account = SourceAccount(
            self.name, tuple(self.folders), self.rows, used, dict(left_out), differs, refused
        )
        if kept is None or not used:
            return None, account
        earlier = Earlier(
            self.name, kept.codes, kept.metrics, kept.status, self.baseline, same=not differs
        )
        return earlier, account


def hand_out(
    table: pa.Table,
    of: NDArray[np.int64],
    readers: Sequence[SourceReader],
    usable: NDArray[np.bool_],
    translation: Translation,
    environment: Environment,
) -> None:
    """Hands those rows of a block that can be used to the readers of their problems.

    Args:
        table: the rows.
        of: number of the reader of each row, shape (n_rows,).
        readers: of the problems.
        usable: whether the rows of each reader can be used, shape (n_readers,).
        translation: of their designs.
        environment: in which is searched.
    """
    sieve = Sieve(table.num_rows)
    sieve.keep(usable[of], "")
    status = looked_up(table["status"], lambda text: STATUS_OF.get(text, -1), np.int8)
    full = table["fidelity"].to_numpy() == 1.0
    sieve.keep(full[sieve.left], "at a lower fidelity")
    sieve.keep(status[sieve.left] != Status.STOPPED, "of a run that was stopped early")
    known = np.isin(status, (Status.OK, *_FAILED))
    sieve.keep(known[sieve.left], "of a design that was illegal")
    metrics = np.full((table.num_rows, len(environment.metrics)), np.nan, order="F")
    for column, metric in enumerate(environment.metrics):
        if f"metric.{metric.name}" in table.column_names:
            metrics[:, column] = table[f"metric.{metric.name}"].to_numpy()
    names = [metric.name for metric in environment.metrics]
    needed = [names.index(name) for name in environment.objective.metric_names()]
    signed = np.array([metric.signed for metric in environment.metrics], dtype=np.bool_)
    failed = np.isin(status, _FAILED)
    sound = np.isfinite(metrics[:, needed]) & ((metrics[:, needed] >= 0) | signed[needed])
    for column, place in enumerate(needed):
        wanted = failed | sound[:, column]
        sieve.keep(wanted[sieve.left], f"without {names[place]}")
    translated = translation.designs(table, sieve)
    left, codes = sieve.left, translated.designs.codes
    words = design_words(environment.design_space, codes)
    unscored = np.full((len(left), number_of_scores(environment.objective)), np.inf)
    found = Kept(words, codes, metrics[left], status[left], translated.moved, unscored)
    for number in np.unique(of[left]).tolist():
        rows = np.flatnonzero(of[left] == number)
        readers[number].take(found.take(rows), failed[left[rows]])
    for number in np.unique(of).tolist():
        readers[number].left_out += sieve.counts(of == number)
