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
_FEWEST = 4
"""A rollout has at least one in so many of its places filled by different steps."""
_Step = dict[str, Any]
"""What a rollout buffer holds of a step, by column."""


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

    @property
    def worker_is_free(self) -> bool:
        """Whether a design is to be submitted before the next outcome."""
        return not self._arrived and self.env.evaluator.vacant > 0

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
            for ticket, outcomes in self.env.collect(self.env.evaluator.patience_s):
                self._in_flight -= 1
                self._arrived.append((ticket, float(outcomes.reward[0])))
        if self._arrived:
            ticket, reward = self._arrived.popleft()
            self._rewards[ticket] = reward

    def _evaluate(
        self, designs: Designs
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], list[dict[str, Any]]]:
        infos: list[dict[str, Any]] = []
        for row in range(len(designs)):
            while not self.worker_is_free:
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


class SteadyRollouts(RolloutBuffer):
    """A rollout buffer that learns from the designs whose simulations end first.

    A rollout holds the steps of those designs whose rewards came first; the others are for the
    next one. Where that leaves places free when a worker is free, such as in the first rollout,
    some steps are there several times.

    Args:
        view: gives the rewards.
    """

    def __init__(self, *args: Any, view: SteadyView, **keywords: Any) -> None:
        self._view = view
        super().__init__(*args, **keywords)
        self._columns = ["observations", "actions", "values", "log_probs"]
        self._columns += ["action_masks"] if hasattr(self, "action_masks") else []
        self._open: list[list[_Step]] = [[] for _ in range(self.n_envs)]
        self._in_flight: dict[int, list[_Step]] = {}  # steps of a design, by its ticket
        self._finished: deque[tuple[_Step, float]] = deque()  # steps and their advantages

    def add(self, *args: Any, **keywords: Any) -> None:
        """Takes a step of each environment."""
        row = self.pos
        super().add(*args, **keywords)
        held = {name: getattr(self, name)[row] for name in self._columns}
        for i, ticket in enumerate(self._view.tickets.tolist()):
            self._open[i].append({name: values[i].copy() for name, values in held.items()})
            if ticket >= 0:
                self._in_flight[ticket], self._open[i] = self._open[i], []

    def compute_returns_and_advantage(self, last_values: Any, dones: Any) -> None:
        """Fills the places with steps whose rewards are there; waits for some of them."""
        n = self.buffer_size * self.n_envs
        self._take_finished()
        while self._in_flight and len(self._finished) < n:
            if len(self._finished) >= max(1, n // _FEWEST) and self._view.worker_is_free:
                break
            self._view.collect()
            self._take_finished()
        self.advantages[:] = 0.0
        taken = [self._finished.popleft() for _ in range(min(n, len(self._finished)))]
        for place in range(n if taken else 0):
            step, advantage = taken[place % len(taken)]
            at = divmod(place, self.n_envs)
            self.advantages[at] = advantage
            for name, value in step.items():
                getattr(self, name)[at] = value
        self.returns = self.advantages + self.values

    def _take_finished(self) -> None:
        for ticket in [t for t in self._in_flight if self._view.is_known(t)]:
            steps = self._in_flight.pop(ticket)
            (reward,) = self._view.wait_for(np.array([ticket])).tolist()
            self._finished += zip(steps, self._advantages(steps, reward), strict=True)

    def _advantages(self, steps: list[_Step], reward: float) -> list[float]:
        """Generalised advantages of the steps of a design; the last one has the reward."""
        advantages: list[float] = []
        advantage, target = 0.0, reward
        for step in reversed(steps):
            value = float(step["values"])
            advantage = target - value + self.gamma * self.gae_lambda * advantage
            target = self.gamma * value
            advantages.append(advantage)
        return advantages[::-1]


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
