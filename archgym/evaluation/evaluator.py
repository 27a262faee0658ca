"""The evaluation core: the one way of a design through a trial.

``step``, ``evaluate``, ``evaluate_batch`` and every view of an environment end in
:class:`Evaluator`, so that nothing escapes the budget or the dataset. A design's way is:

1. its rules are checked (:class:`archgym.space.DesignSpace`),
2. the budget has room for it (:mod:`archgym.evaluation.budget`),
3. duplicates are recognised (:mod:`archgym.evaluation.cache`),
4. a new one is taken from the log of a resumed trial (:mod:`archgym.evaluation.resumed_log`) or
   simulated, and goes into the cache,
5. it is scored (:mod:`archgym.evaluation.outcome_builder`),
6. its row is recorded (:mod:`archgym.evaluation.recorder_protocol`), and then counted.

One design goes through :meth:`Evaluator.evaluate_one` on plain numbers, many go through
:meth:`Evaluator.evaluate` on arrays.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import NoReturn

import numpy as np

from archgym.errors import BudgetExhausted, InvalidValueError, SpaceTooLargeError
from archgym.evaluation.budget import Budget
from archgym.evaluation.cache import EvaluationCache
from archgym.evaluation.outcome import Outcomes, Row
from archgym.evaluation.outcome_builder import OutcomeBuilder
from archgym.evaluation.recorder_protocol import Recorder
from archgym.problem import Metric, Status
from archgym.problem.fidelity import FULL, Fidelity
from archgym.problem.scoring import Scorer
from archgym.problem.simulator import MultiFidelitySimulator, Simulator
from archgym.simulators.result import check_results, read_result
from archgym.space import Designs, DesignSpace

_ILLEGAL = Status.ILLEGAL  # looked up once, which is faster


class Evaluator:
    """Evaluates designs for one trial.

    If a simulator or the recorder raises, the evaluation has not happened: nothing is counted,
    and nothing of its designs stays in the cache. A design is cached at each fidelity by itself.

    Attributes:
        simulations: distinct legal designs simulated so far, each fidelity by itself.
        proposals: designs proposed so far.
        duplicates: proposals that were in the cache.
        illegal: proposals that broke a rule or that the simulator does not cover.
    """

    def __init__(
        self,
        space: DesignSpace,
        metrics: Sequence[Metric],
        simulator: Simulator,
        scorer: Scorer,
        *,
        recorder: Recorder | None = None,
        budget: int | None = None,
        proposals_per_budget: int = 10,
        fidelities: Sequence[Fidelity] = (FULL,),
    ) -> None:
        self.simulations = self.proposals = self.duplicates = self.illegal = 0
        self._space, self._simulator, self._recorder = space, simulator, recorder
        self._metrics = tuple(metrics)
        self._names = tuple(metric.name for metric in metrics)
        self._given = simulator.metric_names
        self._budget = Budget(budget, proposals_per_budget, fidelities)
        # The level of a fidelity is its index from the full one, 0, downwards.
        values = [one.value for one in reversed(fidelities)]
        self._levels = {value: (level, value) for level, value in enumerate(values)}
        self._keys_of_level = space.largest_key + 1
        self._cache = EvaluationCache(len(metrics), len(values) * self._keys_of_level - 1)
        self._partial = 0  # rows of the cache that are below full fidelity
        self._scoring = OutcomeBuilder(self._names, scorer, self._cache)
        self._returned_at = time.perf_counter()
        self._in_agent = 0.0

    @property
    def budget(self) -> int | None:
        """Distinct legal designs that may be simulated, failed ones included; or no end."""
        return self._budget.limit

    @property
    def spent(self) -> float:
        """Budget spent so far: the simulations, each by the relative cost of its fidelity."""
        return self._budget.spent

    @property
    def exhausted(self) -> bool:
        """Whether no design is left that could be simulated: budget, proposals or space spent."""
        return self.budget is not None and (self._budget.exhausted or self._space_is_known)

    def evaluate(self, designs: Designs, fidelity: float = 1.0) -> Outcomes:
        """Evaluates designs in order; with a budget, as many of them as are left in it.

        Args:
            designs: of this space.
            fidelity: at which to simulate.

        Returns:
            Outcomes of the first ``len(result)`` designs: all, unless the budget ran out.

        Raises:
            BudgetExhausted: if nothing is left at all.
            InvalidValueError: if there is no such fidelity.
            ReplayMismatchError: if a resumed trial proposes another design than its log holds.
        """
        if len(designs) == 1:
            row = self.evaluate_one(designs.codes[0].tolist(), designs, fidelity)
            return Outcomes.of(row, designs, self._names)
        level, fidelity = self._levels.get(fidelity) or self._refuse(fidelity)
        room = self._room(len(designs), level)
        keys, reasons = designs.keys(), self._space.illegal_reasons(designs)
        if level:
            keys = [key + level * self._keys_of_level for key in keys]
        rows, new = self._cache.sort_out(keys, reasons, *room)
        if len(rows) < len(designs):
            designs = designs[: len(rows)]
        first = len(self._cache)
        seconds = self._simulate(designs, new, keys, fidelity)
        outcomes = self._scoring.many(designs, rows, new, reasons, seconds, fidelity)
        self._record(first, len(rows), outcomes.rows)
        illegal, cached = outcomes.status == _ILLEGAL, outcomes.cached
        counts = (~illegal & ~cached, illegal, cached)
        self._count(first, len(rows), level, *(int(np.count_nonzero(one)) for one in counts))
        return outcomes

    def evaluate_one(
        self, codes: Sequence[int], designs: Designs | None = None, fidelity: float = 1.0
    ) -> Row:
        """As :meth:`evaluate`, for one design.

        Args:
            codes: its canonical codes.
            designs: the same as a batch, if it is at hand.
            fidelity: at which to simulate.

        Raises:
            BudgetExhausted, InvalidValueError, ReplayMismatchError: as :meth:`evaluate`.
        """
        level, fidelity = self._levels.get(fidelity) or self._refuse(fidelity)
        room = self._room(1, level)
        key, reason = self._space.key(codes), self._space.illegal_reason(codes)
        if level:
            key += level * self._keys_of_level
        (row,), new = self._cache.sort_out([key], (0,) if reason else (), *room)
        if designs is None:
            designs = Designs(self._space, np.array([codes], dtype=np.int64))
        first = len(self._cache)
        seconds = self._simulate(designs, new, [key], fidelity)
        cached = not (new or reason)
        outcome = self._scoring.one(codes, row, reason, cached, sum(seconds), fidelity)
        self._record(first, 1, lambda start: (outcome,))
        illegal = outcome.status == _ILLEGAL
        self._count(first, 1, level, not (illegal or cached), illegal, cached)
        return outcome

    # -- the steps -------------------------------------------------------------------------------

    def _refuse(self, fidelity: float) -> NoReturn:
        known = ", ".join(f"{value:.12g}" for value in reversed(self._levels))
        raise InvalidValueError(
            f"fidelity {fidelity!r} is not among those of simulator {self._simulator.name!r}: "
            f"{known}"
        )

    def _room(self, n: int, level: int) -> tuple[float, float]:
        """How many new designs, and how many in all, may be evaluated at that level."""
        self._in_agent = time.perf_counter() - self._returned_at
        room = self._budget.room(level)
        limit = self._budget.limit
        if limit is not None and n and (min(room) < 1 or self._space_is_known):
            spent = f", {self.spent:g} of it spent" if len(self._levels) > 1 else ""
            raise BudgetExhausted(
                f"the search is over after {self.simulations} simulated and {self.proposals} "
                f"proposed designs (budget {limit}{spent})"
            )
        return room

    @property
    def _space_is_known(self) -> bool:
        """Whether every design is in the cache at full fidelity."""
        return len(self._cache) - self._partial >= self._space_size

    @cached_property
    def _space_size(self) -> float:
        try:
            return self._space.canonical_cardinality
        except SpaceTooLargeError:
            return math.inf

    def _simulate(
        self, designs: Designs, new: list[int], keys: Sequence[int], fidelity: float
    ) -> list[float]:
        """Puts new designs into the cache, from the log or the simulator; seconds of each."""
        seconds = [0.0] * len(new)
        resumed = self._recorder.resumed if self._recorder is not None else None
        if resumed is not None:
            logged = resumed.compare(self.proposals, designs, fidelity)
            for i in [i for i in new if i < logged]:
                self._cache.add(keys[i], *resumed.result(self.proposals + i))
            new = [i for i in new if i >= logged]
        if not new:
            return seconds
        batch = designs if len(new) == len(designs) else designs[np.array(new)]
        if fidelity == 1:
            results = self._simulator.simulate(batch)
        else:
            assert isinstance(self._simulator, MultiFidelitySimulator)
            results = self._simulator.simulate_at(batch, fidelity)
        check_results(results, self._simulator.name, len(new))
        for i, (result, _) in zip(new, results, strict=True):
            self._cache.add(keys[i], *read_result(result, self._metrics, self._given))
        seconds[len(seconds) - len(new) :] = [float(spent) for _, spent in results]
        return seconds

    def _record(self, first: int, n: int, rows: Callable[[int], Iterable[Row]]) -> None:
        """Records those of ``n`` rows that the log of a resumed trial does not hold.

        Args:
            first: length that the cache had before the evaluation, and gets again if the rows
                cannot be recorded.
            n: designs evaluated.
            rows: gives the rows from a position on.
        """
        recorder = self._recorder
        if recorder is None:
            return
        logged = 0 if recorder.resumed is None else len(recorder.resumed.codes)
        start = max(0, logged - self.proposals)
        if start < n:
            try:
                recorder.write(self.proposals + start, rows(start), self._in_agent / n)
            except BaseException:
                self._cache.forget_from(first)
                raise

    def _count(
        self, first: int, n: int, level: int, simulated: int, illegal: int, duplicates: int
    ) -> None:
        """Counts ``n`` evaluated designs; new results begin at row ``first`` of the cache."""
        self._budget.spend(level, simulated, n)
        self.simulations += simulated
        self.proposals += n
        self.illegal += illegal
        self.duplicates += duplicates
        if level:
            self._partial += len(self._cache) - first
        self._returned_at = time.perf_counter()
