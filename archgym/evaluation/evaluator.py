"""The evaluation core: the one way of a design through a trial.

``step``, ``evaluate``, ``evaluate_batch``, ``submit`` and every view of an environment end in
:class:`Evaluator`, so that nothing escapes the budget or the dataset. A design's way is:

1. its rules are checked (:class:`archgym.space.DesignSpace`),
2. the budget has room for it (:mod:`archgym.evaluation.budget`),
3. duplicates are recognised (:mod:`archgym.evaluation.cache`),
4. a new one is taken from the log of a resumed trial (:mod:`archgym.evaluation.resumed_log`) or
   simulated, and goes into the cache,
5. it is scored (:mod:`archgym.evaluation.outcome_builder`),
6. its row is recorded (:mod:`archgym.evaluation.recorder_protocol`), and then counted.

Where an executor simulates, designs wait for their outcomes in a queue
(:mod:`archgym.evaluation.queue`), and steps 4 to 6 happen to each when its simulation ends. Where
the simulator runs in this process they happen at once, here: one design goes through
:meth:`Evaluator.evaluate_one` on plain numbers, many go through :meth:`Evaluator.evaluate` on
arrays. A batch goes through the queue all the same if its designs are simulated alone and take
long, so that each is recorded when it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from archgym.errors import BudgetExhausted
from archgym.evaluation.outcome import Outcomes, Row, joined
from archgym.evaluation.queue import Queue
from archgym.problem import Status
from archgym.problem.simulator import MultiFidelitySimulator, SimulationResult
from archgym.simulators.result import check_results, read_result
from archgym.space import Designs

_ILLEGAL = Status.ILLEGAL  # looked up once, which is faster
_SLOW_S = 0.02
"""Seconds of a simulation above which each design of a batch is recorded by itself."""


class Evaluator(Queue):
    """Evaluates designs for one trial.

    If a simulator or the recorder raises, the evaluation has not happened: nothing is counted,
    and nothing of its designs stays in the cache. A design is cached at each fidelity by itself.
    """

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
        if self.queued:
            return self.evaluate_queued(designs, fidelity)
        if len(designs) == 1:
            row = self.evaluate_one(designs.codes[0].tolist(), designs, fidelity)
            return Outcomes.of(row, designs, self._names)
        if self._at_a_time and self._slow is not False and len(designs):
            queued = self.evaluate_queued if self._slow else self._evaluate_first
            return queued(designs, fidelity)
        level, fidelity = self._levels.get(fidelity) or self._refuse(fidelity)
        room = self._room(len(designs), level)
        keys, reasons = designs.keys(), self._space.illegal_reasons(designs)
        if level:
            keys = [key + level * self._keys_of_level for key in keys]
        rows, new = self._cache.sort_out(keys, reasons, *room)
        if len(rows) < len(designs):
            designs = designs[: len(rows)]
        first = len(self._cache)
        seconds, logged = self._simulate(designs, new, keys, fidelity)
        outcomes = self._scoring.many(designs, rows, new, reasons, seconds, fidelity)
        if self._recorder is not None:
            self._record_new(first, len(rows), logged, outcomes.rows)
        illegal, cached = outcomes.status == _ILLEGAL, outcomes.cached
        counts = (~illegal & ~cached, illegal, cached)
        simulated, refused, known = (int(np.count_nonzero(one)) for one in counts)
        self._count(first, len(rows), level, simulated, refused, known, sum(seconds))
        self._settle()
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
        if self.queued:
            batch = Designs(self._space, np.array([codes], dtype=np.int64))
            (evaluated,) = self.evaluate_queued(batch, fidelity).rows()
            return evaluated
        level, fidelity = self._levels.get(fidelity) or self._refuse(fidelity)
        room = self._room(1, level)
        key, reason = self._space.key(codes), self._space.illegal_reason(codes)
        if level:
            key += level * self._keys_of_level
        (row,), new = self._cache.sort_out([key], (0,) if reason else (), *room)
        if designs is None:
            designs = Designs(self._space, np.array([codes], dtype=np.int64))
        first = len(self._cache)
        seconds, logged = self._simulate(designs, new, [key], fidelity)
        cached = not (new or reason)
        spent = seconds[0] if new else 0.0
        outcome = self._scoring.one(codes, row, reason, cached, spent, fidelity)
        if logged is None:
            self._record(first, self.proposals, self._in_agent, lambda: (outcome,))
        elif logged[0] < 0:
            self._record_new(first, 1, logged, lambda start, stop: (outcome,))
        illegal = outcome.status == _ILLEGAL
        self._count(first, 1, level, not (illegal or cached), illegal, cached, spent)
        self._settle()
        return outcome

    _slow: bool | None = None
    """Whether simulations in this process are slow; ``None`` if that is not known yet."""

    def _evaluate_first(self, designs: Designs, fidelity: float) -> Outcomes:
        """Evaluates a few designs, which shows how fast the simulator is, and then the rest."""
        n = self._at_a_time
        first = self.evaluate_queued(designs[:n], fidelity)
        seconds = first.simulation_s[~first.cached & (first.status != _ILLEGAL)]
        if len(seconds):
            self._slow = float(seconds.mean()) > _SLOW_S
        if len(first) < n or len(designs) <= n:
            return first
        slow, self._slow = self._slow, bool(self._slow)
        try:
            return joined(first, self.evaluate(designs[n:], fidelity))
        except BudgetExhausted:
            return first
        finally:
            self._slow = slow

    # -- the steps -------------------------------------------------------------------------------

    def _simulate(
        self, designs: Designs, new: list[int], keys: Sequence[int], fidelity: float
    ) -> tuple[list[float], list[int] | None]:
        """Puts new designs into the cache, from the log or the simulator.

        Returns:
            Seconds of each new one, and the row of each design in the log, -1 if it is not there;
            ``None`` for no log.
        """
        cache, log = self._cache, self._log
        if log is None:
            results = self._results(designs, new, fidelity) if new else ()
            for i, (result, _) in zip(new, results, strict=True):
                cache.add(keys[i], *read_result(result, self._metrics, self._given))
            return [float(spent) for _, spent in results], None
        logged = log.compare(self.proposals, designs, fidelity)
        missing = [i for i in new if logged[i] < 0]
        simulated = iter(self._results(designs, missing, fidelity) if missing else ())
        seconds: list[float] = []
        for i in new:  # in their order, which the rows of the cache have
            if logged[i] >= 0:
                found, spent = log.result(logged[i]), float(log.seconds[logged[i]])
            else:
                result, spent = next(simulated)
                found = read_result(result, self._metrics, self._given)
            cache.add(keys[i], *found)
            seconds.append(float(spent))
        return seconds, logged

    def _results(
        self, designs: Designs, new: list[int], fidelity: float
    ) -> Sequence[tuple[SimulationResult, float]]:
        """Simulates some of the designs; results and seconds."""
        batch = designs if len(new) == len(designs) else designs[np.array(new)]
        if fidelity == 1:
            results = self._simulator.simulate(batch)
        else:
            assert isinstance(self._simulator, MultiFidelitySimulator)
            results = self._simulator.simulate_at(batch, fidelity)
        check_results(results, self._simulator.name, len(new))
        return results

    def _record_new(
        self,
        first: int,
        n: int,
        logged: list[int] | None,
        rows: Callable[[int, int], Iterable[Row]],
    ) -> None:
        """Records those of ``n`` rows that the log of a resumed trial does not hold.

        Args:
            first: length that the cache had before the evaluation.
            n: designs evaluated.
            logged: row of each in the log, -1 if it is not there; ``None`` for no log.
            rows: gives the rows from a position to before another one.
        """
        agent_s = self._in_agent / n if n else 0.0
        if logged is None or max(logged, default=-1) < 0:
            if n:
                self._record(first, self.proposals, agent_s, lambda: rows(0, n))
            return
        for i in [i for i in range(n) if logged[i] < 0]:
            self._record(first, self.proposals + i, agent_s, lambda i=i: rows(i, i + 1))  # type: ignore[misc]
