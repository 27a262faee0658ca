"""Base of the agents that learn from all designs that they proposed: DQN and SAC."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from archgym.agents.common.hyperparameters import Count, Number, Steps
from archgym.agents.rl.learner import Learner, LearnerHyperparameters


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
