"""Base of the agents that learn a policy with Stable-Baselines3."""

from __future__ import annotations

import importlib
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from archgym import agent
from archgym.agents.common.arrays import Floats
from archgym.agents.common.hyperparameters import Several, Share, Size
from archgym.agents.common.observations import some_outcomes
from archgym.agents.common.threads import one_seeded_thread
from archgym.agents.rl.lessons import Lessons
from archgym.agents.rl.policies import apply_policy, read_policy, write_policy
from archgym.environment.environment import Environment
from archgym.errors import AgentUnsuitableError, InvalidValueError
from archgym.history import History
from archgym.space import Designs, Encoding, MultiDiscreteEncoding
from archgym.views.stepwise import Steps

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

    from archgym.agents.rl.logged import LoggedSteps
    from archgym.views.vector import VectorView

MAX_OUTPUTS = 1 << 16
"""Most outputs that a policy network gets: one for each level that it may choose."""
ENDLESS = 1 << 31
"""Steps to learn for: more than any budget; the environment says when it is spent."""
_MAX_LOGGED_STEPS = 8192
"""Of the history, that a policy is pretrained on."""


class LearnerHyperparameters(agent.Hyperparameters):
    """Hyperparameters of every agent that learns a policy."""

    learning_rate: float = Field(1e-3, gt=0, le=1, description="step size of the optimiser")
    n_envs: Size = Field(8, description="designs chosen side by side, as one batch")
    gamma: Share = Field(1.0, description="discount factor of rewards, for each step")
    width: Size = Field(64, description="units of each hidden layer")
    layers: int = Field(2, ge=0, le=16, description="hidden layers of each network")
    levels: Several = Field(
        32, description="evenly spaced values of a real parameter in discrete actions"
    )


class Learner(agent.Agent):
    """Base of the agents that drive the environment with a Stable-Baselines3 algorithm.

    A subclass names its :attr:`algorithm`, returns from :meth:`encoding` how an action stands
    for a design and from :meth:`buffer_kind` what it learns from, and adds to :meth:`arguments`.
    Every proposal goes through the environment in batches of ``n_envs`` designs
    (:mod:`archgym.views.vector`), so that all are counted and recorded; the search ends in the
    middle of a rollout when the budget does. Where several workers simulate, it goes on while
    designs are in flight (:mod:`archgym.agents.rl.steady`). Learners propose the designs that they
    believe in again and again: that costs no budget, and ends the search at the limit of proposals.

    The same seed gives the same search on the same machine and versions: everything is seeded,
    and torch is held to one thread. A resumed search learns again from what is in its log.
    Initial designs are evaluated, but a policy does not learn from them.

    With history, the search starts from a policy that was pretrained on it, as far as the first
    designs show it to be of use (:mod:`archgym.agents.rl.lessons`).

    Attributes:
        algorithm: ``module:Class`` of the algorithm, imported when a search begins.
        model: the algorithm, once a search has begun; ``model.policy`` is the policy.
        form: ``design``, an action is a whole design, or ``stepwise``, it is one parameter.
        masked: whether the policy takes masks of the possible actions.
    """

    algorithm: ClassVar[str]
    masked: ClassVar[bool] = False

    def setup(self) -> None:
        """Chooses the form.

        Raises:
            AgentUnsuitableError: if nothing is free, or a network for it would be too large.
        """
        self.model: BaseAlgorithm | None = None
        self._weights: dict[str, NDArray[Any]] | None = None
        self._lessons: Lessons | None = None
        if not self.space.free:
            raise AgentUnsuitableError(
                f"agent {self.name!r} has nothing to choose: every parameter is fixed"
            )
        self._encoding = self.encoding()
        self.form = "stepwise" if self._encoding is None else "design"
        outputs = self._outputs()
        if outputs > MAX_OUTPUTS:
            raise AgentUnsuitableError(
                f"agent {self.name!r}, form {self.form!r}: {outputs:,} values to choose from are "
                f"too many for a policy network (at most {MAX_OUTPUTS:,}): fix the parameters "
                "with most values, or use agent 'sac'"
            )

    @abstractmethod
    def encoding(self) -> Encoding | None:
        """How an action stands for a design; ``None``: one parameter is chosen a step."""

    def arguments(self) -> dict[str, Any]:
        """Arguments of the algorithm, apart from the environment and the seed."""
        settings = self.hyperparameters
        return {
            "policy": "MlpPolicy",
            "learning_rate": settings.learning_rate,
            "gamma": settings.gamma,
            "policy_kwargs": {"net_arch": [settings.width] * settings.layers},
            "device": "cpu",
        }

    def recall(self, history: History) -> Designs:
        """Remembers what the policy is to be pretrained on.

        Returns:
            The best designs of the sources, and some drawn evenly that test the sources.
        """
        self._lessons = Lessons(history, self.space, self.rng)
        return super().recall(history).concatenate(self._lessons.probes)

    def run(self, env: Environment, initial: Designs) -> None:
        """Learns until the budget is spent."""
        if env.design_space != self.space:
            raise InvalidValueError("the agent was made for another design space")
        first = env.evaluate_batch(initial) if len(initial) else None
        seed = int(self.rng.integers(1 << 31))
        with one_seeded_thread(seed):
            from stable_baselines3.common.logger import Logger  # only needed here, and slow

            module, _, name = self.algorithm.partition(":")
            algorithm = getattr(importlib.import_module(module), name)
            view = self._view(env)
            arguments = {**self.arguments(), **self._buffer(view)}
            self.model = model = algorithm(env=view, seed=seed, **arguments)
            model.set_logger(Logger(folder=None, output_formats=[]))
            if self._weights is not None:
                apply_policy(model.policy, self._weights)
            if self._lessons is not None and first is not None:
                self._study(env, self._lessons, self._lessons.trust(first))
            model.learn(ENDLESS, log_interval=None)

    @abstractmethod
    def pretrain(self, model: Any, steps: LoggedSteps, weights: Floats, trust: float) -> None:
        """Teaches an algorithm that has not learned yet.

        Args:
            model: the algorithm.
            steps: to the designs of the history.
            weights: of these designs, shape (n_designs,).
            trust: how far they are believed, above 0 and at most 1.
        """

    def _study(self, env: Environment, lessons: Lessons, trust: Floats) -> None:
        from archgym.agents.rl.logged import logged_steps

        weights = lessons.weights(trust)
        most = max(1, _MAX_LOGGED_STEPS // self.steps_per_design)
        rows = np.flatnonzero(weights)
        if len(rows) > most:
            rows = np.sort(self.rng.choice(rows, most, replace=False))
        if not len(rows):
            return  # nothing that is believed
        settings = self.hyperparameters
        steps = logged_steps(
            env,
            some_outcomes(lessons.outcomes, rows, self.space),
            self._encoding,
            settings.levels,
            settings.gamma,
            self.rng,
            masked=self.masked,
        )
        self.pretrain(self.model, steps, weights[rows], float(trust.max()))

    def save(self, path: str | Path) -> None:
        """Writes the policy as it is now to a ``.npz`` file of plain arrays.

        Raises:
            InvalidValueError: if no search has begun.
        """
        if self.model is None:
            raise InvalidValueError("there is no policy before search()")
        write_policy(Path(path), self.model.policy, self._about())

    def load(self, path: str | Path) -> None:
        """Makes the next search begin with a policy that was saved.

        Raises:
            InvalidValueError: if it is not a saved policy, or one of another agent, form or
                design space.
        """
        self._weights = read_policy(Path(path), self._about())

    @property
    def steps_per_design(self) -> int:
        """Most steps that a design takes."""
        if self._encoding is not None:
            return 1
        return len(Steps(self.space, self.hyperparameters.levels).places)

    def _about(self) -> dict[str, Any]:
        return {"agent": self.name, "form": self.form, "design space": self.space.to_json()}

    def _outputs(self) -> int:
        if self._encoding is None:
            return Steps(self.space, self.hyperparameters.levels).n_actions
        if isinstance(self._encoding, MultiDiscreteEncoding):
            return int(sum(self._encoding.nvec.tolist()))
        return self._encoding.columns[-1].stop

    def _view(self, env: Environment) -> VectorView:
        from archgym.agents.rl.steady import SteadyStepwiseView, SteadyView
        from archgym.views.vector import StepwiseVectorView, VectorView

        settings = self.hyperparameters
        # Later designs of an episode see the outcomes of those before, which must be waited for.
        steady = env.evaluator.asynchronous and env.episode_length == 1
        if self._encoding is None:
            stepwise = SteadyStepwiseView if steady else StepwiseVectorView
            return stepwise(env, settings.n_envs, settings.levels)
        return (SteadyView if steady else VectorView)(env, settings.n_envs, self._encoding)

    @abstractmethod
    def buffer_kind(self) -> tuple[str, Any]:
        """Which buffer the algorithm takes where designs are in flight: argument and class."""

    def _buffer(self, view: VectorView) -> dict[str, Any]:
        from archgym.agents.rl.steady import SteadyView

        if not isinstance(view, SteadyView):
            return {}
        argument, kind = self.buffer_kind()
        return {f"{argument}_class": kind, f"{argument}_kwargs": {"view": view}}
