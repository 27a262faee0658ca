"""PPO learners that share one network."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from archgym.agents.common.hyperparameters import Size
from archgym.agents.rl.team import Team, TeamHyperparameters


class SharedPolicy(Team):
    """PPO learners that share one network, whose input is the agent that it acts for.

    Agents have different numbers of choices; outputs beyond an agent's own are masked. All else
    is as with :class:`archgym.agents.rl.ippo.IndependentLearners`.

    References:
        Krishnan et al., Multi-Agent Reinforcement Learning for Microprocessor Design
            Space Exploration, arXiv 2211.16385, 2022.
        Gupta, Egorov and Kochenderfer, Cooperative Multi-agent Control Using Deep
            Reinforcement Learning, AAMAS 2017 workshops (parameter sharing).
    """

    name: ClassVar[str] = "ippo_shared"

    class Hyperparameters(TeamHyperparameters):
        """Hyperparameters of learners that share a network."""

        hidden: Size = Field(64, description="width of the network's hidden layer")

    def _make_policies(self) -> Any:
        return self._torch.SharedNetwork(
            self._choices.sizes, self._agent_of, self.hyperparameters.hidden, self.rng
        )
