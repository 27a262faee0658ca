"""A check of searches whose designs are in flight, with results that come in any order."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from archgym.check.agents.agent_under_test import (
    BUDGET,
    Evaluation,
    Subject,
    ended,
    first_taken,
    watch,
)
from archgym.check.agents.environments import Family
from archgym.check.result import expect
from archgym.environment.environment import Environment
from archgym.evaluation.outcome import Outcomes
from archgym.simulators.executor import Arrival, Running
from archgym.simulators.queued import QueuedSimulator, simulate_one

_MAX_TOGETHER = 3


class ShuffledExecutor:
    """Simulates at once; results arrive in a random order, some of them together.

    Args:
        environment: whose simulator it takes the place of.
        seed: of the order.
        slots: most workers.
        changing: whether workers come and go, so that there are none at times.

    Attributes:
        sent: codes of all designs that were submitted, in order.
        most_in_flight: largest number of designs that were in flight together.
    """

    def __init__(
        self, environment: Environment, seed: int = 0, slots: int = 4, *, changing: bool = False
    ) -> None:
        self._simulator, self._space = environment.simulator, environment.design_space
        self._rng, self._most, self._changing = np.random.default_rng(seed), slots, changing
        self._held: dict[int, tuple[Sequence[int], float]] = {}
        self._clock = 0.0
        self.slots, self.most_in_flight = slots, 0
        self.sent: list[tuple[int, ...]] = []
        environment.simulator = QueuedSimulator(self._simulator, self, asynchronous=slots > 1)

    def restart(self) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self._held.clear()

    def now(self) -> float:
        """The number of calls of :meth:`collect`."""
        return self._clock

    def submit(
        self,
        ticket: int,
        codes: Sequence[int],
        fidelity: float,
        rule: Mapping[str, Any] | None = None,
    ) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self._held[ticket] = codes, fidelity
        self.sent.append(tuple(codes))
        self.most_in_flight = max(self.most_in_flight, len(self._held))

    def collect(self, timeout_s: float | None) -> list[Arrival]:
        """Some results, drawn at random."""
        if timeout_s == 0 or not self._held:
            return []
        self._clock += 1.0
        if self._changing:
            self.slots = int(self._rng.integers(self._most + 1))
        n = int(self._rng.integers(min(_MAX_TOGETHER, len(self._held)))) + 1
        drawn = self._rng.permutation(sorted(self._held))[:n].tolist()
        return [self._arrival(ticket) for ticket in drawn]

    def running(self) -> list[Running]:
        """See :class:`~archgym.simulators.executor.Executor`."""
        return [Running(ticket, f"worker {ticket}", 0.0) for ticket in self._held]

    def cancel(self, ticket: int) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self._held.pop(ticket, None)

    def close(self) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self._held.clear()

    def _arrival(self, ticket: int) -> Arrival:
        result, _ = simulate_one(self._simulator, self._space, *self._held.pop(ticket))
        return Arrival(ticket, result, 2.0, f"worker {ticket}", self._clock - 2.0, self._clock)


class _Interruption(Exception):
    pass


def check_in_flight(subject: Subject) -> str:
    """With several designs in flight it keeps to the budget, and resumes from what had arrived."""
    family = first_taken(subject)
    with tempfile.TemporaryDirectory() as folder:
        whole, executor = _search(subject, family, Path(folder) / "whole", order=1)
        again, _ = _search(subject, family, Path(folder) / "again", order=1)
        expect(again == whole, "the same order of results gave another search")
        before, _ = _search(subject, family, Path(folder) / "cut", order=1, stop=BUDGET // 2)
        resumed, _ = _search(subject, family, Path(folder) / "cut", order=2, resume=True)
    expect(
        resumed[: len(before)] == before == whole[: len(before)],
        "the resumed search, with results in another order from then on, begins as another one",
    )
    return f"up to {executor.most_in_flight} in flight"


def _search(
    subject: Subject,
    family: Family,
    record: Path,
    *,
    order: int,
    stop: int | None = None,
    resume: bool = False,
) -> tuple[list[Evaluation], ShuffledExecutor]:
    """The evaluations of a search in the order of their outcomes.

    Args:
        subject: the agent.
        family: of the environment.
        record: folder of the dataset.
        order: seed of the order of results.
        stop: outcomes after which it is interrupted.
        resume: whether it goes on from the dataset.
    """
    env = family.make(record=record)
    executor = ShuffledExecutor(env, order)
    seen = watch(env)
    note = env.on_evaluated

    def interrupt(outcomes: Outcomes) -> None:
        assert note is not None
        note(outcomes)
        if stop is not None and len(seen) >= stop:
            raise _Interruption

    env.on_evaluated = interrupt
    with contextlib.suppress(_Interruption), contextlib.closing(env):
        result = subject.make(env, 3).search(env, BUDGET, trial_id="t", resume=resume)
        ended(env, result, BUDGET)
    return list(seen), executor
