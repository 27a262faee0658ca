"""Base of the agents that learn from designs of their present policy only: PPO and A2C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from archgym.agents.common.arrays import Floats
from archgym.agents.common.hyperparameters import Factor, Period, Share, Weight
from archgym.agents.rl.learner import Learner, LearnerHyperparameters
from archgym.space import Encoding, MultiDiscreteEncoding

if TYPE_CHECKING:
    from archgym.agents.rl.logged import LoggedSteps


class OnPolicyHyperparameters(LearnerHyperparameters):
    """Hyperparameters that on-policy agents share."""

    form: Literal["design", "stepwise"] = Field(
        "design", description="an action is a whole design, or the value of one parameter"
    )
    rollout: Period = Field(128, description="designs proposed between two updates of the policy")
    gae_lambda: Share = Field(
        0.95, description="generalised advantage estimation: 1 uses rewards only, 0 the next value"
    )
    ent_coef: Weight = Field(
        0.01, description="weight of the policy's entropy, which keeps it exploring"
    )
    vf_coef: Factor = Field(0.5, description="weight of the value function's error")
    max_grad_norm: float = Field(0.5, gt=0, le=1000, description="maximum norm of the gradient")


class OnPolicy(Learner):
    """Whole designs as one action each, or a parameter a step."""

    def encoding(self) -> Encoding | None:
        """One integer a parameter, or a parameter a step."""
        if self.hyperparameters.form == "stepwise":
            return None
        return MultiDiscreteEncoding(self.space, self.hyperparameters.levels)

    def buffer_kind(self) -> tuple[str, Any]:
        """Rollouts."""
        from archgym.agents.rl.steady import SteadyRollouts

        return "rollout_buffer", SteadyRollouts

    def arguments(self) -> dict[str, Any]:
        """Those of all on-policy algorithms; ``n_steps`` is in steps of each of ``n_envs``."""
        settings = self.hyperparameters
        return {
            **super().arguments(),
            **settings.model_dump(include={"gae_lambda", "ent_coef", "vf_coef", "max_grad_norm"}),
            "n_steps": max(2, settings.rollout * self.steps_per_design // settings.n_envs),
        }

    def pretrain(self, model: Any, steps: LoggedSteps, weights: Floats, trust: float) -> None:
        """Fits the policy to the better designs, and the value function to their rewards."""
        from archgym.agents.rl.cloning import imitate  # needs torch

        imitate(model.policy, steps, weights, trust, self.rng)
