"""PPO learners with one critic that sees the choices of all."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from archgym.agents.common.arrays import Floats, Ints
from archgym.agents.common.hyperparameters import Factor, Size
from archgym.agents.rl.team import Team, TeamHyperparameters

_CRITIC_STEPS = 16
_CRITIC_BATCH = 128
_CRITIC_MEMORY = 8192
"""Latest designs that the critic learns from."""
_COUNTERFACTUALS = 8
"""Choices that an agent might have made instead, drawn for its baseline."""


class CentralisedCritic(Team):
    """PPO learners with policies of their own and one critic that sees them all (MAPPO style).

    A critic of the state alone, as in MAPPO (Yu and others, 2022), would be a single number
    here, since all episodes begin alike. This one sees the whole design and predicts its reward,
    from the latest thousands of designs. An agent's advantage is the reward less what the critic
    expects when that agent chooses anew and all others stay (the counterfactual baseline of COMA,
    Foerster and others, 2018): luck and blame of the others drop out. All else is as with
    :class:`archgym.agents.rl.ippo.IndependentLearners`.

    References:
        Yu et al., The Surprising Effectiveness of PPO in Cooperative Multi-Agent Games,
            NeurIPS 2022.
        Foerster et al., Counterfactual Multi-Agent Policy Gradients, AAAI 2018.
    """

    name: ClassVar[str] = "mappo"

    class Hyperparameters(TeamHyperparameters):
        """Hyperparameters of learners with a centralised critic."""

        entropy: Factor = Field(
            0.5,
            description="initial weight of the entropy bonus; a low-noise advantage needs a "
            "larger one",
        )
        hidden: Size = Field(64, description="width of the critic's hidden layer")

    def setup(self) -> None:
        """Makes agents and critic."""
        super().setup()
        self._critic = self._torch.Critic(
            self._choices.sizes, self.hyperparameters.hidden, self.rng
        )
        self._met = np.empty((0, len(self._agent_of)), dtype=np.int64)
        self._met_rewards = np.empty(0)

    def _pretrain(self, choices: Ints, rewards: Floats, weights: Floats, trust: float) -> None:
        """The critic learns from the designs, too, until newer ones take their places."""
        super()._pretrain(choices, rewards, weights, trust)
        self._met, self._met_rewards = choices, rewards

    def _weights(self) -> Any:
        return self._torch.parts(policies=self._ppo.policies.weights, critic=self._critic.weights)

    def _advantages(self, choices: Ints, rewards: Floats) -> Floats:
        self._met = np.concatenate([self._met, choices])[-_CRITIC_MEMORY:]
        self._met_rewards = np.concatenate([self._met_rewards, rewards])[-_CRITIC_MEMORY:]
        self._critic.standardise(self._met_rewards.mean(), self._met_rewards.std())
        for _ in range(_CRITIC_STEPS):
            batch = self.rng.integers(len(self._met), size=_CRITIC_BATCH)
            self._critic.learn(self._met[batch], self._met_rewards[batch])
        baseline = self._counterfactual(choices)
        gain = self._torch.advantages(rewards[:, None] - baseline, self._acting(choices))
        return np.asarray(gain)

    def _counterfactual(self, choices: Ints) -> Floats:
        """Reward expected of each design if an agent chose anew, shape (n, n_agents)."""
        n, many = len(choices), _COUNTERFACTUALS
        # What the others chose for parameters that were inactive is not known: they choose anew.
        others = np.where(
            choices >= 0, choices, self._choices.draw(self._probabilities, n, self.rng)
        )
        expected = np.empty((n, len(self.agents)))
        for one in range(len(self.agents)):
            again = self._choices.draw(self._probabilities, n * many, self.rng)
            mixed = np.where(self._agent_of == one, again, np.repeat(others, many, axis=0))
            seen = self._choices.canonical(mixed)
            expected[:, one] = self._critic.predict(seen).reshape(n, many).mean(axis=1)
        return expected
