"""Executors of which a test says what arrives when."""

from __future__ import annotations

import random
from collections.abc import Sequence

from archgym.environment.environment import Environment
from archgym.simulators.executor import Arrival, Running
from archgym.simulators.queued import QueuedSimulator, simulate_one


class Shuffled:
    """Simulates at once, and lets results arrive in a random order, several at a time at random.

    Args:
        environment: whose simulator it takes the place of.
        seed: of the order.
        slots: largest number of workers; if ``moody`` they come and go.
    """

    def __init__(
        self, environment: Environment, seed: int = 0, slots: int = 4, *, moody: bool = False
    ) -> None:
        self._simulator, self._space = environment.simulator, environment.design_space
        self._random, self._most, self._moody = random.Random(seed), slots, moody
        self._held: dict[int, tuple[Sequence[int], float]] = {}
        self._clock = 0.0
        self.slots = slots
        self.sent: list[tuple[int, ...]] = []
        self.most_in_flight = 0
        environment.simulator = QueuedSimulator(self._simulator, self, asynchronous=slots > 1)

    def restart(self) -> None:
        self._held.clear()

    def now(self) -> float:
        return self._clock

    def submit(self, ticket: int, codes: Sequence[int], fidelity: float) -> None:
        self._held[ticket] = codes, fidelity
        self.sent.append(tuple(codes))
        self.most_in_flight = max(self.most_in_flight, len(self._held))

    def collect(self, timeout_s: float | None) -> list[Arrival]:
        if timeout_s == 0 or not self._held:
            return []
        self._clock += 1.0
        if self._moody:
            self.slots = self._random.randint(0, self._most)
        n = self._random.randint(1, min(3, len(self._held)))
        return [self._arrival(ticket) for ticket in self._random.sample(sorted(self._held), n)]

    def running(self) -> list[Running]:
        return [Running(ticket, f"worker {ticket}", 0.0) for ticket in self._held]

    def cancel(self, ticket: int) -> None:
        self._held.pop(ticket, None)

    def close(self) -> None:
        self._held.clear()

    def _arrival(self, ticket: int) -> Arrival:
        result, _ = simulate_one(self._simulator, self._space, *self._held.pop(ticket))
        return Arrival(ticket, result, 2.0, f"worker {ticket}", self._clock - 2.0, self._clock)
