"""Agents that learn from what their present policy proposed: PPO, masked PPO and A2C."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from archgym.agents.rl.learner import Learner, LearnerHyperparameters
from archgym.errors import MissingDependencyError
from archgym.space import Encoding, MultiDiscreteEncoding

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

    from archgym.views.vector import VectorView

__all__ = ["A2C", "PPO", "MaskablePPO"]


class _OnPolicyHyperparameters(LearnerHyperparameters):
    """Hyperparameters that on-policy agents share."""

    rollout: int = Field(
        128, ge=2, le=1_000_000, description="designs proposed between two updates of the policy"
    )
    gae_lambda: float = Field(
        0.95, ge=0, le=1, description="1: advantages from rewards only, 0: from the next value"
    )
    ent_coef: float = Field(
        0.01, ge=0, le=10, description="weight of the policy's entropy, which keeps it exploring"
    )
    vf_coef: float = Field(0.5, ge=0, le=100, description="weight of the value function's error")
    max_grad_norm: float = Field(0.5, gt=0, le=1000, description="gradients are cut to this norm")


class _OnPolicy(Learner):
    """Whole designs as one action each, or a parameter a step."""

    def encoding(self) -> Encoding | None:
        """One integer a parameter, or a parameter a step."""
        if self.hyperparameters.form == "stepwise":
            return None
        return MultiDiscreteEncoding(self.space, self.hyperparameters.levels)

    def _shared(self, common: dict[str, Any]) -> dict[str, Any]:
        """Arguments of all on-policy algorithms; ``n_steps`` is in steps of each of ``n_envs``."""
        settings = self.hyperparameters
        return {
            **common,
            "n_steps": max(2, settings.rollout * self.steps_per_design // settings.n_envs),
            "gae_lambda": settings.gae_lambda,
            "ent_coef": settings.ent_coef,
            "vf_coef": settings.vf_coef,
            "max_grad_norm": settings.max_grad_norm,
        }


class PPO(_OnPolicy):
    """Proximal policy optimisation, Stable-Baselines3's, on whole designs or a parameter a step.

    The defaults update the policy every 128 designs, since budgets here are some thousands.
    Real parameters are seen at ``levels`` values.

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

    class Hyperparameters(_OnPolicyHyperparameters):
        """Hyperparameters of PPO."""

        form: Literal["design", "stepwise"] = Field(
            "design", description="an action is a whole design, or the value of one parameter"
        )
        batch_size: int = Field(
            64, ge=2, le=1_000_000, description="designs from which a gradient step learns"
        )
        n_epochs: int = Field(
            5, ge=1, le=1000, description="how often an update goes through its steps"
        )
        clip_range: float = Field(
            0.2, gt=0, le=10, description="most that an update changes a choice's odds, as a share"
        )

    def build(self, view: VectorView, common: dict[str, Any]) -> BaseAlgorithm:
        """Stable-Baselines3's PPO."""
        from stable_baselines3 import PPO as Algorithm

        return Algorithm(env=view, **self._proximal(common))

    def _proximal(self, common: dict[str, Any]) -> dict[str, Any]:
        settings, shared = self.hyperparameters, self._shared(common)
        return {
            **shared,
            "batch_size": min(
                settings.batch_size * self.steps_per_design, shared["n_steps"] * settings.n_envs
            ),
            "n_epochs": settings.n_epochs,
            "clip_range": settings.clip_range,
        }


class MaskablePPO(PPO):
    """PPO that chooses a parameter a step among the legal values; needs ``archgym[sb3-contrib]``.

    Masks leave out values that the parameter does not have and those that break a rule;
    inactive parameters take no step. So no proposal is wasted on an illegal design, unless
    choices made before a rule could be seen to leave nothing else.

    References:
        Huang and Ontañón, A Closer Look at Invalid Action Masking in Policy Gradient
            Algorithms, FLAIRS 2022.
        Raffin et al., Stable-Baselines3: Reliable Reinforcement Learning
            Implementations, JMLR 22, 2021.
    """

    name: ClassVar[str] = "maskable_ppo"

    class Hyperparameters(PPO.Hyperparameters):
        """Hyperparameters of PPO with action masks."""

        form: Literal["stepwise"] = Field(
            "stepwise", description="an action is the value of one parameter"
        )

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

    def build(self, view: VectorView, common: dict[str, Any]) -> BaseAlgorithm:
        """sb3-contrib's MaskablePPO."""
        from sb3_contrib import MaskablePPO as Algorithm

        algorithm: BaseAlgorithm = Algorithm(env=view, **self._proximal(common))
        return algorithm


class A2C(_OnPolicy):
    """Advantage actor-critic, Stable-Baselines3's, on whole designs or a parameter a step.

    One gradient step for each rollout, so these are short.

    References:
        Mnih et al., Asynchronous Methods for Deep Reinforcement Learning, ICML 2016.
        Raffin et al., Stable-Baselines3: Reliable Reinforcement Learning
            Implementations, JMLR 22, 2021.
    """

    name: ClassVar[str] = "a2c"

    class Hyperparameters(_OnPolicyHyperparameters):
        """Hyperparameters of A2C."""

        form: Literal["design", "stepwise"] = Field(
            "design", description="an action is a whole design, or the value of one parameter"
        )
        rollout: int = Field(
            64, ge=2, le=1_000_000, description="designs proposed between two updates"
        )

    def build(self, view: VectorView, common: dict[str, Any]) -> BaseAlgorithm:
        """Stable-Baselines3's A2C; advantages are scaled, since rewards differ by little."""
        from stable_baselines3 import A2C as Algorithm

        return Algorithm(env=view, normalize_advantage=True, **self._shared(common))
