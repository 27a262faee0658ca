"""Learning while designs are in flight: views that do not wait, and buffers that do.

Where several workers simulate, a step of the vector view only submits its designs. The policy does
not need their outcomes to go on: with one design an episode, what it sees depends on its choices
alone. The buffer that the algorithm learns from takes the rewards when they are there.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer

from archgym.errors import BudgetExhausted
from archgym.space import Designs
from archgym.views.vector import StepwiseVectorView, VectorView

_TICKET = "ticket"


class SteadyView(VectorView):
    """A vector view that submits designs, and waits only until a worker is free for each.

    Its rewards are 0 until :meth:`wait_for` gives them.

    Attributes:
        tickets: of the designs of the last step, -1 where an environment had none, shape
            (n_envs,).
    """

    tickets: NDArray[np.int64]

    def step_wait(self) -> Any:
        """As its base, with tickets in place of outcomes."""
        if not hasattr(self, "_rewards"):
            self._rewards: dict[int, float] = {}
            self._in_flight = 0
        step = super().step_wait()
        self.tickets = np.array([info.get(_TICKET, -1) for info in step[3]], dtype=np.int64)
        return step

    def known(self, tickets: NDArray[np.int64]) -> bool:
        """Whether the rewards of all tickets are there."""
        return all(ticket in self._rewards for ticket in tickets[tickets >= 0].tolist())

    def wait_for(self, tickets: NDArray[np.int64]) -> NDArray[np.float32]:
        """Rewards of tickets, 0 for -1; each ticket may be asked for once."""
        while not self.known(tickets):
            self._collect()
        rewards = np.zeros(tickets.shape, dtype=np.float32)
        for place, ticket in zip(np.argwhere(tickets >= 0), tickets[tickets >= 0], strict=True):
            rewards[tuple(place)] = self._rewards.pop(int(ticket))
        return rewards

    def _collect(self) -> None:
        for ticket, outcomes in self.env.collect():
            self._in_flight -= 1
            self._rewards[ticket] = float(outcomes.reward[0])

    def _evaluate(
        self, designs: Designs
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], list[dict[str, Any]]]:
        core = self.env.evaluator
        infos: list[dict[str, Any]] = []
        for row in range(len(designs)):
            while not core.vacant:
                self._collect()
            infos.append({_TICKET: self._submit(designs[row : row + 1])})
        shape = (len(designs), *(self.env.observation_space.shape or ()))
        return np.zeros(shape, np.float32), np.zeros(len(designs), np.float32), infos

    def _submit(self, design: Designs) -> int:
        """Submits a design; where the budget is spent, what is in flight comes first."""
        while True:
            try:
                (ticket,) = self.env.submit(design)
            except BudgetExhausted:
                if not self._in_flight:
                    raise
                self._collect()
            else:
                self._in_flight += 1
                return ticket


class SteadyStepwiseView(SteadyView, StepwiseVectorView):
    """The same, with one parameter chosen a step."""


def steady_rollouts(kind: type[RolloutBuffer]) -> type[RolloutBuffer]:
    """A rollout buffer that waits for the rewards of its designs when it is full.

    Args:
        kind: that the algorithm uses.
    """

    class SteadyRollouts(kind):  # type: ignore[misc, valid-type]
        """The buffer; it has a further argument ``view``."""

        def __init__(self, *args: Any, view: SteadyView, **keywords: Any) -> None:
            self._view = view
            super().__init__(*args, **keywords)

        def reset(self) -> None:
            self._tickets = np.full((self.buffer_size, self.n_envs), -1, dtype=np.int64)
            super().reset()

        def add(self, *args: Any, **keywords: Any) -> None:
            self._tickets[self.pos] = self._view.tickets
            super().add(*args, **keywords)

        def compute_returns_and_advantage(self, *args: Any, **keywords: Any) -> None:
            self.rewards += self._view.wait_for(self._tickets)
            super().compute_returns_and_advantage(*args, **keywords)

    return SteadyRollouts


class SteadyReplay(ReplayBuffer):
    """A replay buffer that takes steps when the rewards of all their designs are there.

    Args:
        view: gives the rewards.
    """

    def __init__(self, *args: Any, view: SteadyView, **keywords: Any) -> None:
        self._view = view
        self._steps: deque[tuple[NDArray[np.int64], tuple[Any, ...]]] = deque()
        super().__init__(*args, **keywords)

    def add(self, *step: Any) -> None:
        """Takes a step, and those before it whose rewards are there by now."""
        self._steps.append((self._view.tickets, step))
        for _ in range(len(self._steps)):
            tickets, step = self._steps.popleft()
            if self._view.known(tickets):
                self._take(tickets, step)
            else:
                self._steps.append((tickets, step))

    def sample(self, *args: Any, **keywords: Any) -> Any:
        """As its base; waits for the first step."""
        if not self.size():
            self._take(*self._steps.popleft())
        return super().sample(*args, **keywords)

    def _take(self, tickets: NDArray[np.int64], step: tuple[Any, ...]) -> None:
        obs, next_obs, action, reward, done, infos = step
        rewards = np.asarray(reward) + self._view.wait_for(tickets)
        super().add(obs, next_obs, action, rewards, done, infos)
