"""Proximal policy optimisation."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from archgym.agents.common.hyperparameters import Few, Period, Rate
from archgym.agents.rl.on_policy import OnPolicy, OnPolicyHyperparameters


class PPO(OnPolicy):
    """Proximal policy optimisation, Stable-Baselines3's, on whole designs or a parameter a step.

    The defaults update the policy every 128 designs, since budgets here are some thousands.
    Real parameters are seen at ``levels`` values.

    With history, the search starts from a policy and a value function that were fitted to the
    logged designs, the better ones more (advantage-weighted regression), as far as its first
    designs show that the sources can be believed.

    References:
        Schulman et al., Proximal Policy Optimization Algorithms, arXiv 1707.06347,
            2017.
        Raffin et al., Stable-Baselines3: Reliable Reinforcement Learning
            Implementations, JMLR 22, 2021.

    >>> import archgym
    >>> from archgym.registry import make_agent
    >>> env = archgym.make("Conformance-v0")
    >>> result = make_agent("ppo", env.design_space, seed=1).search(env, budget=200)
    >>> result.simulations
    200
    """

    name: ClassVar[str] = "ppo"
    algorithm: ClassVar[str] = "stable_baselines3:PPO"

    class Hyperparameters(OnPolicyHyperparameters):
        """Hyperparameters of PPO."""

        batch_size: Period = Field(64, description="designs from which a gradient step learns")
        n_epochs: Few = Field(5, description="passes over the designs of a rollout in an update")
        clip_range: Rate = Field(
            0.2, description="maximum relative change of an action's probability"
        )

    def arguments(self) -> dict[str, Any]:
        """Those of on-policy algorithms, and batches of at most a rollout."""
        settings, shared = self.hyperparameters, super().arguments()
        size = settings.batch_size * self.steps_per_design
        return {
            **shared,
            **settings.model_dump(include={"n_epochs", "clip_range"}),
            "batch_size": min(size, shared["n_steps"] * settings.n_envs),
        }
