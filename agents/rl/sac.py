"""Soft actor-critic."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from archgym.agents.common.hyperparameters import Number, Rate, Size
from archgym.agents.rl.off_policy import OffPolicy, OffPolicyHyperparameters
from archgym.space import BoxEncoding, Encoding


class SAC(OffPolicy):
    """Soft actor-critic, Stable-Baselines3's, on one number in [-1, 1] a parameter.

    The values of a discrete parameter have equal shares of that range, in their order, so every
    value can be reached (:class:`archgym.space.BoxEncoding`); real parameters are not coarsened.

    With history, the search starts with values that were learned from the logged designs, which
    stay in memory, as far as its first designs show that the sources can be believed.

    References:
        Haarnoja et al., Soft Actor-Critic, ICML 2018.
        Raffin et al., Stable-Baselines3: Reliable Reinforcement Learning
            Implementations, JMLR 22, 2021.
    """

    name: ClassVar[str] = "sac"
    algorithm: ClassVar[str] = "stable_baselines3:SAC"

    class Hyperparameters(OffPolicyHyperparameters):
        """Hyperparameters of SAC."""

        n_envs: Size = Field(4, description="designs chosen side by side, as one batch")
        gradient_steps: Number = Field(2, description="gradient steps after each batch of designs")
        entropy: Rate = Field(
            0.03, description="initial weight of the policy's entropy, which is adapted later"
        )

    def encoding(self) -> Encoding:
        """One number a parameter."""
        return BoxEncoding(self.space)

    def arguments(self) -> dict[str, Any]:
        """Those of off-policy algorithms, and an entropy weight that adapts."""
        return {**super().arguments(), "ent_coef": f"auto_{self.hyperparameters.entropy:g}"}
