"""Base of the agents that learn from all designs that they proposed: DQN and SAC."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from archgym.agents.common.arrays import Floats
from archgym.agents.common.hyperparameters import Count, Number, Steps
from archgym.agents.rl.learner import Learner, LearnerHyperparameters

if TYPE_CHECKING:
    from archgym.agents.rl.logged import LoggedSteps

_LOGGED_GRADIENT_STEPS = 400


class OffPolicyHyperparameters(LearnerHyperparameters):
    """Hyperparameters that off-policy agents share."""

    learning_starts: Count = Field(100, description="random designs before the first gradient step")
    buffer_size: Steps = Field(100_000, description="steps in the replay buffer, the newest ones")
    batch_size: Count = Field(64, description="steps from which a gradient step learns")
    train_every: Number = Field(
        1, description="steps of all n_envs between two rounds of gradient steps"
    )
    gradient_steps: Number = Field(1, description="gradient steps in a round")


class OffPolicy(Learner):
    """Learns from a memory of steps."""

    def buffer_kind(self) -> tuple[str, Any]:
        """A memory."""
        from archgym.agents.rl.steady import SteadyReplay

        return "replay_buffer", SteadyReplay

    def arguments(self) -> dict[str, Any]:
        """Those of all off-policy algorithms."""
        settings = self.hyperparameters
        return {
            **super().arguments(),
            **settings.model_dump(include={"batch_size", "gradient_steps"}),
            "learning_starts": settings.learning_starts * self.steps_per_design,
            "buffer_size": max(settings.buffer_size, settings.n_envs),
            "train_freq": settings.train_every,
        }

    def pretrain(self, model: Any, steps: LoggedSteps, weights: Floats, trust: float) -> None:
        """Learns the returns of logged steps, then holds the steps in memory.

        Random designs before the first step are not needed then. Weights say only which designs
        are believed: values are learned from good and bad ones.
        """
        # Returns as rewards of one step each: values need not pass from step to step.
        over = replace(steps, rewards=steps.returns, dones=np.ones(len(steps), dtype=np.bool_))
        _remember(model, over)
        model.learning_starts = 0
        model.train(_LOGGED_GRADIENT_STEPS, model.batch_size)
        model.replay_buffer.reset()
        _remember(model, steps)


def _remember(model: Any, steps: LoggedSteps) -> None:
    """Adds steps to the memory of an algorithm; if they do not fill its last row, some twice."""
    from stable_baselines3.common.buffers import ReplayBuffer  # slow, and only needed here

    n = model.n_envs
    rows = np.resize(np.arange(len(steps)), -(-len(steps) // n) * n).reshape(-1, n)
    for some in rows[-model.replay_buffer.buffer_size :]:
        # Not the memory's own method, which may wait for designs that are in flight.
        ReplayBuffer.add(
            model.replay_buffer,
            steps.observations[some],
            steps.next_observations[some],
            steps.actions[some],
            steps.rewards[some],
            steps.dones[some],
            [{}] * n,
        )
