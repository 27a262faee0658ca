"""Deep Q-learning."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from archgym.agents.common.arrays import Floats
from archgym.agents.common.hyperparameters import Count, Number, Share, Size, Steps
from archgym.agents.rl.learner import ENDLESS
from archgym.agents.rl.off_policy import OffPolicy, OffPolicyHyperparameters
from archgym.errors import AgentUnsuitableError
from archgym.space import Encoding, FlatEncoding, MultiDiscreteEncoding

if TYPE_CHECKING:
    from archgym.agents.rl.logged import LoggedSteps

_MAX_FLAT = 1024
"""Maximum combinations that are one action each: each has to be tried to be known."""

_MIN_EXPLORED = 0.2
"""Share of the first actions that are random, however good the history is."""


class DQN(OffPolicy):
    """Deep Q-learning, Stable-Baselines3's: each possible action has a value.

    Spaces of up to 1,024 combinations are seen as one action each, larger ones a parameter a
    step, unless ``form`` says otherwise. Real parameters are seen at ``levels`` values.

    With history, the search starts with values that were learned from the logged designs, which
    stay in memory, as far as its first designs show that the sources can be believed.

    References:
        Mnih et al., Human-level control through deep reinforcement learning, Nature
            518, 2015.
        Raffin et al., Stable-Baselines3: Reliable Reinforcement Learning
            Implementations, JMLR 22, 2021.
    """

    name: ClassVar[str] = "dqn"
    algorithm: ClassVar[str] = "stable_baselines3:DQN"

    class Hyperparameters(OffPolicyHyperparameters):
        """Hyperparameters of DQN."""

        form: Literal["auto", "design", "stepwise"] = Field(
            "auto",
            description="an action is a whole design (at most 1,024 combinations) or the value of "
            "one parameter; auto is the former where possible",
        )
        n_envs: Size = Field(1, description="designs chosen side by side; greedy ones are the same")
        train_every: Number = Field(4, description="steps between two rounds of gradient steps")
        exploration: Steps = Field(
            1000, description="designs until the share of random actions is final_epsilon"
        )
        final_epsilon: Share = Field(0.05, description="final share of random actions")
        target_update: Count = Field(
            200, description="steps between two updates of the target network"
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

    def arguments(self) -> dict[str, Any]:
        """Those of off-policy algorithms; the share of random actions falls with our own steps."""
        settings = self.hyperparameters
        return {
            **super().arguments(),
            "exploration_fraction": settings.exploration * self.steps_per_design / ENDLESS,
            "exploration_final_eps": settings.final_epsilon,
            "target_update_interval": settings.target_update,
        }

    def pretrain(self, model: Any, steps: LoggedSteps, weights: Floats, trust: float) -> None:
        """As every off-policy agent; the less it is sure, the more of the first actions are random.

        The target network follows the values that were learned.
        """
        from stable_baselines3.common.utils import LinearSchedule  # slow, and only needed here

        super().pretrain(model, steps, weights, trust)
        model.q_net_target.load_state_dict(model.q_net.state_dict())
        first = max(model.exploration_final_eps, 1.0 - (1.0 - _MIN_EXPLORED) * trust)
        model.exploration_schedule = LinearSchedule(
            first, model.exploration_final_eps, model.exploration_fraction
        )
        model.exploration_rate = first
