"""Agents that learn from all that they ever proposed: DQN and SAC."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from archgym.agents.rl.learner import ENDLESS, Learner, LearnerHyperparameters
from archgym.errors import AgentUnsuitableError
from archgym.space import BoxEncoding, Encoding, FlatEncoding, MultiDiscreteEncoding

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

    from archgym.views.vector import VectorView

__all__ = ["DQN", "SAC"]

_MAX_FLAT = 1024
"""Most combinations that DQN sees as one action each: each has to be tried to be known."""


class _OffPolicyHyperparameters(LearnerHyperparameters):
    """Hyperparameters that off-policy agents share."""

    learning_starts: int = Field(
        100, ge=1, le=1_000_000, description="random designs before the first gradient step"
    )
    buffer_size: int = Field(
        100_000, ge=1, le=100_000_000, description="steps that are remembered, the newest ones"
    )
    batch_size: int = Field(64, ge=1, le=1_000_000, description="steps in a gradient step")
    train_every: int = Field(
        1, ge=1, le=10_000, description="steps of all n_envs between two rounds of gradient steps"
    )
    gradient_steps: int = Field(1, ge=1, le=10_000, description="gradient steps a round")


class _OffPolicy(Learner):
    """What DQN and SAC hand to Stable-Baselines3 alike."""

    def _shared(self, common: dict[str, Any]) -> dict[str, Any]:
        settings = self.hyperparameters
        return {
            **common,
            "learning_starts": settings.learning_starts * self.steps_per_design,
            "buffer_size": max(settings.buffer_size, settings.n_envs),
            "batch_size": settings.batch_size,
            "train_freq": settings.train_every,
            "gradient_steps": settings.gradient_steps,
        }


class DQN(_OffPolicy):
    """Deep Q-learning, Stable-Baselines3's: each possible action has a value.

    Spaces of up to 1,024 combinations are seen as one action each, larger ones a parameter a
    step, unless ``form`` says otherwise. Real parameters are seen at ``levels`` values.

    References:
        Mnih et al., Human-level control through deep reinforcement learning, Nature
            518, 2015.
        Raffin et al., Stable-Baselines3: Reliable Reinforcement Learning
            Implementations, JMLR 22, 2021.
    """

    name: ClassVar[str] = "dqn"

    class Hyperparameters(_OffPolicyHyperparameters):
        """Hyperparameters of DQN."""

        form: Literal["auto", "design", "stepwise"] = Field(
            "auto",
            description="an action is a whole design (at most 1,024 combinations), or the value "
            "of one parameter; auto: the first where it is possible",
        )
        n_envs: int = Field(
            1, ge=1, le=4096, description="designs chosen side by side; greedy ones are the same"
        )
        train_every: int = Field(
            4, ge=1, le=10_000, description="steps between two rounds of gradient steps"
        )
        exploration: int = Field(
            1000,
            ge=1,
            le=100_000_000,
            description="designs over which the share of random actions falls to final_epsilon",
        )
        final_epsilon: float = Field(
            0.05, ge=0, le=1, description="share of random actions in the end"
        )
        target_update: int = Field(
            200, ge=1, le=1_000_000, description="steps after which the target network follows"
        )

    def encoding(self) -> Encoding | None:
        """One integer a design where there are few, else a parameter a step."""
        form, levels = self.hyperparameters.form, self.hyperparameters.levels
        combinations = math.prod(MultiDiscreteEncoding(self.space, levels).nvec.tolist())
        if form == "design" and combinations > _MAX_FLAT:
            raise AgentUnsuitableError(
                f"agent 'dqn', form 'design': {combinations:,} combinations are too many for one "
                f"action each (at most {_MAX_FLAT:,}): use form 'stepwise'"
            )
        if form == "stepwise" or combinations > _MAX_FLAT:
            return None
        return FlatEncoding(self.space, levels)

    def build(self, view: VectorView, common: dict[str, Any]) -> BaseAlgorithm:
        """Stable-Baselines3's DQN; its share of random actions falls with our own steps."""
        from stable_baselines3 import DQN as Algorithm
        from stable_baselines3.common.utils import LinearSchedule

        settings = self.hyperparameters
        model = Algorithm(
            env=view,
            exploration_final_eps=settings.final_epsilon,
            target_update_interval=settings.target_update,
            **self._shared(common),
        )
        share = settings.exploration * self.steps_per_design / ENDLESS
        model.exploration_schedule = LinearSchedule(1.0, settings.final_epsilon, share)
        return model


class SAC(_OffPolicy):
    """Soft actor-critic, Stable-Baselines3's, on one number in [-1, 1] a parameter.

    The values of a discrete parameter have equal shares of that range, in their order, so every
    value can be reached (:class:`archgym.space.BoxEncoding`); real parameters are not coarsened.

    References:
        Haarnoja et al., Soft Actor-Critic, ICML 2018.
        Raffin et al., Stable-Baselines3: Reliable Reinforcement Learning
            Implementations, JMLR 22, 2021.
    """

    name: ClassVar[str] = "sac"

    class Hyperparameters(_OffPolicyHyperparameters):
        """Hyperparameters of SAC."""

        n_envs: int = Field(
            4, ge=1, le=4096, description="designs chosen side by side, as one batch"
        )
        gradient_steps: int = Field(
            2, ge=1, le=10_000, description="gradient steps after each batch of designs"
        )
        entropy: float = Field(
            0.03,
            gt=0,
            le=10,
            description="weight of the policy's entropy at the start; adapted from there",
        )

    def encoding(self) -> Encoding:
        """One number a parameter."""
        return BoxEncoding(self.space)

    def build(self, view: VectorView, common: dict[str, Any]) -> BaseAlgorithm:
        """Stable-Baselines3's SAC."""
        from stable_baselines3 import SAC as Algorithm

        ent_coef = f"auto_{self.hyperparameters.entropy:g}"
        return Algorithm(env=view, ent_coef=ent_coef, **self._shared(common))
