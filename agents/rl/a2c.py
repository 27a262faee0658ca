"""Advantage actor-critic."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from archgym.agents.common.hyperparameters import Period
from archgym.agents.rl.on_policy import OnPolicy, OnPolicyHyperparameters


class A2C(OnPolicy):
    """Advantage actor-critic, Stable-Baselines3's, on whole designs or a parameter a step.

    One gradient step for each rollout, so these are short.

    With history, the search starts from a policy and a value function that were fitted to the
    logged designs, the better ones more (advantage-weighted regression), as far as its first
    designs show that the sources can be believed.

    References:
        Mnih et al., Asynchronous Methods for Deep Reinforcement Learning, ICML 2016.
        Raffin et al., Stable-Baselines3: Reliable Reinforcement Learning
            Implementations, JMLR 22, 2021.
    """

    name: ClassVar[str] = "a2c"
    algorithm: ClassVar[str] = "stable_baselines3:A2C"

    class Hyperparameters(OnPolicyHyperparameters):
        """Hyperparameters of A2C."""

        rollout: Period = Field(64, description="designs proposed between two updates")

    def arguments(self) -> dict[str, Any]:
        """Those of on-policy algorithms; advantages are scaled, since rewards differ by little."""
        return {**super().arguments(), "normalize_advantage": True}
