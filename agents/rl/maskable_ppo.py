"""Proximal policy optimisation with masks of illegal actions."""

from __future__ import annotations

import importlib.util
from typing import Any, ClassVar, Literal

from pydantic import Field

from archgym.agents.rl.ppo import PPO
from archgym.errors import MissingDependencyError


class MaskablePPO(PPO):
    """PPO that chooses a parameter a step among the legal values; needs ``archgym[sb3-contrib]``.

    Masks leave out values that the parameter does not have and those that break a rule;
    inactive parameters take no step. So no proposal is wasted on an illegal design, unless
    choices made before a rule could be seen to leave nothing else.

    With history, the search starts from a policy and a value function that were fitted to the
    logged designs, the better ones more (advantage-weighted regression), as far as its first
    designs show that the sources can be believed.

    References:
        Huang and Ontañón, A Closer Look at Invalid Action Masking in Policy Gradient
            Algorithms, FLAIRS 2022.
        Raffin et al., Stable-Baselines3: Reliable Reinforcement Learning
            Implementations, JMLR 22, 2021.
    """

    name: ClassVar[str] = "maskable_ppo"
    algorithm: ClassVar[str] = "sb3_contrib:MaskablePPO"
    masked: ClassVar[bool] = True

    class Hyperparameters(PPO.Hyperparameters):
        """Hyperparameters of PPO with action masks."""

        form: Literal["stepwise"] = Field(
            "stepwise", description="an action is the value of one parameter"
        )

    def buffer_kind(self) -> tuple[str, Any]:
        """Rollouts with masks."""
        from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer

        from archgym.agents.rl.steady import SteadyRollouts

        class SteadyMaskableRollouts(SteadyRollouts, MaskableRolloutBuffer):
            """Steps have masks, too."""

        return "rollout_buffer", SteadyMaskableRollouts

    def setup(self) -> None:
        """As every learner.

        Raises:
            MissingDependencyError: if sb3-contrib is not installed.
        """
        if importlib.util.find_spec("sb3_contrib") is None:
            raise MissingDependencyError(
                f"agent {self.name!r} needs sb3-contrib: pip install 'archgym[sb3-contrib]'"
            )
        super().setup()
