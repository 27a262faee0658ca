"""Views of one environment as many, for Stable-Baselines3: each step is a batch of designs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from archgym.environment.unwrapped import unwrapped
from archgym.errors import InvalidValueError, check_integer
from archgym.space import Designs, Encoding
from archgym.views.batch import evaluated
from archgym.views.stepwise import Steps

_Indices = None | int | Iterable[int]
_Steps = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]


class VectorView(VecEnv):
    """One environment as a Stable-Baselines3 ``VecEnv``: a step evaluates ``n_envs`` designs.

    The designs go through the environment's ``evaluate_batch`` together, so that a simulator
    which runs many at once does, and are counted and recorded in their order. Each of the
    ``n_envs`` has its own episodes of ``episode_length`` designs.

    Where the budget ends in the middle of a batch, the designs up to there are evaluated and
    recorded, and the step raises ``BudgetExhausted``.

    >>> import archgym, numpy as np
    >>> view = VectorView(archgym.make("Conformance-v0", space="finite"), n_envs=3)
    >>> _ = view.reset()
    >>> _, rewards, dones, infos = view.step(np.zeros((3, 5), dtype=int))
    >>> rewards.shape, dones.tolist(), [bool(info["cached"]) for info in infos]
    ((3,), [True, True, True], [False, True, True])

    Args:
        env: the environment; inside Gymnasium's wrappers is fine, they are left out.
        n_envs: designs a step.
        encoding: translates actions to designs; by default the environment's.

    Raises:
        InvalidValueError: if ``env`` is not an archgym environment, ``n_envs`` is below 1, or the
            encoding is of another design space.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], n_envs: int = 8, encoding: Encoding | None = None
    ) -> None:
        base = unwrapped(env)
        encoding = encoding or base.encoding
        if encoding.design_space != base.design_space:
            raise InvalidValueError("the encoding is of another design space")
        n_envs = check_integer("n_envs", n_envs, 1)
        self.encoding, self.env = encoding, base
        self._designs = np.zeros(n_envs, dtype=np.int64)  # of each episode so far
        self._actions: NDArray[Any] = np.empty(0)
        actions = encoding.space  # type: ignore[attr-defined]
        VecEnv.__init__(self, n_envs, base.observation_space, actions)

    def reset(self) -> NDArray[np.float32]:
        """Starts all episodes; simulates nothing. Observations, shape (n_envs, width)."""
        self._first, _ = self.env.reset(seed=self._seeds[0], options=self._options[0] or None)
        self._reset_seeds()
        self._reset_options()
        self._designs[:] = 0
        return np.tile(self._first, (self.num_envs, 1))

    def step(self, actions: NDArray[Any]) -> _Steps:
        """One step of all: see :meth:`step_wait`."""
        self.step_async(actions)
        return self.step_wait()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Takes the actions of the next step, one row each."""
        self._actions = np.asarray(actions)
        if len(self._actions) != self.num_envs:
            raise InvalidValueError(f"{self.num_envs} actions are needed, got {len(self._actions)}")

    def step_wait(self) -> _Steps:
        """Evaluates the designs.

        Returns:
            Observations, shape (n_envs, width), rewards, whether episodes ended, and infos. Where
            one ended, the observation is the next one's first, and
            ``info["terminal_observation"]`` has the last.

        Raises:
            DesignError: if an action is outside the action space.
            BudgetExhausted: if the trial has a budget and it is spent.
        """
        seen, rewards, infos = self._evaluate(self.encoding.decode(self._actions))
        self._designs += 1
        dones = self._designs >= self.env.episode_length
        for i in np.flatnonzero(dones).tolist():
            infos[i]["terminal_observation"] = seen[i].copy()
            seen[i] = self._first
            self._designs[i] = 0
        return seen, rewards, dones, infos

    def close(self) -> None:
        """Closes the environment."""
        self.env.close()

    def get_attr(self, attr_name: str, indices: _Indices = None) -> list[Any]:
        """An attribute of the environment, once for each index."""
        return [getattr(self.env, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: _Indices = None) -> None:
        """Sets an attribute of the environment, which all indices share."""
        setattr(self.env, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: _Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Calls a method of the environment for each index."""
        methods = self.get_attr(method_name, indices)
        return [method(*method_args, **method_kwargs) for method in methods]

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: _Indices = None
    ) -> list[bool]:
        """Never: wrappers are left out."""
        return [False for _ in self._get_indices(indices)]

    def _evaluate(
        self, designs: Designs
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], list[dict[str, Any]]]:
        """The environment's observations, rewards and infos of all designs."""
        seen, rewards, rows = evaluated(self.env, designs)
        return seen, rewards.astype(np.float32), [self.env.info(row) for row in rows]


class StepwiseVectorView(VectorView):
    """As :class:`VectorView`, with one parameter chosen a step in each of ``n_envs`` designs.

    See :class:`archgym.views.stepwise.StepwiseView` for what is seen and chosen. The designs that a
    step completes are evaluated as one batch; since parameters may be inactive, these need not
    be all. ``env_method("action_masks")`` has the masks, as sb3-contrib's MaskablePPO asks.

    Args:
        env: the environment; inside Gymnasium's wrappers is fine, they are left out.
        n_envs: designs that are chosen side by side.
        levels: number of evenly spread values at which real parameters are seen.

    Raises:
        InvalidValueError: if a parameter is real and ``levels`` is not given, ``env`` is not an
            archgym environment, or ``n_envs`` is below 1.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], n_envs: int = 8, levels: int | None = None
    ) -> None:
        base = unwrapped(env)
        self.steps = Steps(base.design_space, levels)
        self._n_metrics = len(base.metrics)
        super().__init__(base, n_envs)
        self.observation_space = self.steps.observation_space(self._n_metrics)
        self.action_space = gymnasium.spaces.Discrete(self.steps.n_actions)
        self._partials = [self.steps.start() for _ in range(n_envs)]

    def reset(self) -> NDArray[np.float32]:
        """Starts all episodes with nothing chosen. Observations, shape (n_envs, width)."""
        baseline = super().reset()[0, -self._n_metrics :]
        self._partials = [self.steps.start() for _ in range(self.num_envs)]
        self._seen = np.empty((self.num_envs, *(self.observation_space.shape or ())), np.float32)
        self._first = np.empty_like(self._seen[0])
        self._look(self._first, 0)
        self._first[-self._n_metrics :] = baseline
        self._seen[:] = self._first
        return self._seen.copy()

    def step_wait(self) -> _Steps:
        """Chooses a level in each design and evaluates those that are complete.

        Returns, Raises: as :meth:`VectorView.step_wait`; rewards are 0 where nothing was
        evaluated.
        """
        rewards = np.zeros(self.num_envs, dtype=np.float32)
        dones = np.zeros(self.num_envs, dtype=bool)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        actions = self._actions.reshape(-1).tolist()
        complete = [i for i in range(self.num_envs) if self._choose(i, int(actions[i]))]
        if complete:
            designs = self.steps.designs([self._partials[i] for i in complete])
            for i in complete:
                self._partials[i] = self.steps.start()
            metrics, rewards[complete], evaluated = self._evaluate(designs)
            self._designs[complete] += 1
            dones = self._designs >= self.env.episode_length
            for number, i in enumerate(complete):
                self._seen[i, -self._n_metrics :] = metrics[number, -self._n_metrics :]
                infos[i] = evaluated[number]
                if dones[i]:
                    infos[i]["terminal_observation"] = self._seen[i].copy()
                    self._seen[i] = self._first
                    self._designs[i] = 0
                else:
                    self._look(self._seen[i], i)
        return self._seen.copy(), rewards, dones, infos

    def get_attr(self, attr_name: str, indices: _Indices = None) -> list[Any]:
        """An attribute of the environment, or ``action_masks``, for each index."""
        if attr_name == "action_masks":
            return [partial(self._mask, i) for i in self._get_indices(indices)]
        return super().get_attr(attr_name, indices)

    def _mask(self, i: int) -> NDArray[np.bool_]:
        return self.steps.mask(self._partials[i])

    def _choose(self, i: int, action: int) -> bool:
        done = self.steps.choose(self._partials[i], action)
        self._look(self._seen[i], i)
        return done

    def _look(self, row: NDArray[np.float32], i: int) -> None:
        self.steps.observe(self._partials[i], row[: -self._n_metrics])
