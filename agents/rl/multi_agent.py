"""Multi-agent reinforcement learning: every parameter, or group of them, has an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from archgym import agent
from archgym.agents.common.choices import Choices
from archgym.agents.common.unseen import Unseen
from archgym.agents.rl.policies import apply_policy, read_policy, write_policy
from archgym.errors import AgentUnsuitableError
from archgym.evaluation.outcome import Outcomes
from archgym.space import Designs

__all__ = ["CentralisedCritic", "IndependentLearners", "SharedPolicy"]

_CRITIC_STEPS = 16
_CRITIC_BATCH = 128
_CRITIC_MEMORY = 8192
"""Latest designs that the critic learns from."""
_FLATTENING = 0.1
"""Share of choices that are made evenly, for each time that only known designs came up."""
_MAX_REDRAWN = 4096
"""Most designs drawn at a time instead of known ones, unless more are asked for."""
_COUNTERFACTUALS = 8
"""Choices that an agent might have made instead, drawn for its baseline."""


class _Hyperparameters(agent.Hyperparameters):
    """Hyperparameters that all multi-agent learners have."""

    groups: Literal["parameter", "suggested"] = Field(
        "parameter",
        description="one agent a parameter, or one for each group that the design space suggests",
    )
    batch_size: int = Field(
        32, ge=2, le=65536, description="designs proposed together, and then learned from"
    )
    learning_rate: float = Field(0.05, gt=0, le=10, description="learning rate of the policies")
    epochs: int = Field(4, ge=1, le=1000, description="gradient steps on each batch")
    clip: float = Field(
        0.2,
        gt=0,
        lt=1,
        description="how far an agent's choices may become more or less likely in a batch",
    )
    entropy: float = Field(
        0.3,
        ge=0,
        le=100,
        description="weight of the entropy bonus at the start; the advantage has deviation 1, "
        "the entropy counts as share of the largest",
    )
    entropy_half_life: int = Field(
        10_000, ge=1, le=1_000_000_000, description="designs after which that weight is halved"
    )
    shares: int = Field(
        32,
        ge=2,
        le=4096,
        description="most choices of a parameter; one with more values is chosen as one of so "
        "many equal shares of its range, and evenly within it",
    )


class IndependentLearners(agent.Sampler):
    """Independent PPO learners with a shared reward (IPPO), one a parameter or a group.

    The form of "Multi-Agent Reinforcement Learning for Microprocessor Design Space Exploration"
    (Krishnan and others, 2022): each agent chooses its own parameters, the choices together are
    a design, and all get its reward. An episode is one design, so the advantage is the reward
    less the mean of the designs of the batch in which the agent had a part; the choice for an
    inactive parameter plays no part and is not learned from.

    A batch of designs is drawn from the policies and evaluated at once, then the policies are
    improved. Where known designs or such that break a rule come up, others are drawn from flatter
    policies, and the likeliest of them taken: nothing is proposed twice. The agents are those of
    :class:`archgym.views.multi_agent.ParallelView` with the same groups.

    With several goals the reward, and so the search, is that of their weighted geometric mean.
    The same seed gives the same search on the same machine and versions.

    References:
        Krishnan et al., Multi-Agent Reinforcement Learning for Microprocessor Design
            Space Exploration, arXiv 2211.16385, 2022.
        de Witt et al., Is Independent Learning All You Need in the StarCraft Multi-
            Agent Challenge?, arXiv 2011.09533, 2020.
        Schulman et al., Proximal Policy Optimization Algorithms, arXiv 1707.06347,
            2017.

    >>> import archgym
    >>> from archgym.registry import make_agent
    >>> env = archgym.make("Conformance-v0")
    >>> result = make_agent("ippo", env.design_space, seed=1).search(env, budget=100)
    >>> result.simulations, result.duplicates
    (100, 0)
    """

    name: ClassVar[str] = "ippo"

    class Hyperparameters(_Hyperparameters):
        """Hyperparameters of independent learners."""

    def setup(self) -> None:
        """Makes the agents, which choose evenly at first.

        Raises:
            AgentUnsuitableError: if every parameter is fixed.
        """
        from archgym.agents.rl import team_policies

        if not self.space.free:
            raise AgentUnsuitableError(
                f"agent {self.name!r} needs a parameter that is not fixed: there is nothing to "
                "choose"
            )
        settings = self.hyperparameters
        self._torch: Any = team_policies
        self._unseen = Unseen(self.space, self.rng)
        self._choices = Choices(self.space, settings.shares)
        self.agents, self._agent_of = self._form_groups()
        self._ppo = team_policies.Ppo(
            self._make_policies(),
            self._agent_of,
            rate=settings.learning_rate,
            clip=settings.clip,
            epochs=settings.epochs,
        )
        self._probabilities = self._ppo.probabilities()
        self._learned = 0
        self._rollout = np.empty((0, len(self._agent_of)), dtype=np.int64)
        self._rewards = np.empty(0)

    @property
    def batch_size(self) -> int:
        """How many designs are asked for at once."""
        return int(self.hyperparameters.batch_size)

    def policy(self, parameter: str) -> NDArray[np.float64]:
        """Probability of each choice of a free parameter, in the order of its values.

        Raises:
            UnknownNameError: if there is no such parameter.
        """
        row = self.space.free.index(self.space.index(parameter))
        return np.array(self._probabilities[row, : self._choices.sizes[row]])

    def save(self, path: str | Path) -> None:
        """Writes the policies as they are now to a ``.npz`` file of plain arrays."""
        write_policy(Path(path), self._weights(), self._about())

    def load(self, path: str | Path) -> None:
        """Goes on from policies that were saved.

        Raises:
            InvalidValueError: if it is not a saved policy, or one of another agent, grouping,
                design space or size.
        """
        apply_policy(self._weights(), read_policy(Path(path), self._about()))
        self._probabilities = self._ppo.probabilities()

    def ask(self, n: int) -> Designs:
        """Up to ``n`` new designs: what the agents choose together."""
        return self._unseen.take(n, self._act)

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        """Takes in rewards, and learns when there are enough for a batch."""
        self._unseen.add(designs)
        self._rollout = np.concatenate([self._rollout, self._choices.of(designs)])
        self._rewards = np.concatenate([self._rewards, outcomes.reward])
        n = self.batch_size
        with self._torch.one_torch_thread():
            while len(self._rewards) >= n:
                self._learn(self._rollout[:n], self._rewards[:n])
                self._rollout, self._rewards = self._rollout[n:], self._rewards[n:]

    def _act(self, n: int, failures: int) -> Designs:
        """Designs from the policies; if known ones came before, the likeliest of many."""
        chance = self._probabilities
        if failures:
            share = _FLATTENING * failures
            chance = (1 - share) * chance + share * self._choices.even
        many = max(n, min(n << failures, _MAX_REDRAWN))
        choices = self._choices.draw(chance, many, self.rng)
        designs = self._choices.designs(choices, self.rng)
        if failures:
            designs = designs[self._likelihoods(designs).argsort(kind="stable")[::-1]]
        return designs

    def _likelihoods(self, designs: Designs) -> NDArray[np.float64]:
        """Logarithm of the probability that the agents choose each design, shape (n,)."""
        choices = self._choices.of(designs)
        logs = np.log(np.maximum(self._probabilities, 1e-300))
        taken = logs[np.arange(choices.shape[1]), np.maximum(choices, 0)]
        return np.asarray(np.where(choices >= 0, taken, 0.0).sum(axis=1))

    def _learn(self, choices: NDArray[np.int64], rewards: NDArray[np.float64]) -> None:
        settings = self.hyperparameters
        weight = settings.entropy * 0.5 ** (self._learned / settings.entropy_half_life)
        self._ppo.learn(choices, self._advantages(choices, rewards), weight)
        self._probabilities = self._ppo.probabilities()
        self._learned += len(rewards)

    def _advantages(
        self, choices: NDArray[np.int64], rewards: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Advantage of each design for each agent, shape (n, n_agents)."""
        return np.asarray(self._torch.advantages(rewards[:, None], self._acting(choices)))

    def _acting(self, choices: NDArray[np.int64]) -> NDArray[np.bool_]:
        """In which designs an agent had an active parameter, shape (n, n_agents)."""
        member = np.eye(len(self.agents), dtype=np.int64)[self._agent_of]
        return ((choices >= 0) @ member) > 0

    def _weights(self) -> Any:
        """All that is trained."""
        return self._torch.Weights(policies=self._ppo.policies.weights)

    def _about(self) -> dict[str, Any]:
        return {
            "agent": self.name,
            "grouping": self.hyperparameters.groups,
            "design space": self.space.to_json(),
        }

    def _make_policies(self) -> Any:
        return self._torch.OwnTables(self._choices.sizes)

    def _form_groups(self) -> tuple[list[str], NDArray[np.int64]]:
        """The agents' names, and the agent of each free parameter."""
        names = [self.space.names[position] for position in self.space.free]
        if self.hyperparameters.groups == "parameter":
            return names, np.arange(len(names))
        groups = self.space.groups
        owner = {name: i for i, members in enumerate(groups.values()) for name in members}
        return list(groups), np.array([owner[name] for name in names])


class SharedPolicy(IndependentLearners):
    """PPO learners that share one network, which is told which agent it acts for.

    Agents have different numbers of choices; outputs beyond an agent's own are masked. All else
    is as with :class:`IndependentLearners`.

    References:
        Krishnan et al., Multi-Agent Reinforcement Learning for Microprocessor Design
            Space Exploration, arXiv 2211.16385, 2022.
        Gupta, Egorov and Kochenderfer, Cooperative Multi-agent Control Using Deep
            Reinforcement Learning, AAMAS 2017 workshops (parameter sharing).
    """

    name: ClassVar[str] = "ippo_shared"

    class Hyperparameters(_Hyperparameters):
        """Hyperparameters of learners that share a network."""

        hidden: int = Field(64, ge=1, le=4096, description="width of the network's hidden layer")

    def _make_policies(self) -> Any:
        return self._torch.SharedNetwork(
            self._choices.sizes, self._agent_of, self.hyperparameters.hidden, self.rng
        )


class CentralisedCritic(IndependentLearners):
    """PPO learners with policies of their own and one critic that sees them all (MAPPO style).

    A critic of the state alone, as in MAPPO (Yu and others, 2022), would be a single number
    here, since all episodes begin alike. This one sees the whole design and predicts its reward,
    from the latest thousands of designs. An agent's advantage is the reward less what the critic
    expects when that agent chooses anew and all others stay (the counterfactual baseline of COMA,
    Foerster and others, 2018): luck and blame of the others drop out. All else is as with
    :class:`IndependentLearners`.

    References:
        Yu et al., The Surprising Effectiveness of PPO in Cooperative Multi-Agent Games,
            NeurIPS 2022.
        Foerster et al., Counterfactual Multi-Agent Policy Gradients, AAAI 2018.
    """

    name: ClassVar[str] = "mappo"

    class Hyperparameters(_Hyperparameters):
        """Hyperparameters of learners with a centralised critic."""

        entropy: float = Field(
            0.5,
            ge=0,
            le=100,
            description="as with independent learners, and larger: advantages with so little "
            "noise make policies narrow sooner",
        )
        hidden: int = Field(64, ge=1, le=4096, description="width of the critic's hidden layer")

    def setup(self) -> None:
        """Makes agents and critic."""
        super().setup()
        self._critic = self._torch.Critic(
            self._choices.sizes, self.hyperparameters.hidden, self.rng
        )
        self._met = np.empty((0, len(self._agent_of)), dtype=np.int64)
        self._met_rewards = np.empty(0)

    def _weights(self) -> Any:
        return self._torch.Weights(policies=self._ppo.policies.weights, critic=self._critic.weights)

    def _advantages(
        self, choices: NDArray[np.int64], rewards: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        self._met = np.concatenate([self._met, choices])[-_CRITIC_MEMORY:]
        self._met_rewards = np.concatenate([self._met_rewards, rewards])[-_CRITIC_MEMORY:]
        self._critic.standardise(self._met_rewards.mean(), self._met_rewards.std())
        for _ in range(_CRITIC_STEPS):
            batch = self.rng.integers(len(self._met), size=_CRITIC_BATCH)
            self._critic.learn(self._met[batch], self._met_rewards[batch])
        baseline = self._counterfactual(choices)
        gain = self._torch.advantages(rewards[:, None] - baseline, self._acting(choices))
        return np.asarray(gain)

    def _counterfactual(self, choices: NDArray[np.int64]) -> NDArray[np.float64]:
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
