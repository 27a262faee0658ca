"""A view of one environment as Gymnasium's vector environment: each step is a batch of designs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from archgym.environment.unwrapped import unwrapped
from archgym.errors import InvalidValueError, check_integer
from archgym.evaluation.outcome import Row
from archgym.views.batch import evaluated

_Infos = dict[str, Any]
_Flags = NDArray[np.bool_]
_Step = tuple[NDArray[np.float32], NDArray[np.float64], _Flags, _Flags, _Infos]


class BatchView(VectorEnv[NDArray[np.float32], NDArray[Any], NDArray[Any]]):
    """One environment as a Gymnasium ``VectorEnv``: a step evaluates ``num_envs`` designs.

    ``gymnasium.make_vec("archgym/DRAM-v0", num_envs=8)`` makes one. No step is spent on resets:
    where an episode ends, the observation is the next one's first, and ``infos["final_obs"]`` and
    ``infos["final_info"]`` have the last (``AutoresetMode.SAME_STEP``). The designs go through the
    environment's ``evaluate_batch`` together and are counted and recorded in their order.

    >>> import gymnasium, archgym
    >>> envs = gymnasium.make_vec("archgym/Conformance-v0", num_envs=3, space="finite")
    >>> _ = envs.reset(seed=0)
    >>> _, rewards, terminated, _, infos = envs.step(np.zeros((3, 5), dtype=int))
    >>> rewards.shape, terminated.tolist(), infos["final_info"]["status"].tolist()
    ((3,), [True, True, True], ['ok', 'ok', 'ok'])

    Args:
        env: the environment; inside Gymnasium's wrappers is fine, they are left out.
        num_envs: designs a step.
        max_episode_steps: designs after which an episode is truncated; ``None`` for no such limit.

    Attributes:
        env: the environment.

    Raises:
        InvalidValueError: if ``env`` is not an archgym environment, or a number is below 1.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        num_envs: int = 1,
        max_episode_steps: int | None = None,
    ) -> None:
        num_envs = check_integer("num_envs", num_envs, 1)
        if max_episode_steps is not None:
            max_episode_steps = check_integer("max_episode_steps", max_episode_steps, 1)
        self.env = base = unwrapped(env)
        self.num_envs, self._max_steps = num_envs, max_episode_steps
        self.metadata = {**base.metadata, "autoreset_mode": AutoresetMode.SAME_STEP}
        self.render_mode = base.render_mode
        self.single_observation_space = base.observation_space
        self.single_action_space = base.action_space
        self.observation_space = batch_space(base.observation_space, num_envs)
        self.action_space = batch_space(base.action_space, num_envs)
        self._designs = np.zeros(num_envs, dtype=np.int64)  # of each episode so far
        self._rows: list[Row | None] = [None] * num_envs  # the last of each

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[NDArray[np.float32], _Infos]:
        """Starts episodes; simulates nothing.

        Args:
            seed: of the environment, which draws nothing.
            options: with ``reset_mask``, bool of shape (num_envs,), only those episodes begin
                anew; the other observations are the last ones.

        Returns:
            Observations, shape (num_envs, width), and an empty mapping.
        """
        first = seed if seed is None or isinstance(seed, int) else seed[0]
        self._first, _ = self.env.reset(seed=first)
        mask = np.ones(self.num_envs, dtype=bool)
        if options is not None and "reset_mask" in options:
            mask = np.asarray(options["reset_mask"])
            if mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
                raise InvalidValueError(
                    f"reset_mask must be an array of {self.num_envs} booleans, not {mask!r:.80}"
                )
        if mask.all():
            self._seen = np.tile(self._first, (self.num_envs, 1))
        self._seen[mask] = self._first
        self._designs[mask] = 0
        return self._seen.copy(), {}

    def step(self, actions: NDArray[Any]) -> _Step:
        """Evaluates the designs that the actions encode.

        Args:
            actions: one row each, shape (num_envs, width) or (num_envs,).

        Returns:
            Observations, shape (num_envs, width), rewards, whether episodes ended by themselves,
            whether they were cut off, and infos as those of ``SyncVectorEnv``.

        Raises:
            InvalidValueError: if there are not ``num_envs`` actions.
            DesignError: if an action is outside the action space.
            BudgetExhausted: if the trial has a budget and it is spent before the last design.
        """
        actions = np.asarray(actions)
        if len(actions) != self.num_envs:
            raise InvalidValueError(f"{self.num_envs} actions are needed, got {len(actions)}")
        self._seen, rewards, rows = evaluated(self.env, self.env.encoding.decode(actions))
        self._rows = list(rows)
        self._designs += 1
        terminated = self._designs >= self.env.episode_length
        over = np.full(self.num_envs, self.env.evaluator.exhausted)
        if self._max_steps is not None:
            over |= self._designs >= self._max_steps
        truncated = ~terminated & over
        infos: _Infos = {}
        for i, (row, ended) in enumerate(zip(rows, terminated | truncated, strict=True)):
            info = self.env.info(row)
            if ended:
                info = {"final_obs": self._seen[i].copy(), "final_info": info}
                self._seen[i] = self._first
                self._designs[i] = 0
            infos = self._add_info(infos, info, i)
        return self._seen.copy(), rewards, terminated, truncated, infos

    def render(self) -> tuple[Any, ...] | None:
        """What the environment renders of the last design of each episode; ``None`` for none."""
        if self.render_mode is None:
            return None
        return tuple(self.env.rendered(row) for row in self._rows)

    def close_extras(self, **kwargs: Any) -> None:
        """Closes the environment."""
        self.env.close()
