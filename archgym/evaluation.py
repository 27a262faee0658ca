"""The evaluation core: the one place where designs are checked, counted, simulated and recorded.

``step``, ``evaluate``, ``evaluate_batch`` and every view of an environment end in
:meth:`Evaluator.evaluate`, so nothing escapes the budget or the dataset.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from archgym.errors import (
    BudgetExhausted,
    NotCoveredError,
    ReplayMismatchError,
    SpaceTooLargeError,
)
from archgym.metrics import Metric
from archgym.objective import FAILED_REWARD, Scorer
from archgym.outcome import STATUSES, Outcomes
from archgym.simulator import Simulation, Simulator
from archgym.space import Designs, DesignSpace

__all__ = ["Evaluator", "Recorder", "Replay"]

PROPOSALS_PER_BUDGET = 10
"""A search also ends when its proposals, duplicates and illegal ones included, reach this
multiple of the budget."""

_OK, _ILLEGAL, _FAILED, _TIMEOUT = range(len(STATUSES))


class Replay(Protocol):
    """What a trial evaluated before it was interrupted, in order.

    Attributes:
        codes: designs, shape (n, n_parameters).
        metrics: NaN where there are none, shape (n, n_metrics).
        status: index into ``STATUSES``, shape (n,).
        reason: one text a row.
    """

    codes: NDArray[np.int64]
    metrics: NDArray[np.float64]
    status: NDArray[np.int8]
    reason: Sequence[str]


class Recorder(Protocol):
    """Takes the evaluations of one trial; see :mod:`archgym.data`."""

    replay: Replay | None

    def write(self, first_step: int, outcomes: Outcomes, agent_s: float) -> None:
        """Hands rows to the operating system before the agent is told."""
        ...


class Evaluator:
    """Evaluates designs for one trial.

    Attributes:
        budget: most distinct legal designs to simulate, failed ones included; ``None`` for no end.
        simulations: distinct legal designs simulated so far.
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
    ) -> None:
        self.budget = budget
        self.simulations = self.proposals = self.duplicates = self.illegal = 0
        self._space, self._metrics, self._simulator, self._scorer = (
            space,
            tuple(metrics),
            simulator,
            scorer,
        )
        self._names = tuple(metric.name for metric in metrics)
        self._given = [i for i, m in enumerate(metrics) if m.name in simulator.metric_names]
        self._recorder = recorder
        self._known: dict[int, int] = {}  # key of a design -> its row in the arrays below
        self._values = np.full((64, len(metrics)), np.nan)
        self._status = np.zeros(64, np.int8)
        self._reasons: dict[int, str] = {}
        self._told_at = time.perf_counter()
        self._in_agent = 0.0

    @property
    def exhausted(self) -> bool:
        """Whether no design is left that could be simulated: budget, proposals or space spent."""
        if self.budget is None:
            return False
        return (
            self.simulations >= self.budget
            or self.proposals >= PROPOSALS_PER_BUDGET * self.budget
            or self.simulations + self._uncovered >= self._space_size
        )

    def evaluate(self, designs: Designs) -> Outcomes:
        """Evaluates designs in order; with a budget, as many of them as are left in it.

        Returns:
            Outcomes of the first ``len(result)`` designs: all, unless the budget ran out.

        Raises:
            BudgetExhausted: if nothing is left at all.
            ReplayMismatchError: if a resumed trial proposes another design than its log holds.
        """
        self._in_agent = time.perf_counter() - self._told_at
        if self.exhausted and len(designs):
            raise BudgetExhausted(
                f"the search is over after {self.simulations} simulated and {self.proposals} "
                f"proposed designs (budget {self.budget})"
            )
        n, rows, fresh, keys, reasons = self._sort_out(designs)
        designs = designs if n == len(designs) else designs[:n]
        replay = self._recorder.replay if self._recorder is not None else None
        replayed = 0 if replay is None else min(n, max(0, len(replay.codes) - self.proposals))
        if replay is not None and replayed:
            self._compare(designs, replay, replayed)
        seconds = self._simulate(designs, fresh, replay, replayed)
        for i in fresh:
            self._known[keys[i]] = rows[i]
        outcomes = self._outcomes(designs, np.array(rows[:n], np.int64), fresh, reasons, seconds)
        if self._recorder is not None and replayed < n:
            self._write(outcomes, replayed)
        self.proposals += n
        self.illegal += int((outcomes.status == _ILLEGAL).sum())
        self.duplicates += int(outcomes.cached.sum())
        self.simulations += sum(outcomes.status[i] != _ILLEGAL for i in fresh)
        self._told_at = time.perf_counter()
        return outcomes

    # -- steps of evaluate -----------------------------------------------------------------------

    @property
    def _uncovered(self) -> int:
        return len(self._known) - self.simulations

    @property
    def _space_size(self) -> float:
        if not hasattr(self, "_cardinality"):
            try:
                self._cardinality = self._space.canonical_cardinality
            except SpaceTooLargeError:
                self._cardinality = math.inf
        return self._cardinality

    def _sort_out(
        self, designs: Designs
    ) -> tuple[int, list[int], list[int], list[int], dict[int, str]]:
        """How many designs fit; each one's row (-1: breaks a rule); which are new; keys; reasons."""
        n = len(designs)
        reasons: dict[int, str] = {}
        if n == 1:
            codes = designs.codes[0].tolist()
            keys = [self._space.key(codes)]
            reason = self._space.illegal_reason(codes)
            if reason:
                reasons[0] = reason
        else:
            keys = designs.keys()
            for i in np.flatnonzero(self._space.first_broken_rule(designs) != -1).tolist():
                reasons[i] = self._space.illegal_reason(designs.codes[i].tolist())
        room = math.inf if self.budget is None else self.budget - self.simulations
        most = math.inf if self.budget is None else (
            PROPOSALS_PER_BUDGET * self.budget - self.proposals
        )
        rows: list[int] = []
        fresh: list[int] = []
        pending: dict[int, int] = {}
        for i, key in enumerate(keys):
            if i >= most or len(fresh) >= room:
                return i, rows, fresh, keys, reasons
            if i in reasons:
                rows.append(-1)
                continue
            row = self._known.get(key)
            if row is None:
                row = pending.get(key)
            if row is None:
                row = pending[key] = len(self._known) + len(pending)
                fresh.append(i)
            rows.append(row)
        return n, rows, fresh, keys, reasons

    def _compare(self, designs: Designs, replay: Replay, replayed: int) -> None:
        start = self.proposals
        logged = replay.codes[start : start + replayed]
        differs = (designs.codes[:replayed] != logged).any(axis=1)
        if differs.any():
            i = int(differs.argmax())
            raise ReplayMismatchError(
                f"step {start + i}: the resumed search proposes {designs[i]}, but its log holds "
                f"{self._space.design(logged[i].tolist())}: code, seed or hyperparameters changed"
            )

    def _simulate(
        self, designs: Designs, fresh: list[int], replay: Replay | None, replayed: int
    ) -> dict[int, float]:
        """Fills the rows of new designs, from the log or the simulator; seconds of each."""
        first = len(self._known)
        while first + len(fresh) > len(self._status):
            self._values = np.concatenate([self._values, np.full_like(self._values, np.nan)])
            self._status = np.concatenate([self._status, np.zeros_like(self._status)])
        logged = [i for i in fresh if i < replayed]
        for row, i in enumerate(logged, start=first):
            step = self.proposals + i
            assert replay is not None
            self._values[row] = replay.metrics[step]
            self._status[row] = replay.status[step]
            if replay.status[step] != _OK:
                self._reasons[row] = replay.reason[step]
        left = fresh[len(logged) :]
        if not left:
            return {}
        batch = designs if len(left) == len(designs) else designs[np.array(left)]
        results = self._simulator.simulate(batch)
        for row, (result, _) in enumerate(results, start=first + len(logged)):
            status, reason = self._read(result, row)
            self._status[row] = status
            if reason:
                self._reasons[row] = reason
        return {i: seconds for i, (_, seconds) in zip(left, results, strict=True)}

    def _read(self, result: Simulation, row: int) -> tuple[int, str]:
        """Writes metrics into their row; status and reason."""
        self._values[row] = np.nan
        if isinstance(result, Mapping):
            for i in self._given:
                metric = self._metrics[i]
                value = result.get(metric.name)
                if value is None:
                    reason = f"the simulator gave no {metric.name}"
                elif not math.isfinite(value):
                    reason = f"{metric.name} is {value}, not a finite number"
                elif value < 0 and not metric.signed:
                    reason = f"{metric.name} is {value:g}, below zero"
                else:
                    self._values[row, i] = value
                    continue
                self._values[row] = np.nan
                return _FAILED, reason
            return _OK, ""
        if isinstance(result, NotCoveredError):
            return _ILLEGAL, str(result) or "the simulator does not cover this design"
        if isinstance(result, TimeoutError):
            return _TIMEOUT, str(result) or "the simulator took too long"
        return _FAILED, str(result) or "the simulator failed"

    def _outcomes(
        self,
        designs: Designs,
        rows: NDArray[np.int64],
        fresh: list[int],
        reasons: dict[int, str],
        seconds: dict[int, float],
    ) -> Outcomes:
        n = len(rows)
        values = self._values[rows]
        status = self._status[rows]
        broken = rows < 0
        if reasons:
            status[broken] = _ILLEGAL
            values[broken] = np.nan
        cached = ~broken
        cached[fresh] = False
        simulation_s = np.zeros(n)
        for i, spent in seconds.items():
            simulation_s[i] = spent
        ok = status == _OK
        scorer = self._scorer
        violations = scorer.violations(values)
        costs = scorer.costs(values)
        objectives = scorer.values(values)
        reward = scorer.rewards(costs, violations)
        feasible = ok & ~(violations > 0).any(axis=1) if violations.shape[1] else ok
        texts = [""] * n
        if not feasible.all():
            reward = np.where(ok, reward, FAILED_REWARD)
            costs[~ok] = np.inf
            objectives[~ok] = np.inf
            violations[~ok] = np.nan
            for i in np.flatnonzero(~feasible).tolist():
                texts[i] = reasons.get(i) or self._reasons.get(int(rows[i])) or self._limits(
                    violations[i]
                )
        return Outcomes(
            designs=designs,
            metric_names=self._names,
            metrics=values,
            objectives=objectives,
            costs=costs,
            violations=violations,
            reward=reward,
            status=status,
            reason=texts,
            feasible=feasible,
            cached=cached,
            simulation_s=simulation_s,
        )

    def _limits(self, violations: NDArray[np.float64]) -> str:
        limits = self._scorer.objective.limits
        return ", ".join(
            f"limit {limit} exceeded by {v:.1%}"
            for limit, v in zip(limits, violations.tolist(), strict=True)
            if v > 0
        )

    def _write(self, outcomes: Outcomes, replayed: int) -> None:
        assert self._recorder is not None
        part = outcomes if not replayed else outcomes.tail(replayed)
        self._recorder.write(self.proposals + replayed, part, self._in_agent / len(outcomes))
