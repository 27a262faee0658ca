"""Policies of agents that act as a team, trained by proximal policy optimisation (PPO), in torch.

An episode is one design, and all begin alike: before it chooses, an agent observes the same
thing each time. So what an agent's own network would compute is a table of logits; the network
that agents share (:class:`SharedNetwork`) takes the agent's identity as input.

Importing this module imports torch, which takes seconds: agents import it when they are
constructed, not before. All numbers are float64, and randomness comes from the caller.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor
from torch.nn import ModuleDict, ParameterList

from archgym.agents.common.arrays import Bools, Floats, Ints

_CRITIC_RATE = 3e-3
_MIN_DEVIATION = 1e-9
"""Rewards that differ by less are taken as equal: rounding is no experience."""


class Policies(ABC):
    """What the agents' policies are made of.

    Attributes:
        weights: what is trained.
    """

    weights: ParameterList

    @abstractmethod
    def logits(self) -> Tensor:
        """Logits of the choices of each parameter, shape (n_parameters, max_choices).

        They are minus infinity from the parameter's own number of choices on.
        """

    def forget_unused(self, used: Tensor) -> None:  # noqa: B027 - optional to override
        """Drops gradients that stand for no experience; none, unless overridden.

        Args:
            used: which parameters were active at all, shape (n_parameters,).
        """


class OwnTables(Policies):
    """A table of logits for each parameter; all choices are equally likely at first.

    Args:
        sizes: number of choices of each parameter, shape (n_parameters,).
    """

    def __init__(self, sizes: Ints) -> None:
        self._beyond = _beyond(sizes)
        self.weights = _trained(*(np.zeros(size) for size in sizes))  # a table a parameter

    def logits(self) -> Tensor:
        """See :meth:`Policies.logits`."""
        return torch.nn.utils.rnn.pad_sequence(list(self.weights), batch_first=True) + self._beyond

    def forget_unused(self, used: Tensor) -> None:
        """Without a gradient Adam leaves a table alone; with one of zeros its momentum goes on."""
        for table, is_used in zip(self.weights, used.tolist(), strict=True):
            if not is_used:
                table.grad = None


class SharedNetwork(Policies):
    """One network for all agents: identity in, logits of all its parameters' choices out.

    Agents with fewer parameters or choices than others have the outputs beyond theirs masked.
    All choices are equally likely at first.

    Args:
        sizes: number of choices of each parameter, shape (n_parameters,).
        agent_of: the agent that chooses each parameter, shape (n_parameters,).
        hidden: width of the hidden layer.
        rng: gives the first weights.
    """

    def __init__(self, sizes: Ints, agent_of: Ints, hidden: int, rng: np.random.Generator) -> None:
        self._beyond = _beyond(sizes)
        self._agent_of = torch.from_numpy(agent_of)
        # Which of its agent's parameters each one is: the first, the second, ...
        place = [int((agent_of[:i] == agent).sum()) for i, agent in enumerate(agent_of)]
        self._place = torch.tensor(place)
        n_agents, slots = int(agent_of.max()) + 1, max(place) + 1
        self._shape = (n_agents, slots, int(sizes.max()))
        # A one-hot identity picks one row of the first layer's weights.
        first, out = rng.normal(size=(n_agents, hidden)), slots * int(sizes.max())
        self.weights = _trained(first, np.zeros((hidden, out)), np.zeros(out))

    def logits(self) -> Tensor:
        """See :meth:`Policies.logits`."""
        first, second, bias = self.weights
        hidden = torch.tanh(first) / first.shape[1] ** 0.5
        out = (hidden @ second + bias).reshape(self._shape)
        logits: Tensor = out[self._agent_of, self._place] + self._beyond
        return logits


class Ppo:
    """The clipped objective of PPO for several agents, each with its own advantages.

    Args:
        policies: of all agents.
        agent_of: the agent that chooses each parameter, shape (n_parameters,).
        learning_rate: that of Adam.
        clip: how far the ratio of new to old probability of an agent's choices is rewarded.
        epochs: steps on each rollout.
    """

    def __init__(
        self, policies: Policies, agent_of: Ints, *, learning_rate: float, clip: float, epochs: int
    ) -> None:
        self.policies = policies
        self._member = torch.from_numpy(np.eye(int(agent_of.max()) + 1)[agent_of])
        self._clip, self._epochs = clip, epochs
        self._optimizer = torch.optim.Adam(policies.weights, lr=learning_rate)

    def probabilities(self) -> Floats:
        """Of the choices of each parameter, shape (n_parameters, most_choices)."""
        with torch.no_grad():
            return np.asarray(torch.softmax(self.policies.logits(), dim=1).numpy())

    def learn(self, choices: Ints, advantage: Floats, entropy: float) -> None:
        """Improves the policies on one rollout.

        Args:
            choices: what was chosen, -1 where a parameter was inactive: that choice changed
                nothing, so it is not learned from. Shape (n, n_parameters).
            advantage: of the design for each agent, shape (n, n_agents).
            entropy: weight of the entropy bonus; entropies count as shares of the largest.
        """
        chosen = torch.from_numpy(choices)
        active = (chosen >= 0).to(torch.float64)
        used = active.sum(0) > 0
        acting = ((active @ self._member) > 0).to(torch.float64)
        weight = acting / acting.sum(0).clamp(min=1)  # a mean for each learner
        gain = torch.from_numpy(advantage)
        parameters = torch.arange(chosen.shape[1])
        old: Tensor | None = None
        for _ in range(self._epochs):
            log = torch.log_softmax(self.policies.logits(), dim=1)
            joint = (log[parameters, chosen.clamp(min=0)] * active) @ self._member
            old = joint.detach() if old is None else old
            ratio = torch.exp(joint - old)
            clipped = ratio.clamp(1 - self._clip, 1 + self._clip)
            value = (torch.minimum(ratio * gain, clipped * gain) * weight).sum()
            loss = -value - entropy * (_entropy(log) * active.mean(0)).sum()
            self._optimizer.zero_grad()
            torch.autograd.backward(loss)
            self.policies.forget_unused(used)
            self._optimizer.step()


class Critic:
    """A centralised critic: predicts the reward of a joint choice of all agents.

    Args:
        sizes: number of choices of each parameter, shape (n_parameters,).
        hidden: width of the hidden layer.
        rng: gives the first weights.
    """

    def __init__(self, sizes: Ints, hidden: int, rng: np.random.Generator) -> None:
        self._offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self._width = int(sizes.sum())
        first = rng.normal(size=(self._width + 1, hidden)) / len(sizes) ** 0.5
        second = rng.normal(size=hidden) / hidden**0.5
        self.weights = _trained(first, np.zeros(hidden), second)
        self._optimizer = torch.optim.Adam(self.weights, lr=_CRITIC_RATE)
        self._mean, self._deviation = 0.0, 1.0

    def standardise(self, mean: float, deviation: float) -> None:
        """Sets the mean and the deviation that rewards have by now."""
        self._mean, self._deviation = mean, max(deviation, _MIN_DEVIATION)

    def learn(self, choices: Ints, rewards: Floats) -> None:
        """One step on designs, choices of shape (n, n_parameters), rewards (n,)."""
        target = torch.from_numpy((rewards - self._mean) / self._deviation)
        loss = ((self._forward(choices) - target) ** 2).mean()
        self._optimizer.zero_grad()
        torch.autograd.backward(loss)
        self._optimizer.step()

    def predict(self, choices: Ints) -> Floats:
        """Rewards, shape (n,), of choices, shape (n, n_parameters), -1 for inactive."""
        with torch.no_grad():
            return np.asarray(self._forward(choices).numpy()) * self._deviation + self._mean

    def _forward(self, choices: Ints) -> Tensor:
        """The one-hot choices through the network; an inactive parameter adds nothing."""
        rows = np.where(choices >= 0, choices + self._offsets, self._width)
        first, bias, second = self.weights
        summed = torch.nn.functional.embedding_bag(
            torch.from_numpy(rows), first, mode="sum", padding_idx=self._width
        )
        values: Tensor = torch.relu(summed + bias) @ second
        return values


def parts(**weights: ParameterList) -> ModuleDict:
    """All that is trained, by the name of what it belongs to, to be saved and loaded."""
    return ModuleDict(weights)


def advantages(rewards: Floats, acting: Bools) -> Floats:
    """How much better each design is than an agent's own experience, in its deviations.

    Args:
        rewards: shared, shape (n, 1), or less a baseline of the agent's, shape (n, n_agents).
        acting: which designs the agent had a part in, shape (n, n_agents).

    Returns:
        Shape (n, n_agents): mean 0 and deviation 1 over those, 0 elsewhere.
    """
    count = np.maximum(acting.sum(axis=0), 1)
    mean = np.where(acting, rewards, 0.0).sum(axis=0) / count
    centred = np.where(acting, rewards - mean, 0.0)
    deviation = np.sqrt((centred**2).sum(axis=0) / count)
    return np.where(
        deviation > _MIN_DEVIATION, centred / np.maximum(deviation, _MIN_DEVIATION), 0.0
    )


def _trained(*initial: Floats) -> ParameterList:
    return ParameterList(torch.from_numpy(values) for values in initial)


def _beyond(sizes: Ints) -> Tensor:
    """0 where a parameter has a choice, minus infinity where it has none."""
    exists = np.arange(sizes.max())[None, :] < sizes[:, None]
    return torch.from_numpy(np.where(exists, 0.0, -np.inf))


def _entropy(log: Tensor) -> Tensor:
    """Entropy of each row of log probabilities, as a share of the largest possible."""
    real = torch.isfinite(log)
    log = torch.where(real, log, 0.0)
    entropy = -(torch.where(real, log.exp(), 0.0) * log).sum(1)
    return entropy / torch.log(real.sum(1).to(torch.float64))
