"""Base of multi-agent reinforcement learning: every parameter, or group of them, has an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from archgym import agent
from archgym.agents.common.arrays import Bools, Floats, Ints
from archgym.agents.common.hyperparameters import Factor, Few, Part, Rate, Several
from archgym.agents.common.samplers import NewDesignSampler
from archgym.agents.common.threads import one_torch_thread
from archgym.agents.rl.choices import Choices
from archgym.agents.rl.lessons import Lessons
from archgym.agents.rl.policies import apply_policy, read_policy, write_policy
from archgym.errors import AgentUnsuitableError
from archgym.evaluation.outcome import Outcomes, joined
from archgym.history import History
from archgym.space import Designs

_FLATTENING = 0.1
"""Share of choices that are made evenly, for each time that only known designs came up."""
_MAX_REDRAWN = 4096
"""Most designs drawn at a time instead of known ones, unless more are asked for."""


class TeamHyperparameters(agent.Hyperparameters):
    """Hyperparameters that all multi-agent learners have."""

    groups: Literal["parameter", "suggested"] = Field(
        "parameter",
        description="one agent for each parameter, or for each group of the design space",
    )
    batch_size: int = Field(
        32,
        ge=2,
        le=65536,
        description="designs proposed together, from which the policies then learn",
    )
    learning_rate: Rate = Field(0.05, description="step size of the policies' optimiser")
    epochs: Few = Field(4, description="gradient steps on each batch")
    clip: Part = Field(
        0.2, description="maximum relative change of a choice's probability in a batch"
    )
    entropy: Factor = Field(
        0.3, description="initial weight of the entropy bonus; a uniform policy has entropy 1"
    )
    entropy_half_life: int = Field(
        10_000,
        ge=1,
        le=1_000_000_000,
        description="designs after which the weight of the entropy bonus is halved",
    )
    shares: Several = Field(
        32,
        description="maximum choices of a parameter; with more values, choices are equal shares "
        "of its range",
    )


class Team(NewDesignSampler):
    """Base of PPO learners with a shared reward, one a parameter or a group of parameters.

    A batch of designs is drawn from the policies and evaluated at once, then the policies are
    improved. Where known designs or such that break a rule come up, others are drawn from flatter
    policies, and the likeliest of them taken: nothing is proposed twice. The agents are those of
    :class:`archgym.views.multi_agent.ParallelView` with the same groups.

    Attributes:
        agents: names of the agents.
    """

    def setup(self) -> None:
        """Makes the agents, which choose evenly at first.

        Raises:
            AgentUnsuitableError: if every parameter is fixed.
        """
        from archgym.agents.rl import cloning, team_policies

        super().setup()
        if not self.space.free:
            raise AgentUnsuitableError(
                f"agent {self.name!r} needs a parameter that is not fixed: there is nothing to "
                "choose"
            )
        settings = self.hyperparameters
        self._torch: Any = team_policies
        self._cloning: Any = cloning
        self._choices = Choices(self.space, settings.shares)
        self.agents, self._agent_of = self._form_groups()
        self._ppo = team_policies.Ppo(
            self._make_policies(),
            self._agent_of,
            **settings.model_dump(include={"learning_rate", "clip", "epochs"}),
        )
        self._probabilities = self._ppo.probabilities()
        self._learned = 0
        self._rollout = np.empty((0, len(self._agent_of)), dtype=np.int64)
        self._rewards = np.empty(0)
        self._lessons: Lessons | None = None
        self._first: Outcomes | None = None  # of the designs that the lessons are tested on
        self._awaited = 0

    def policy(self, parameter: str) -> Floats:
        """Probability of each choice of a free parameter, in the order of its values.

        Of a permutation, shape (n_items - 1, n_items): of each item that is left coming next.

        Raises:
            UnknownNameError: if there is no such parameter.
        """
        rows = self._choices.columns[self.space.free.index(self.space.index(parameter))]
        found = np.array(self._probabilities[rows, : self._choices.sizes[rows.start]])
        return found if len(rows) > 1 else found[0]

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

    def recall(self, history: History) -> Designs:
        """Remembers what the policies are to be pretrained on, once the first designs are known.

        Returns:
            The best designs of the sources, and some drawn evenly that test the sources.
        """
        self._lessons = Lessons(history, self.space, self.rng)
        first = super().recall(history).concatenate(self._lessons.probes)
        self._awaited = len(first)
        return first

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        """Takes in rewards, and learns when there are enough for a batch."""
        self._unseen.add(designs)
        if self._lessons is not None:
            self._first = outcomes if self._first is None else joined(self._first, outcomes)
            if len(self._first) >= self._awaited:
                self._study(self._lessons, self._lessons.trust(self._first))
                self._lessons = None
        self._rollout = np.concatenate([self._rollout, self._choices.of(designs)])
        self._rewards = np.concatenate([self._rewards, outcomes.reward])
        n = self.batch_size
        with one_torch_thread():
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

    def _likelihoods(self, designs: Designs) -> Floats:
        """Logarithm of the probability that the agents choose each design, shape (n,)."""
        choices = self._choices.of(designs)
        logs = np.log(np.maximum(self._probabilities, 1e-300))
        taken = logs[np.arange(choices.shape[1]), np.maximum(choices, 0)]
        return np.asarray(np.where(choices >= 0, taken, 0.0).sum(axis=1))

    def _study(self, lessons: Lessons, trust: Floats) -> None:
        """Pretrains the policies on earlier searches, as far as these are believed."""
        weights = lessons.weights(trust)
        rows = np.flatnonzero(weights)
        if not len(rows):
            return
        choices = self._choices.of(lessons.outcomes.designs[rows])
        with one_torch_thread():
            self._pretrain(choices, lessons.outcomes.reward[rows], weights[rows], trust.max())

    def _pretrain(self, choices: Ints, rewards: Floats, weights: Floats, trust: float) -> None:
        self._cloning.imitate_as_team(
            self._ppo.policies, choices, weights, self._choices.even, trust, self.rng
        )
        self._probabilities = self._ppo.probabilities()

    def _learn(self, choices: Ints, rewards: Floats) -> None:
        settings = self.hyperparameters
        weight = settings.entropy * 0.5 ** (self._learned / settings.entropy_half_life)
        self._ppo.learn(choices, self._advantages(choices, rewards), weight)
        self._probabilities = self._ppo.probabilities()
        self._learned += len(rewards)

    def _advantages(self, choices: Ints, rewards: Floats) -> Floats:
        """Advantage of each design for each agent, shape (n, n_agents)."""
        return np.asarray(self._torch.advantages(rewards[:, None], self._acting(choices)))

    def _acting(self, choices: Ints) -> Bools:
        """In which designs an agent had an active parameter, shape (n, n_agents)."""
        member = np.eye(len(self.agents), dtype=np.int64)[self._agent_of]
        return ((choices >= 0) @ member) > 0

    def _weights(self) -> Any:
        """All that is trained."""
        return self._torch.parts(policies=self._ppo.policies.weights)

    def _about(self) -> dict[str, Any]:
        return {
            "agent": self.name,
            "grouping": self.hyperparameters.groups,
            "design space": self.space.to_json(),
        }

    def _make_policies(self) -> Any:
        return self._torch.OwnTables(self._choices.sizes)

    def _form_groups(self) -> tuple[list[str], Ints]:
        """The agents' names, and the agent of each column of choices."""
        names = [self.space.names[position] for position in self.space.free]
        widths = [len(columns) for columns in self._choices.columns]
        if self.hyperparameters.groups == "parameter":
            return names, np.repeat(np.arange(len(names)), widths)
        groups = self.space.groups
        owner = {name: i for i, members in enumerate(groups.values()) for name in members}
        return list(groups), np.repeat([owner[name] for name in names], widths)
