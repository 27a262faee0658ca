"""What a trial knows and has spent: results, budget, log and counters."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import NoReturn

from archgym.errors import BudgetExhausted, InvalidValueError, SpaceTooLargeError
from archgym.evaluation.budget import Budget
from archgym.evaluation.cache import EvaluationCache
from archgym.evaluation.outcome import Row
from archgym.evaluation.outcome_builder import OutcomeBuilder
from archgym.evaluation.recorder_protocol import Flight, Recorder
from archgym.problem import Metric
from archgym.problem.fidelity import FULL, Fidelity
from archgym.problem.scoring import Scorer
from archgym.problem.simulator import Simulator
from archgym.space import DesignSpace


class Ledger:
    """The state of a trial that every way of evaluating shares.

    Attributes:
        simulations: distinct legal designs simulated so far, each fidelity by itself.
        proposals: designs proposed so far whose outcome is there.
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
        hours: float | None = None,
    ) -> None:
        self.simulations = self.proposals = self.duplicates = self.illegal = 0
        self._space, self._simulator, self._recorder = space, simulator, recorder
        self._log = None if recorder is None else recorder.resumed
        self._metrics = tuple(metrics)
        self._names = tuple(metric.name for metric in metrics)
        self._given = simulator.metric_names
        self._budget = Budget(budget, proposals_per_budget, fidelities, hours)
        # The level of a fidelity is its index from the full one, 0, downwards.
        values = [one.value for one in reversed(fidelities)]
        self._levels = {value: (level, value) for level, value in enumerate(values)}
        self._keys_of_level = space.largest_key + 1
        self._cache = EvaluationCache(len(metrics), len(values) * self._keys_of_level - 1)
        self._partial = 0  # rows of the cache that are below full fidelity
        self._flying = 0  # designs in flight at full fidelity
        self._scorer = scorer
        self._scoring = OutcomeBuilder(self._names, scorer, self._cache)
        self._returned_at = time.perf_counter()
        self._in_agent = 0.0
        self._interruption: BaseException | None = None
        self._kept = 0  # rows of the cache whose designs are counted

    @property
    def budget(self) -> int | None:
        """Distinct legal designs that may be simulated, failed ones included; or no end."""
        return self._budget.limit

    @property
    def hours(self) -> float | None:
        """Hours that all simulations may take together; or no end."""
        return self._budget.hours

    @property
    def spent(self) -> float:
        """Budget spent so far: the simulations, each by the relative cost of its fidelity."""
        return self._budget.spent

    @property
    def spent_hours(self) -> float:
        """Hours that the simulations took so far."""
        return self._budget.seconds / 3600.0

    @property
    def spent_share(self) -> float:
        """Share of the budget that is spent: of designs or of hours, whichever is larger."""
        shares = [0.0]
        if self.budget is not None:
            shares.append(self.spent / self.budget)
        if self.hours is not None:
            shares.append(self.spent_hours / self.hours)
        return max(shares)

    @property
    def exhausted(self) -> bool:
        """Whether no further design can be simulated: budget, proposals or space spent.

        Designs in flight count as simulated.
        """
        return self._budget.bounded and (self._budget.exhausted or self._space_is_known)

    # -- inner workings --------------------------------------------------------------------------

    def _refuse(self, fidelity: float) -> NoReturn:
        known = ", ".join(f"{value:.12g}" for value in reversed(self._levels))
        raise InvalidValueError(
            f"fidelity {fidelity!r} is not among those of simulator {self._simulator.name!r}: "
            f"{known}"
        )

    def _room(self, n: int, level: int) -> tuple[float, float]:
        """How many new designs, and how many in all, may be evaluated at that level."""
        self._in_agent = time.perf_counter() - self._returned_at
        if len(self._cache) != self._kept:  # an evaluation was interrupted
            self._cache.forget_from(self._kept)
        budget = self._budget
        room = budget.room(level)
        if budget.bounded and n and (min(room) < 1 or self._space_is_known):
            limit = f"budget {budget.limit}" if budget.hours is None else self._limits()
            spent = f", {self.spent:g} of it spent" if len(self._levels) > 1 else ""
            raise BudgetExhausted(
                f"the search is over after {self.simulations} simulated and {self.proposals} "
                f"proposed designs ({limit}{spent})"
            )
        return room

    def _limits(self) -> str:
        designs = "" if self._budget.limit is None else f"{self._budget.limit} designs, "
        return f"budget {designs}{self._budget.hours:g} hours of simulation"

    @property
    def _space_is_known(self) -> bool:
        """Whether every design is in the cache at full fidelity, or will be."""
        return len(self._cache) - self._partial + self._flying >= self._space_size

    @cached_property
    def _space_size(self) -> float:
        try:
            return self._space.canonical_cardinality
        except SpaceTooLargeError:
            return math.inf

    def _record(
        self,
        first: int,
        step: int,
        agent_s: float,
        rows: Callable[[], Iterable[Row]],
        flight: Flight | None = None,
    ) -> None:
        """Records rows, if anything does.

        Args:
            first: length that the cache had before the evaluation, and gets again if the rows
                cannot be recorded.
            step: of the first row.
            agent_s: seconds that the agent spent on each.
            rows: gives them.
            flight: how they came.
        """
        if self._recorder is not None:
            try:
                interruption = self._recorder.write(step, rows, agent_s, flight)
                self._interruption = interruption or self._interruption
            except BaseException:
                self._cache.forget_from(first)
                raise

    def _settle(self) -> None:
        """Before the agent gets outcomes: makes their rows durable, which is none of its time.

        An interruption that came while they were recorded is raised here, once they are counted.
        """
        interruption, self._interruption = self._interruption, None
        if self._recorder is not None and self._recorder.settle():
            self._returned_at = time.perf_counter()
        if interruption is not None:
            raise interruption

    def _count(
        self,
        first: int,
        n: int,
        level: int,
        simulated: int,
        illegal: int,
        duplicates: int,
        seconds: float,
    ) -> None:
        """Counts ``n`` evaluated designs; new results begin at row ``first`` of the cache."""
        kept = len(self._cache)
        self.proposals += n  # first, and with it: the rows are recorded, an interruption may come
        self._kept = kept
        self._budget.spend(level, simulated, n, seconds)
        self.simulations += simulated
        self.illegal += illegal
        self.duplicates += duplicates
        if level:
            self._partial += kept - first
        self._returned_at = time.perf_counter()
