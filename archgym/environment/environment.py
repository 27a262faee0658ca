"""The base class of every environment."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray

from archgym.environment.arguments import check_settings, given_arguments, narrowed
from archgym.environment.evaluated_problem import EvaluatedProblem
from archgym.environment.observation import Observer, observation_space
from archgym.environment.portable_spec import portable_spec
from archgym.environment.provenance import driven_by
from archgym.errors import (
    DatasetError,
    InvalidValueError,
    UnknownNameError,
    check_choice,
    check_integer,
)
from archgym.evaluation.baseline import baseline_codes
from archgym.evaluation.outcome import Incidental, Outcomes, Row
from archgym.evaluation.recorder_protocol import DURABILITIES, Durability
from archgym.evaluation.trial_info import EXTERNAL
from archgym.problem.metrics import check_metrics
from archgym.problem.objective import Objective
from archgym.problem.simulator import Simulator
from archgym.problem.status import LABELS
from archgym.simulators.resolve import (
    checked_options,
    fidelities_of,
    simulator_file,
    simulator_of,
)
from archgym.space import DesignSpace
from archgym.space.action import action_encoding


class Environment(EvaluatedProblem, gymnasium.Env[NDArray[np.float32], Any]):
    """A design space, a simulator, a workload and an objective, as a Gymnasium environment.

    One step evaluates one design and, by default, ends the episode. A subclass writes

    - :attr:`design_space` (or :attr:`design_spaces`, several by name),
    - :attr:`metrics`, :attr:`default_objective` and :attr:`baseline`,
    - :meth:`simulate` for one design, or :meth:`simulate_batch` where many are faster at once,

    and nothing else. With workloads it also overrides :meth:`load_workload` and
    :meth:`workloads`; with a cheaper, partial simulation it declares :attr:`fidelities` and
    overrides :meth:`simulate_batch_at` instead of the other two.

    >>> import archgym
    >>> from archgym.space import DesignSpace, Integer
    >>> class Cache(archgym.Environment):
    ...     design_space = DesignSpace([Integer("ways", 1, 16), Integer("sets", 1, 64)])
    ...     metrics = (archgym.Metric("area_um2", "um2", "minimize"),)
    ...     default_objective = "minimize area_um2"
    ...     baseline = {"ways": 4, "sets": 16}
    ...     def simulate(self, design):
    ...         return {"area_um2": 40.0 * design["ways"] * design["sets"]}
    >>> Cache().evaluate({"ways": 2, "sets": 16}).metrics
    {'area_um2': 1280.0}

    Args:
        workload: what the hardware runs; see the documentation of the environment.
        objective: see :meth:`archgym.problem.objective.Objective.parse`; by default
            :attr:`default_objective`.
        space: name of one of :attr:`design_spaces`, or a user-defined design space; by default
            the one called ``default``.
        fixed: parameters held at a value; the rest is searched.
        exclude: values that no design has, as a list by parameter, beside those that the
            environment excludes.
        include: names of parameters that are searched over all their values, although the
            environment gives them or excludes some of their values (``archgym show`` says which).
        simulator: ``"embedded"``, a name from :attr:`simulators`, ``"tabular:PATH"`` (a table
            that ``archgym enumerate`` made, or the name of one that ships; workload and space
            are then the table's unless they are given), ``"proxy:PATH"`` (a model that
            ``archgym proxy train`` made), or a simulator.
        simulator_options: options of a simulator from :attr:`simulators`, which documents them.
        record: folder of the dataset that takes every evaluation; ``None`` for none.
        durable: when a recorded row is on disk, so that a power cut does not take it (a killed
            process loses none that was told): ``"always"`` before its outcome is told,
            ``"second"`` within a second, ``"auto"`` before it is told if its simulation took a
            second or more, and within a second otherwise.
        episode_length: steps, that is designs, an episode.
        action: ``multi_discrete``, ``box``, ``discrete`` (one number a design), or ``auto``:
            ``multi_discrete`` if all parameters are finite, else ``box``.
        levels: number of values at which a discrete view sees real parameters.
        render_mode: form of the picture that :meth:`render` gives; ``None`` for none.
        agent: name under which evaluations are recorded that a library asks for.
        seed: seed of that library, which is recorded; ``None`` if not known.
        hyperparameters: of that library, which are recorded.
        label: what the evaluations are for, such as ``train`` or ``eval``; it is recorded.
        budget: number of distinct legal designs that the library may simulate; ``None`` for no
            limit. The step that spends the last of it truncates the episode, the next one raises
            ``BudgetExhausted``.

    Attributes:
        encoding: translates actions to designs.
        fidelities: how much of the simulation can be run, ascending; the last one is the full
            simulation, and the only one unless the environment declares more and the simulator
            is the embedded one.
        baseline_design, on_evaluated and others: see
            :class:`archgym.environment.evaluated_problem.EvaluatedProblem`.

    Raises:
        UnknownNameError, InvalidValueError: for an argument that is not possible.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 1,
    }

    _own_arguments: Mapping[str, Any]
    _spec: EnvSpec | None = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Notes what the constructor is called with, for :func:`check_settings`."""
        environment = super().__new__(cls)
        environment._own_arguments = given_arguments(cls, Environment, args, kwargs)
        return environment

    def __init__(
        self,
        *,
        workload: Any = None,
        objective: Objective | str | Mapping[str, Any] | None = None,
        space: str | DesignSpace | None = None,
        fixed: Mapping[str, Any] | None = None,
        exclude: Mapping[str, Sequence[Any]] | None = None,
        include: Sequence[str] = (),
        simulator: str | Simulator = "embedded",
        simulator_options: Mapping[str, Any] | None = None,
        record: str | os.PathLike[str] | None = None,
        durable: Durability = "auto",
        episode_length: int = 1,
        action: str = "auto",
        levels: int | None = None,
        render_mode: str | None = None,
        agent: str = EXTERNAL,
        seed: int | None = None,
        hyperparameters: Mapping[str, Any] | None = None,
        label: str | None = None,
        budget: int | None = None,
    ) -> None:
        modes = self.metadata["render_modes"]
        if render_mode not in (None, *modes):
            # A TypeError, because that is what Gymnasium and learners expect.
            raise TypeError(str(UnknownNameError("render mode", render_mode, modes)))
        self.render_mode = render_mode
        self.trial_info = driven_by(agent, seed, hyperparameters, label, budget)
        self.episode_length = check_integer("episode_length", episode_length, 1)
        file = simulator_file(simulator)
        if space is None:
            space = "default" if file is None else file.space
        self.design_space = self._choose_space(space)
        self.design_space = narrowed(self.design_space, fixed, exclude, include)
        check_metrics(self.metrics, type(self).__name__)
        self.objective = Objective.parse(self.default_objective if objective is None else objective)
        self.objective.check(self.metrics)
        if workload is not None or file is None or file.workload is None:
            self.workload = self.default_workload if workload is None else workload
            self.load_workload(self.workload)
            self.workload_sha256 = self.hash_workload()
        else:  # what will not be run is not loaded, unless something asks for it: __getattr__
            self.workload, self.workload_sha256 = file.workload
            self._unloaded = True
        self.simulator_options = checked_options(self, simulator, simulator_options)
        self.simulator = simulator_of(self, simulator, file)
        self.fidelities = fidelities_of(self, self.simulator)
        for name in self.objective.metric_names():
            if name not in self.simulator.metric_names:
                raise InvalidValueError(
                    f"objective: simulator {self.simulator.name!r} does not give metric {name!r}; "
                    f"it gives {', '.join(self.simulator.metric_names)}"
                )
        check_settings(self, self._own_arguments)
        if not isinstance(self.baseline, Mapping):
            raise InvalidValueError(
                f"baseline of {type(self).__name__} must be a mapping of parameters to values, "
                f"not {self.baseline!r:.80}"
            )
        vars(self)["baseline"] = dict(self.baseline)  # what is done to it stays in this instance
        codes = baseline_codes(self.design_space, self.baseline, self.spaces().values())
        self._baseline_design = self.design_space.design(codes)
        self.encoding = action_encoding(self.design_space, action, levels)
        self.action_space = self.encoding.space  # type: ignore[attr-defined]
        self.observation_space = observation_space(self.design_space, self.metrics)
        self._steps = 0
        check_choice("durable", durable, DURABILITIES)
        self.durable = durable
        if record is not None and not (isinstance(record, str | os.PathLike) and str(record)):
            raise InvalidValueError(f"record must be the path of a folder, not {record!r:.80}")
        self.record = None if record is None else Path(record)
        if self.record is not None:
            from archgym.data.trial_recorder import open_dataset  # heavy, and only needed here

            open_dataset(self.record, self.description)

    @property
    def name(self) -> str:
        """The registered name, or ``module:Class``."""
        return super().name if self.spec is None else self.spec.id.removeprefix("archgym/")

    @property
    def spec(self) -> EnvSpec | None:
        """How Gymnasium makes the environment again; ``None`` if it is not registered."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        self._spec = None if spec is None else portable_spec(spec, self.episode_length)

    # -- Gymnasium -------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Starts an episode; observes the baseline design and simulates no other.

        Raises:
            InvalidValueError: if the seed is no integer of at least 0.
            SimulationError: as :meth:`simulate_baseline`.
        """
        super().reset(seed=None if seed is None else check_integer("seed", seed, 0))
        self._steps = 0
        return self._first_observation.copy(), {}

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Evaluates the design that the action encodes.

        Raises:
            DesignError: if the action is outside the action space.
            BudgetExhausted: if the trial has a budget and it is spent.
        """
        row = self._evaluate_one(self.encoding.decode_one(action))
        self._steps += 1
        done = self._steps >= self.episode_length
        truncated = not done and self.evaluator.exhausted
        seen = self._observer.one(row.codes, row.metrics)
        return seen, row.reward, done, truncated, self.info(row)

    def render(self) -> Any:
        """The last design and its metrics; an environment may have other forms too.

        With ``render_mode="ansi"`` a text, with ``"rgb_array"`` a picture: uint8 of shape
        (height, width, 3), at first of the baseline design.
        """
        return self.rendered(self._last)

    def rendered(self, row: Row | None) -> Any:
        """What :meth:`render` gives for an evaluated design; ``None`` if nothing was evaluated."""
        if self.render_mode == "rgb_array":
            return self._picture(row)
        if self.render_mode != "ansi":
            return None
        if row is None:
            return "nothing evaluated yet"
        last = self._outcome(row)
        lines = [f"{name} = {value}" for name, value in last.design.items()]
        units = {metric.name: metric.unit for metric in self.metrics}
        lines += [f"{n}: {v:.6g} {units[n]}" for n, v in last.metrics.items() if v is not None]
        return "\n".join([*lines, f"status: {last.status} {last.reason}".rstrip()])

    def predicted_designs(self, count: int = 10) -> list[dict[str, Any]]:
        """Designs that the embedded simulator likes best: where searches of a slower one begin.

        >>> import archgym
        >>> env = archgym.make("GPUKernel-v0", simulator="tabular:gpu-norm-2048")
        >>> best, first = env.optimum, env.evaluate(env.predicted_designs(1)[0])
        >>> first.metrics["time_us"] < 1.05 * best.metrics["time_us"]
        True

        Args:
            count: number of designs at most.

        Returns:
            Legal designs, the one with the highest reward first, of the whole space, or of 20,000
            random designs of a larger one.

        Raises:
            InvalidValueError: if the embedded simulator is the one that is searched, there is
                none, or it does not give a metric of the objective.
            SimulationError: if it cannot simulate the baseline design.
        """
        from archgym.environment.predicted import predicted_designs  # only needed here

        count = check_integer("count", count, 1)
        return predicted_designs(self, count)

    def __repr__(self) -> str:
        if "design_space" not in vars(self):  # it could not be made
            return object.__repr__(self)
        workload = f"workload {self.workload_name}, " if self.workload_name else ""
        return f"<{self.name}: {workload}{self.design_space!r}>"

    def close(self) -> None:
        """Ends the current trial's recording, and turns the journals of its dataset into Parquet.

        While another process writes to the dataset, that is left to the last one that closes.
        """
        self.end_trial()
        if self.record is not None and not sys.is_finalizing():
            from archgym.data.files import seal_if_idle  # heavy, and only needed here

            try:
                seal_if_idle(self.record)
            except (DatasetError, OSError) as error:  # no row is lost
                warnings.warn(f"rows in {self.record} are left in journals: {error}", stacklevel=2)

    def observe(self, outcomes: Outcomes) -> NDArray[np.float32]:
        """Observations of evaluated designs, float32 in [-1, 1], shape (n, width).

        See :class:`archgym.environment.observation.Observer`.
        """
        return self._observer.many(outcomes.designs, outcomes.metrics)

    def info(self, row: Row) -> dict[str, Any]:
        """The ``info`` that :meth:`step` gives for an evaluation."""
        return {
            "design": self.design_space.design(row.codes),
            "metrics": row.metrics_by_name(self._metric_names),
            "objectives": tuple(row.objectives),
            "status": LABELS[row.status],
            "feasible": row.feasible,
            "reason": row.reason,
            "cached": Incidental(row.cached),
            "simulation_s": Incidental(row.simulation_s),
        }

    # -- inner workings --------------------------------------------------------------------------

    if not TYPE_CHECKING:  # it would hide misspelt attributes from type checkers

        def __getattr__(self, name: str) -> Any:
            # What load_workload sets is missing while a file takes the simulator's place.
            if name.startswith("__") or not vars(self).get("_unloaded", False):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            self._unloaded = False
            try:
                self.load_workload(self.workload)
            except Exception as error:
                self._unloaded = True
                raise AttributeError(
                    f"{type(self).__name__!r} object has no attribute {name!r} as long as its "
                    f"workload is not loaded: {error}"
                ) from error
            return getattr(self, name)

    def _picture(self, row: Row | None) -> NDArray[np.uint8]:
        from archgym.environment.picture import picture

        baseline = dict(zip(self._metric_names, self.baseline_metrics.tolist(), strict=True))
        workload = f", {self.workload_name}" if self.workload_name else ""
        status, remark, design = "baseline", "", self.baseline_design
        values: Mapping[str, float | None] = baseline
        if row is not None:
            design = self.design_space.design(row.codes)
            values = row.metrics_by_name(self._metric_names)
            breaks = LABELS[row.status] == "ok" and not row.feasible
            status = "infeasible" if breaks else LABELS[row.status]
            remark = f"reward {row.reward:.4g}" + (f": {row.reason}" if row.reason else "")
        title, space = f"{self.name}{workload}", self.design_space
        return picture(title, status, remark, space, design, self.metrics, values, baseline)

    @cached_property
    def _observer(self) -> Observer:
        return Observer(self.design_space, self.metrics, self.baseline_metrics.tolist())

    @cached_property
    def _first_observation(self) -> NDArray[np.float32]:
        codes = self.design_space.codes(self.baseline_design)
        return self._observer.one(codes, self.baseline_metrics.tolist())
