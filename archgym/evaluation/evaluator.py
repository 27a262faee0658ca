"""The evaluation core: the one place where designs are checked, counted, simulated and recorded.

``step``, ``evaluate``, ``evaluate_batch`` and every view of an environment end in
:class:`Evaluator`, so nothing escapes the budget or the dataset. One design goes through
:meth:`Evaluator.evaluate_one`, many through :meth:`Evaluator.evaluate`: the same steps, on plain
numbers or on arrays.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NoReturn

import numpy as np

from archgym.errors import (
    BudgetExhausted,
    InvalidValueError,
    ReplayMismatchError,
    SpaceTooLargeError,
)
from archgym.evaluation.cache import Known
from archgym.evaluation.outcome import Outcomes, Row
from archgym.evaluation.recorder import Recorder
from archgym.evaluation.scoring import Verdicts
from archgym.problem.fidelity import FULL, Fidelity, cost_units
from archgym.problem.metrics import Metric
from archgym.problem.scorer import Scorer
from archgym.problem.simulator import MultiFidelitySimulator, Simulator
from archgym.problem.status import Status
from archgym.simulators.result import expect_pairs, read_result
from archgym.space import Designs, DesignSpace

__all__ = ["Evaluator"]

_NO_END = (math.inf, math.inf)


class Evaluator:
    """Evaluates designs for one trial.

    If a simulator or the recorder raises, the evaluation has not happened: nothing is counted
    and nothing is known of its designs.

    A design is remembered for each fidelity by itself. At a fidelity below the full one it counts
    as its relative cost, as a simulation against the budget and as a proposal against ten times
    the budget.

    Attributes:
        budget: most distinct legal designs to simulate, failed ones included; ``None`` for no end.
        simulations: distinct legal designs simulated so far, each fidelity by itself.
        proposals: designs proposed so far.
        duplicates: proposals that were known already.
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
        self.budget = budget
        self.simulations = self.proposals = self.duplicates = self.illegal = 0
        # Levels number the fidelities from the full one, 0, downwards.
        values = [one.value for one in reversed(fidelities)]
        self._levels = {value: (level, value) for level, value in enumerate(values)}
        self._costs = cost_units(fidelities)[::-1]
        self._most_spent = math.inf if budget is None else budget * self._costs[0]
        self._most_offered = self._most_spent * proposals_per_budget
        # What lower fidelities spared, of the cost of simulations and of that of proposals.
        self._spared = self._spared_offered = 0
        self._partial = 0  # rows of what is known that are below full fidelity
        self._space, self._simulator = space, simulator
        self._metrics = tuple(metrics)
        self._names = tuple(metric.name for metric in metrics)
        self._given = tuple(m for m in metrics if m.name in simulator.metric_names)
        self._recorder = recorder
        self._keys = space.largest_key + 1  # of each level
        self._known = Known(len(self._metrics), len(self._costs) * self._keys - 1)
        self._verdicts = Verdicts(self._names, scorer, self._known)
        self._told_at = time.perf_counter()
        self._in_agent = 0.0

    @property
    def exhausted(self) -> bool:
        """Whether no design is left that could be simulated: budget, proposals or space spent."""
        if self.budget is None:
            return False
        cheapest = self._costs[-1]
        return (
            self._spent + cheapest > self._most_spent
            or self._offered + cheapest > self._most_offered
            or self._space_is_known
        )

    @property
    def spent(self) -> float:
        """Budget spent so far: the simulations, each by its relative cost."""
        return self._spent / self._costs[0]

    @property
    def _spent(self) -> int:
        """Cost of all simulations."""
        return self.simulations * self._costs[0] - self._spared

    @property
    def _offered(self) -> int:
        """Cost that all proposals would have, were none known or illegal."""
        return self.proposals * self._costs[0] - self._spared_offered

    @property
    def _space_is_known(self) -> bool:
        """Whether every design is known at full fidelity."""
        return len(self._known) - self._partial >= self._space_size

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
        left = self._begin(len(designs), level)
        keys, reasons = designs.keys(), self._space.illegal_reasons(designs)
        if level:
            keys = [key + level * self._keys for key in keys]
        rows, fresh = self._sort_out(keys, reasons, *left)
        if len(rows) < len(designs):
            designs = designs[: len(rows)]
        first = len(self._known)
        seconds = self._simulate(designs, fresh, keys, fidelity)
        outcomes = self._verdicts.many(designs, rows, fresh, reasons, seconds, fidelity)
        self._finish(
            first,
            len(rows),
            level,
            outcomes.rows,
            illegal=int(np.count_nonzero(outcomes.status == Status.ILLEGAL)),
            duplicates=int(np.count_nonzero(outcomes.cached)),
        )
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
        left = self._begin(1, level)
        key, reason = self._space.key(codes), self._space.illegal_reason(codes)
        if level:
            key += level * self._keys
        (row,), fresh = self._sort_out([key], {0: reason} if reason else {}, *left)
        if designs is None:
            designs = Designs(self._space, np.array([codes], dtype=np.int64))
        first = len(self._known)
        seconds = self._simulate(designs, fresh, [key], fidelity)
        cached = not (fresh or reason)
        outcome = self._verdicts.one(codes, row, reason, cached, sum(seconds), fidelity)
        self._finish(
            first,
            1,
            level,
            lambda start: (outcome,),
            illegal=outcome.status == Status.ILLEGAL,
            duplicates=outcome.cached,
        )
        return outcome

    # -- steps of evaluate -----------------------------------------------------------------------

    def _refuse(self, fidelity: float) -> NoReturn:
        known = ", ".join(f"{value:.12g}" for value in reversed(self._levels))
        raise InvalidValueError(
            f"fidelity {fidelity!r} is not among those of simulator {self._simulator.name!r}: "
            f"{known}"
        )

    def _begin(self, n: int, level: int) -> tuple[float, float]:
        """How many new designs, and how many in all, may be evaluated at that level."""
        self._in_agent = time.perf_counter() - self._told_at
        if self.budget is None:
            return _NO_END
        cost = self._costs[level]
        room = (self._most_spent - self._spent) // cost
        most = (self._most_offered - self._offered) // cost
        if n and (room < 1 or most < 1 or self._space_is_known):
            spent = f", {self.spent:g} of it spent" if len(self._costs) > 1 else ""
            raise BudgetExhausted(
                f"the search is over after {self.simulations} simulated and {self.proposals} "
                f"proposed designs (budget {self.budget}{spent})"
            )
        return room, most

    @cached_property
    def _space_size(self) -> float:
        try:
            return self._space.canonical_cardinality
        except SpaceTooLargeError:
            return math.inf

    def _sort_out(
        self, keys: Sequence[int], reasons: Mapping[int, str], room: float, most: float
    ) -> tuple[list[int], list[int]]:
        """Each design's row among the known (-1: breaks a rule), as many as fit; the new ones."""
        known = self._known
        rows: list[int] = []
        fresh: list[int] = []
        pending: dict[int, int] = {}
        for i, key in enumerate(keys):
            if i >= most or len(fresh) >= room:
                break
            if i in reasons:
                rows.append(-1)
                continue
            row = known.find(key)
            if row < 0:
                row = pending.get(key, -1)
            if row < 0:
                row = pending[key] = len(known) + len(pending)
                fresh.append(i)
            rows.append(row)
        return rows, fresh

    def _replayed(self, designs: Designs, fidelity: float) -> int:
        """How many of the next designs are in the log of a resumed trial."""
        replay = self._recorder.resumed if self._recorder is not None else None
        if replay is None or self.proposals >= len(replay.codes):
            return 0
        part = slice(self.proposals, self.proposals + len(designs))
        logged, at = replay.codes[part], replay.fidelity[part]
        differs = (designs.codes[: len(logged)] != logged).any(axis=1) | (at != fidelity)
        if differs.any():
            i = int(differs.argmax())
            now, then = (
                "" if value == 1 else f" at fidelity {value:g}" for value in (fidelity, at[i])
            )
            raise ReplayMismatchError(
                f"step {self.proposals + i}: the resumed search proposes {designs[i]}{now}, but "
                f"its log holds {self._space.design(logged[i].tolist())}{then}: "
                "code, seed or hyperparameters changed, or the agent plans by its budget and that "
                "was raised"
            )
        return len(logged)

    def _simulate(
        self, designs: Designs, fresh: list[int], keys: Sequence[int], fidelity: float
    ) -> list[float]:
        """Makes new designs known, from the log or the simulator; seconds that each took."""
        seconds = [0.0] * len(fresh)
        known, replayed = self._known, self._replayed(designs, fidelity)
        if replayed:
            assert self._recorder is not None
            replay = self._recorder.resumed
            assert replay is not None
            logged = [i for i in fresh if i < replayed]
            for i in logged:
                step = self.proposals + i
                status = int(replay.status[step])
                reason = replay.reason[step] if status != Status.OK else ""
                known.add(keys[i], status, replay.metrics[step].tolist(), reason)
        else:
            logged = []
        left = fresh[len(logged) :]
        if not left:
            return seconds
        batch = designs if len(left) == len(designs) else designs[np.array(left)]
        if fidelity == 1:
            results = self._simulator.simulate(batch)
        else:
            assert isinstance(self._simulator, MultiFidelitySimulator)
            results = self._simulator.simulate_at(batch, fidelity)
        if len(results) != len(left):
            raise InvalidValueError(
                f"simulator {self._simulator.name!r} gave {len(results)} results "
                f"for {len(left)} designs"
            )
        expect_pairs(results)
        for number, (i, (result, spent)) in enumerate(
            zip(left, results, strict=True), start=len(logged)
        ):
            status, values, reason = read_result(result, self._metrics, self._given)
            known.add(keys[i], status, values, reason)
            seconds[number] = float(spent)
        return seconds

    def _finish(
        self,
        first: int,
        n: int,
        level: int,
        rows: Callable[[int], Iterable[Row]],
        *,
        illegal: int,
        duplicates: int,
    ) -> None:
        """Records what is not in the log yet, then counts; undoes the evaluation if it cannot."""
        recorder = self._recorder
        if recorder is not None:
            logged = 0 if recorder.resumed is None else len(recorder.resumed.codes) - self.proposals
            start = max(0, logged)
            if start < n:
                try:
                    recorder.write(self.proposals + start, rows(start), self._in_agent / n)
                except BaseException:
                    self._known.forget_from(first)
                    raise
        before = self.simulations
        for row in range(first, len(self._known)):
            self.simulations += self._known.status(row) != Status.ILLEGAL
        self.proposals += n
        if level:
            spared = self._costs[0] - self._costs[level]
            self._spared += (self.simulations - before) * spared
            self._spared_offered += n * spared
            self._partial += len(self._known) - first
        self.illegal += illegal
        self.duplicates += duplicates
        self._told_at = time.perf_counter()
