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
            self._arrived: deque[tuple[int, float]] = deque()
            self._in_flight = 0
        step = super().step_wait()
        self.tickets = np.array([info.get(_TICKET, -1) for info in step[3]], dtype=np.int64)
        return step

    def is_known(self, ticket: int) -> bool:
        """Whether the reward of a ticket is there."""
        return ticket in self._rewards

    def known(self, tickets: NDArray[np.int64]) -> bool:
        """Whether the rewards of all tickets are there."""
        return all(map(self.is_known, tickets[tickets >= 0].tolist()))

    def wait_for(self, tickets: NDArray[np.int64]) -> NDArray[np.float32]:
        """Rewards of tickets, 0 for -1; each ticket may be asked for once."""
        while not self.known(tickets):
            self.collect()
        rewards = np.zeros(tickets.shape, dtype=np.float32)
        for place, ticket in zip(np.argwhere(tickets >= 0), tickets[tickets >= 0], strict=True):
            rewards[tuple(place)] = self._rewards.pop(int(ticket))
        return rewards

    def collect(self) -> None:
        """Waits for the next outcome.

        Of several that come together only the first is taken, so that a resumed search, which
        gets them one by one, learns the same.
        """
        if not self._arrived:
            for ticket, outcomes in self.env.collect():
                self._in_flight -= 1
                self._arrived.append((ticket, float(outcomes.reward[0])))
        if self._arrived:
            ticket, reward = self._arrived.popleft()
            self._rewards[ticket] = reward

    def _evaluate(
        self, designs: Designs
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], list[dict[str, Any]]]:
        core = self.env.evaluator
        infos: list[dict[str, Any]] = []
        for row in range(len(designs)):
            while self._arrived or not core.vacant:
                self.collect()
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
                self.collect()
            else:
                self._in_flight += 1
                return ticket


class SteadyStepwiseView(SteadyView, StepwiseVectorView):
    """The same, with one parameter chosen a step."""


def steady_rollouts(kind: type[RolloutBuffer], *, single_steps: bool) -> type[RolloutBuffer]:
    """A rollout buffer that learns from the designs whose simulations end first.

    With one step an episode, a rollout holds those designs whose rewards came first; the others
    are for the next one. In the first rollout, in which that leaves places free, some designs
    are there twice. With several steps an episode it waits for all of its designs.

    Args:
        kind: that the algorithm uses.
        single_steps: whether each episode is one step.
    """

    class SteadyRollouts(kind):  # type: ignore[misc, valid-type]
        """The buffer; it has a further argument ``view``."""

        def __init__(self, *args: Any, view: SteadyView, **keywords: Any) -> None:
            self._view = view
            self._open: dict[int, tuple[Any, ...]] = {}  # steps of earlier rollouts, by ticket
            super().__init__(*args, **keywords)

        def reset(self) -> None:
            self._tickets = np.full((self.buffer_size, self.n_envs), -1, dtype=np.int64)
            super().reset()

        def add(self, *args: Any, **keywords: Any) -> None:
            self._tickets[self.pos] = self._view.tickets
            super().add(*args, **keywords)

        def compute_returns_and_advantage(self, last_values: Any, dones: Any) -> None:
            if single_steps:
                self._take_finished()
            else:
                self.rewards += self._view.wait_for(self._tickets)
            super().compute_returns_and_advantage(last_values, dones)

        def _take_finished(self) -> None:
            """Puts finished steps of this rollout, or left from earlier ones, in the places."""
            columns = (self.observations, self.actions, self.values, self.log_probs)
            n = self._tickets.size
            flat = [column.reshape(n, *column.shape[2:]) for column in columns]
            steps = zip(*(column.copy() for column in flat), strict=True)
            first = not self._open
            self._open.update(zip(self._tickets.ravel().tolist(), steps, strict=True))
            left_over = min(self._view.env.evaluator.slots, n // 2) if first else 0
            while len(done := [t for t in self._open if self._view.is_known(t)]) < n - left_over:
                self._view.collect()
            chosen = np.resize(np.array(done[:n]), n)
            for column, values in zip(
                flat, zip(*(self._open[t] for t in chosen.tolist()), strict=True), strict=True
            ):
                column[:] = values
            unique = np.array(done[:n])
            rewards = dict(zip(done[:n], self._view.wait_for(unique).tolist(), strict=True))
            self.rewards[:] = np.reshape([rewards[t] for t in chosen.tolist()], self.rewards.shape)
            for ticket in done[:n]:
                del self._open[ticket]

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
