"""Follows one run: what was found when, what was proposed twice, and what time it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import moocore
import numpy as np
from numpy.typing import NDArray

import archgym
from archgym.evaluation.outcome import Outcome, Outcomes
from benchmarks.search_quality.facts import Volume

__all__ = ["CHECKPOINTS", "Done", "Tracker"]

CHECKPOINTS = (100, 300, 1000)
"""Evaluations after which a run is looked at."""
_DUPLICATES = ("identical", "equivalent", "functional", "same_outcome")
_ROUNDING = 1e-6
"""Of sums of relative costs."""


class Done(Exception):
    """The run has proposed as many designs as it may."""


class Tracker:
    """Watches the proposals of a run, of whatever optimiser.

    Every proposal counts, also one that was made before or breaks a rule; one at a lower fidelity
    counts by its relative cost, and what it gives is no result.

    Args:
        env: the environment, fresh.
        budget: proposals to watch.
        dead: parameters that change nothing.
        volume: with several goals, what a run's value is.

    Attributes:
        proposals: designs proposed so far, up to the budget, whole ones.
        steps: number of the proposal and the new best value, whenever there is one.
        best: codes of the best design; the last one that entered the front, with several goals.
    """

    def __init__(
        self,
        env: archgym.Environment,
        budget: int,
        dead: Sequence[str] = (),
        volume: Volume | None = None,
    ) -> None:
        self.env, self.budget, self.volume = env, budget, volume
        self.proposals, self._spent = 0, 0.0
        self._costs = {one.value: one.cost for one in env.fidelities}
        self.steps: list[tuple[int, float]] = []
        self.best: list[int] = []
        self._counts = dict.fromkeys((*_DUPLICATES, "illegal", "infeasible"), 0)
        self._marks: dict[int, dict[str, float]] = {}
        self._seen: dict[str, set[Any]] = {name: set() for name in _DUPLICATES}
        self._dead = [env.design_space.index(name) for name in dead]
        self._front = np.empty((0, len(env.objective.goals)))
        self._worst = 0.0
        self._raw: Sequence[int] | None = None
        self._evaluating = 0.0
        env.on_evaluated = self._watch
        for method in ("evaluate", "evaluate_batch", "step"):
            setattr(env, method, self._timed(getattr(env, method)))
        self._began = time.process_time()

    def evaluate(self, codes: Sequence[int]) -> Outcome:
        """Evaluates the design with these levels, inactive parameters included.

        Raises:
            Done: if the budget is spent.
        """
        if self.proposals >= self.budget:
            raise Done
        self._raw = tuple(codes)
        row = np.array([codes], dtype=np.int64)
        return self.env.evaluate_batch(self.env.design_space.canonicalise(row))[0]

    def penalised(self, outcome: Outcome) -> float:
        """One number to minimise: the goal, more the further a limit is exceeded.

        A design that is illegal or failed is as bad as the worst one so far.
        """
        if outcome.status != "ok":
            return self._worst
        value = outcome.objectives[0] * (1 + 2 * sum(outcome.violations))
        self._worst = max(self._worst, value)
        return value

    def result(self) -> dict[str, Any]:
        """What the run came to, for JSON."""
        self._mark()
        return {
            "proposals": self.proposals,
            "steps": self.steps,
            "best": self.best,
            "marks": {str(n): mark for n, mark in self._marks.items()},
        }

    # -- inner workings --------------------------------------------------------------------------

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            began = time.process_time()
            try:
                return method(*arguments, **options)
            finally:
                self._evaluating += time.process_time() - began

        return timed

    def _watch(self, outcomes: Outcomes) -> None:
        for i in range(len(outcomes)):
            if self.proposals >= self.budget:
                return
            before, fidelity = self.proposals, float(outcomes.fidelity[i])
            self._spent += self._costs[fidelity]
            self.proposals = int(self._spent + _ROUNDING)
            self._count(outcomes, i)
            full = fidelity == 1.0
            if full and outcomes.feasible[i] and self._improves(outcomes.objectives[i]):
                self.best = outcomes.designs.codes[i].tolist()
            if any(before < n <= self.proposals for n in (*CHECKPOINTS, self.budget)):
                self._mark()

    def _count(self, outcomes: Outcomes, i: int) -> None:
        codes = outcomes.designs.codes[i].tolist()
        counts, fidelity = self._counts, float(outcomes.fidelity[i])
        counts["illegal"] += outcomes.status[i] == 1
        counts["infeasible"] += not outcomes.feasible[i]
        alive = codes.copy()
        for position in self._dead:
            alive[position] = 0
        keys = {
            "identical": (*(codes if self._raw is None else self._raw), fidelity),
            "equivalent": (*codes, fidelity),
            "functional": (*alive, fidelity),
        }
        if outcomes.status[i] == 0:
            keys["same_outcome"] = outcomes.metrics[i].tobytes()
        self._raw = None
        for name, key in keys.items():
            counts[name] += key in self._seen[name]
            self._seen[name].add(key)

    def _improves(self, goals: NDArray[np.float64]) -> bool:
        if self.volume is None:
            value = float(goals[0])
        else:
            wider = np.concatenate([self._front, goals[None]])
            kept = moocore.is_nondominated(wider, keep_weakly=False)
            if not kept[-1]:
                return False
            self._front = wider[kept]
            value = self.volume(self._front)
        if self.steps and value >= self.steps[-1][1]:
            return False
        self.steps.append((self.proposals, value))
        return True

    def _mark(self) -> None:
        """Notes duplicates and seconds so far."""
        if self.proposals not in self._marks:
            spent = time.process_time() - self._began - self._evaluating
            counts = {name: int(count) for name, count in self._counts.items()}
            self._marks[self.proposals] = {**counts, "agent_s": max(0.0, spent)}
