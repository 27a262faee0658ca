"""Executors around another one that know some results already."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from archgym.problem.description import ProblemDescription
from archgym.simulators.executor import Arrival, Executor, Running
from archgym.simulators.queued import TimedResult
from archgym.simulators.shared_cache import SimulationCache, simulation_key

__all__ = ["CachedExecutor", "RecallingExecutor"]


class RecallingExecutor(ABC):
    """Gives the results that it knows, and leaves the other designs to another executor.

    Args:
        inner: simulates what is not known.
    """

    def __init__(self, inner: Executor) -> None:
        self._inner = inner
        self._known: list[Arrival] = []

    @abstractmethod
    def recall(self, ticket: int, codes: Sequence[int], fidelity: float) -> TimedResult | None:
        """The result of a design and how long it took, s, if known; else it is simulated."""

    @abstractmethod
    def forget(self, ticket: int) -> None:
        """The result of a ticket is not awaited any more."""

    @abstractmethod
    def forget_all(self) -> None:
        """No result is awaited any more."""

    def restart(self) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self._known.clear()
        self.forget_all()
        self._inner.restart()

    @property
    def slots(self) -> int:
        """See :class:`~archgym.simulators.executor.Executor`."""
        return self._inner.slots

    @property
    def slots_change(self) -> bool:
        """Whether workers come and go while a search runs."""
        return bool(getattr(self._inner, "slots_change", False))

    def now(self) -> float:
        """See :class:`~archgym.simulators.executor.Executor`."""
        return self._inner.now()

    def submit(
        self,
        ticket: int,
        codes: Sequence[int],
        fidelity: float,
        rule: Mapping[str, Any] | None = None,
    ) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        known = self.recall(ticket, codes, fidelity)
        if known is None:
            self._inner.submit(ticket, codes, fidelity, rule)
        else:
            result, seconds = known
            now = self._inner.now()
            self._known.append(Arrival(ticket, result, seconds, "", now, now))

    def collect(self, timeout_s: float | None) -> list[Arrival]:
        """See :class:`~archgym.simulators.executor.Executor`."""
        arrivals = self._known + self._inner.collect(0 if self._known else timeout_s)
        self._known = []  # only now: what the other one raised would have lost them
        return arrivals

    def running(self) -> list[Running]:
        """See :class:`~archgym.simulators.executor.Executor`."""
        return self._inner.running()

    def cancel(self, ticket: int) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self._known = [one for one in self._known if one.ticket != ticket]
        self.forget(ticket)
        self._inner.cancel(ticket)

    def close(self) -> None:
        """See :class:`~archgym.simulators.executor.Executor`."""
        self._known.clear()
        self.forget_all()
        self._inner.close()


class CachedExecutor(RecallingExecutor):
    """Looks a design up in a cache before another executor simulates it.

    Args:
        inner: simulates.
        problem: of the designs.
        cache: takes each result as it arrives.
    """

    def __init__(
        self, inner: Executor, problem: ProblemDescription, cache: SimulationCache
    ) -> None:
        super().__init__(inner)
        self._problem, self._cache = problem, cache
        self._keys: dict[int, bytes] = {}

    def recall(self, ticket: int, codes: Sequence[int], fidelity: float) -> TimedResult | None:
        """What the cache holds; the seconds are those of the look-up."""
        began = time.perf_counter()
        key = simulation_key(self._problem, self._problem.space.design(codes), fidelity)
        held = self._cache.get([key])
        if key in held:
            return held[key], time.perf_counter() - began
        self._keys[ticket] = key
        return None

    def collect(self, timeout_s: float | None) -> list[Arrival]:
        """See :class:`~archgym.simulators.executor.Executor`."""
        arrivals = super().collect(timeout_s)
        simulated = [one for one in arrivals if one.ticket in self._keys]
        self._cache.put({self._keys.pop(one.ticket): one.result for one in simulated})
        return arrivals

    def forget(self, ticket: int) -> None:
        """See :class:`RecallingExecutor`."""
        self._keys.pop(ticket, None)

    def forget_all(self) -> None:
        """See :class:`RecallingExecutor`."""
        self._keys.clear()
