"""The multi-agent view of an environment: one agent a parameter, or a group of parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from archgym.environment.environment import Environment
from archgym.environment.unwrapped import unwrapped
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.space import BoxEncoding, MultiDiscreteEncoding

Observation = NDArray[np.float32]


class ParallelView(ParallelEnv[str, Observation, Any]):  # type: ignore[misc]
    """A PettingZoo parallel environment in which every agent chooses some of the parameters.

    The agents' choices together are one design, which goes through the environment's own
    ``step``: it is checked, counted against the budget and recorded as any other. All agents see
    the same observation and get the same reward.

    >>> import archgym
    >>> view = ParallelView(archgym.make("Conformance-v0", space="finite"))
    >>> view.possible_agents
    ['replacement', 'size_kb', 'ways', 'prefetch', 'distance']
    >>> view.action_space("ways")
    Discrete(16)

    Args:
        env: the environment; inside Gymnasium's wrappers is fine, they are left out.
        groups: names of agents, each with the parameters that it chooses; every free parameter
            belongs to one. Without it each free parameter is one agent.
            :attr:`archgym.space.DesignSpace.groups` has those that a space declares.

    Raises:
        InvalidValueError: if a parameter belongs to no agent or to several, an agent chooses
            nothing, or the environment has ``action="discrete"``.
        UnknownNameError: if a group names a parameter that is not free.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "archgym_parallel_v0",
        "render_modes": ["ansi", "rgb_array"],
        "is_parallelizable": True,
    }

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.env = base = unwrapped(env)
        self.render_mode = base.render_mode
        if not isinstance(base.encoding, BoxEncoding | MultiDiscreteEncoding):
            raise InvalidValueError(
                "the parallel view splits actions by parameter: make the environment with "
                "action='multi_discrete' or 'box', not 'discrete'"
            )
        self._columns = _columns(base, groups)
        self.possible_agents = list(self._columns)
        self.agents: list[str] = []
        self.action_spaces = {name: self._space_of(name) for name in self.possible_agents}
        self.observation_spaces = dict.fromkeys(self.possible_agents, base.observation_space)
        self.state_space = base.observation_space
        self._dtype = base.action_space.dtype
        self._state: Observation | None = None

    def observation_space(self, agent: str) -> gymnasium.Space[Any]:
        """Space of the environment's observation, which every agent sees."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.Space[Any]:
        """The agent's parameters: Discrete (one), MultiDiscrete (several) or Box.

        A permutation is several choices (:class:`archgym.space.MultiDiscreteEncoding`), or several
        numbers of a box.
        """
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Starts an episode."""
        self._state, info = self.env.reset(seed=seed, options=options)
        self.agents = list(self.possible_agents)
        return self._seen(self._state), {agent: dict(info) for agent in self.agents}

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[
        dict[str, Observation],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Evaluates the design that the agents' actions make up.

        Raises:
            InvalidValueError: if an agent's action is missing, or none of its action space.
            BudgetExhausted: if the trial has a budget and it is spent.
        """
        row = np.zeros(sum(len(columns) for columns in self._columns.values()), self._dtype)
        for agent, columns in self._columns.items():
            if agent not in actions:
                raise InvalidValueError(f"the action of agent {agent!r} is missing")
            action = np.asarray(actions[agent]).reshape(-1)
            if len(action) != len(columns):
                raise InvalidValueError(
                    f"an action of agent {agent!r} has length {len(columns)}, "
                    f"got {actions[agent]!r}"
                )
            row[columns] = action
        self._state, reward, done, truncated, info = self.env.step(row)
        agents = self.agents
        self.agents = [] if done or truncated else agents
        return (
            self._seen(self._state),
            dict.fromkeys(agents, reward),
            dict.fromkeys(agents, done),
            dict.fromkeys(agents, truncated),
            {agent: dict(info) for agent in agents},
        )

    def state(self) -> Observation:
        """The environment's last observation."""
        if self._state is None:
            raise InvalidValueError("there is no state before reset()")
        return self._state.copy()

    def render(self) -> Any:
        """The last design, as the environment renders it."""
        return self.env.render()

    def close(self) -> None:
        """Closes the environment."""
        self.env.close()

    def _seen(self, observation: Observation) -> dict[str, Observation]:
        return {agent: observation.copy() for agent in self.possible_agents}

    def _space_of(self, agent: str) -> gymnasium.Space[Any]:
        columns, encoding = self._columns[agent], self.env.encoding
        if isinstance(encoding, BoxEncoding):
            return Box(-1.0, 1.0, (len(columns),), np.float32)
        assert isinstance(encoding, MultiDiscreteEncoding)
        sizes = encoding.nvec[columns]
        return Discrete(int(sizes[0])) if len(sizes) == 1 else MultiDiscrete(sizes)


def _columns(env: Environment, groups: Mapping[str, Sequence[str]] | None) -> dict[str, list[int]]:
    """Columns of the environment's action that each agent chooses."""
    space = env.design_space
    free = [space.names[position] for position in env.encoding.free]
    if groups is None:
        groups = {name: (name,) for name in free}
    owner: dict[str, str] = {}
    for agent, names in groups.items():
        if not names:
            raise InvalidValueError(f"agent {agent!r} chooses no parameter")
        for name in names:
            if name not in free:
                raise UnknownNameError("free parameter", name, free, f"groups[{agent!r}]")
            if name in owner:
                raise InvalidValueError(
                    f"parameter {name!r} belongs to two agents, {owner[name]!r} and {agent!r}"
                )
            owner[name] = agent
    missing = [name for name in free if name not in owner]
    if missing:
        raise InvalidValueError(f"no agent chooses {', '.join(missing)}")
    columns = dict(zip(free, env.encoding.columns, strict=True))
    return {agent: [c for name in names for c in columns[name]] for agent, names in groups.items()}
