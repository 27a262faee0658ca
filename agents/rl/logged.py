"""Logged designs as the steps that an agent would have made to choose them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.agents.common.arrays import Bools, Floats, Ints
from archgym.environment.environment import Environment
from archgym.evaluation.outcome import Outcomes
from archgym.space import Designs, Encoding, MultiDiscreteEncoding
from archgym.views.vector import StepwiseVectorView, VectorView


@dataclass(frozen=True)
class LoggedSteps:
    """Steps that lead to logged designs, in the order of the log.

    Attributes:
        observations: before each step, float32, shape (n, width).
        actions: shape (n,) or (n, n_columns).
        rewards: shape (n,); 0 for a step that completes no design.
        returns: discounted sum of the rewards to the end of the episode, shape (n,).
        next_observations: after each step, at the end of an episode the last one of it.
        dones: whether the episode ended, shape (n,).
        designs: which logged design each step is a part of, shape (n,).
        masks: of the actions that were possible, shape (n, n_actions), if wanted.
    """

    observations: NDArray[np.float32]
    actions: NDArray[Any]
    rewards: Floats
    returns: Floats
    next_observations: NDArray[np.float32]
    dones: Bools
    designs: Ints
    masks: Bools | None

    def __len__(self) -> int:
        return len(self.rewards)


class _LoggedView(VectorView):
    """A view of one environment in which designs are not evaluated, but read from a log."""

    log: Outcomes
    position: int = 0
    """Of the design whose outcome is next."""

    def _evaluate(
        self, designs: Designs
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], list[dict[str, Any]]]:
        row = slice(self.position, self.position + 1)
        self.position += 1
        return self._observations[row].copy(), self.log.reward[row].astype(np.float32), [{}]

    def start(self, log: Outcomes) -> NDArray[np.float32]:
        """The first observation of the first episode."""
        self.log, self.position = log, 0
        self._observations = self.env.observe(log)
        return self.reset()


class _LoggedStepwiseView(_LoggedView, StepwiseVectorView):
    """The same, with one parameter chosen a step."""

    @property
    def place(self) -> int:
        """Number of the choice that is next."""
        return self._partials[0].place


def logged_steps(
    env: Environment,
    log: Outcomes,
    encoding: Encoding | None,
    levels: int,
    gamma: float,
    rng: np.random.Generator,
    *,
    masked: bool = False,
) -> LoggedSteps:
    """The steps to logged designs.

    Args:
        env: the environment that is searched; nothing is evaluated.
        log: the designs and their outcomes, in its design space and with its metrics.
        encoding: how an action stands for a design; ``None``: one parameter is chosen a step.
        levels: of real parameters, for which the nearest level is chosen.
        gamma: discount factor of rewards, for each step.
        rng: draws what was chosen for inactive parameters.
        masked: whether masks are wanted, if one parameter is chosen a step.
    """
    view: _LoggedView
    if encoding is None:
        view = _LoggedStepwiseView(env, 1, levels)
        actions: NDArray[Any] = MultiDiscreteEncoding(env.design_space, levels).encode(log.designs)
    else:
        view = _LoggedView(env, 1, encoding)
        actions = encoding.encode(log.designs)
        if isinstance(encoding, MultiDiscreteEncoding):
            actions = _drawn_where_inactive(actions, log.designs, encoding, rng)
    seen = view.start(log)[0]
    steps: list[tuple[Any, ...]] = []
    while view.position < len(log):
        row = view.position
        action, mask = actions[row], None
        if isinstance(view, _LoggedStepwiseView):
            action = action[view.place]
            if masked:
                mask = view.get_attr("action_masks")[0]()
                mask[action] = True  # a rule may forbid the nearest level of a real parameter
        after, (reward,), (done,), (info,) = view.step(np.asarray(action)[None])
        last = info["terminal_observation"] if done else after[0]
        steps.append((seen, action, float(reward), last, bool(done), row, mask))
        seen = after[0]
    columns = list(zip(*steps, strict=True))
    rewards, dones = np.array(columns[2]), np.array(columns[4])
    return LoggedSteps(
        observations=np.array(columns[0]),
        actions=np.array(columns[1]),
        rewards=rewards,
        returns=_returns(rewards, dones, gamma),
        next_observations=np.array(columns[3]),
        dones=dones,
        designs=np.array(columns[5]),
        masks=None if columns[6][0] is None else np.array(columns[6]),
    )


def _drawn_where_inactive(
    actions: NDArray[Any],
    designs: Designs,
    encoding: MultiDiscreteEncoding,
    rng: np.random.Generator,
) -> NDArray[Any]:
    """Actions in which the choices for inactive parameters, which change nothing, are even."""
    widths = [len(columns) for columns in encoding.columns]
    inactive = np.repeat(designs.codes[:, encoding.free] < 0, widths, axis=1)
    return np.where(inactive, rng.integers(encoding.nvec, size=actions.shape), actions)


def _returns(rewards: Floats, dones: Bools, gamma: float) -> Floats:
    returns, after = np.empty(len(rewards)), 0.0
    for i in range(len(rewards) - 1, -1, -1):
        after = float(rewards[i]) + (0.0 if dones[i] else gamma * after)
        returns[i] = after
    return returns
