"""The base class of every environment."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import gymnasium
import numpy as np
from numpy.typing import NDArray

from archgym.environment.arguments import check_settings, given_arguments
from archgym.environment.observation import Observer, observation_space
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.evaluation.baseline import baseline_codes, simulated_metrics
from archgym.evaluation.evaluator import Evaluator
from archgym.evaluation.outcome import Incidental, Outcome, Outcomes, Row
from archgym.evaluation.trial_info import TrialInfo
from archgym.problem.description import ProblemDescription
from archgym.problem.design_problem import DesignProblem
from archgym.problem.objective import Objective
from archgym.problem.scorer import Scorer
from archgym.problem.simulator import Simulator
from archgym.problem.status import Status
from archgym.simulators.resolve import (
    checked_options,
    fidelities_of,
    simulator_file,
    simulator_of,
)
from archgym.space import Designs, DesignSpace
from archgym.space.action import action_encoding

if TYPE_CHECKING:
    from archgym.data.recorder import TrialRecorder
    from archgym.simulators.tabular import Optimum

__all__ = ["Environment"]


class Environment(DesignProblem, gymnasium.Env[NDArray[np.float32], Any]):
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
        workload: what the hardware runs; the environment says what it accepts.
        objective: see :meth:`archgym.problem.objective.Objective.parse`; default :attr:`default_objective`.
        space: name of one of :attr:`design_spaces`, or a design space of one's own; by default
            the one called ``default``.
        fixed: parameters held at a value; the rest is searched.
        simulator: ``"embedded"``, a name from :attr:`simulators`, ``"tabular:PATH"`` (a table
            that ``archgym enumerate`` made, or the name of one that ships; workload and space
            are then the table's unless they are given), ``"proxy:PATH"`` (a model that
            ``archgym proxy train`` made), or a simulator.
        simulator_options: for a simulator from :attr:`simulators`, which says what they are.
        record: folder of the dataset that takes every evaluation; ``None`` for none.
        episode_length: steps, that is designs, an episode.
        action: ``multi_discrete``, ``box``, ``discrete`` (one number a design), or ``auto``:
            ``multi_discrete`` if all parameters are finite, else ``box``.
        levels: number of values at which a discrete view sees real parameters.

    Attributes:
        encoding: how an action stands for a design.
        fidelities: how much of the simulation can be run, ascending; the last one is the full
            simulation, and the only one unless the environment declares more and the simulator
            is the embedded one.
        baseline_design: the baseline, canonical, in the design space as it is searched.
        simulator_options: as given.
        on_evaluated: called with the outcomes of each evaluation; ``None`` for nobody.

    Raises:
        UnknownNameError, InvalidValueError: for an argument that is not possible.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["ansi"],
        "render_fps": 1,
    }

    _own_arguments: Mapping[str, Any]

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
        simulator: str | Simulator = "embedded",
        simulator_options: Mapping[str, Any] | None = None,
        record: str | Path | None = None,
        episode_length: int = 1,
        action: str = "auto",
        levels: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        if (
            isinstance(episode_length, bool)
            or not isinstance(episode_length, int)
            or episode_length < 1
        ):
            raise InvalidValueError(
                f"episode_length must be an integer of at least 1, not {episode_length!r}"
            )
        modes = self.metadata["render_modes"]
        if render_mode not in (None, *modes):
            # A TypeError, because Stable-Baselines3 asks for rgb_array first and expects one.
            raise TypeError(str(UnknownNameError("render mode", render_mode, modes)))
        self.render_mode = render_mode
        self.episode_length = episode_length
        file = simulator_file(simulator)
        if space is None:
            space = "default" if file is None else file.space
        self.design_space = self._choose_space(space)
        if fixed:
            self.design_space = self.design_space.fix(fixed)
        if not isinstance(self.metrics, tuple | list) or not self.metrics:
            raise InvalidValueError(
                f"{type(self).__name__} must set metrics to a tuple of Metric, not {self.metrics!r}"
            )
        names = [metric.name for metric in self.metrics]
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise InvalidValueError(f"metrics named twice: {', '.join(twice)}")
        self.objective = Objective.parse(self.default_objective if objective is None else objective)
        self.objective.check(self.metrics)
        if workload is not None or file is None or file.workload is None:
            self.workload = self.default_workload if workload is None else workload
            self.load_workload(self.workload)
            self.workload_sha256 = self.hash_workload()
        else:  # there is no need to load what will not be run
            self.workload, self.workload_sha256 = file.workload
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
        codes = baseline_codes(self.design_space, self.baseline, self.spaces().values())
        self.baseline_design = self.design_space.design(codes)
        self._baseline_metrics: NDArray[np.float64] | None = None
        self.encoding = action_encoding(self.design_space, action, levels)
        self.action_space = self.encoding.space  # type: ignore[attr-defined]
        self.observation_space = observation_space(self.design_space, self.metrics)
        self._metric_names = tuple(metric.name for metric in self.metrics)
        self.on_evaluated: Callable[[Outcomes], None] | None = None
        self._recording: TrialRecorder | None = None
        self._steps = 0
        self._last: Row | None = None
        self._evaluator: Evaluator | None = None  # a trial begins with its first evaluation
        self._ended = True
        self.record = Path(record) if record is not None else None
        if self.record is not None:
            from archgym.data.recorder import open_dataset  # heavy, and only needed here

            open_dataset(self.record, self.description)

    @property
    def name(self) -> str:
        """The registered name, or ``module:Class``."""
        if self.spec is not None:
            return self.spec.id.removeprefix("archgym/")
        return f"{type(self).__module__}:{type(self).__qualname__}"

    @property
    def trial_settings(self) -> dict[str, Any]:
        """Under which metrics hold: :attr:`settings`, and options of the simulator."""
        left_out = self.incidental_options
        options = {k: v for k, v in self.simulator_options.items() if k not in left_out}
        return {**self.settings, **({"simulator_options": options} if options else {})}

    @property
    def description(self) -> ProblemDescription:
        """What records of its results say of it."""
        simulator = self.simulator
        return ProblemDescription(
            environment=self.name,
            version=self.version,
            settings=self.trial_settings,
            space=self.design_space,
            metrics=tuple(self.metrics),
            objective=self.objective,
            workload=self.workload,
            workload_name=self.workload_name,
            workload_sha256=self.workload_sha256,
            simulator={"name": simulator.name, "version": simulator.version},
            metrics_given=tuple(simulator.metric_names),
            fidelities=self.fidelities,
            baseline_design=self.baseline_design,
            episode_length=self.episode_length,
        )

    @property
    def baseline_metrics(self) -> NDArray[np.float64]:
        """Metrics of the baseline design, shape (n_metrics,); see :meth:`simulate_baseline`.

        Whoever knows them already may set them before anything has asked for them.
        """
        return self.simulate_baseline()

    @baseline_metrics.setter
    def baseline_metrics(self, metrics: Sequence[float] | NDArray[np.float64]) -> None:
        known = np.array(metrics, dtype=np.float64)
        if known.shape != (len(self.metrics),):
            raise InvalidValueError(
                f"baseline_metrics has shape {known.shape}, there are {len(self.metrics)} metrics"
            )
        self._baseline_metrics = known

    @property
    def evaluator(self) -> Evaluator:
        """The evaluation core of the current or else the last trial, with its counters."""
        if self._evaluator is None:
            self.start_trial()
        assert self._evaluator is not None
        return self._evaluator

    # -- Gymnasium -------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Starts an episode; observes the baseline design and simulates no other.

        Raises:
            SimulationError: as :meth:`simulate_baseline`.
        """
        super().reset(seed=seed)
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
        return self._observer.one(row.codes, row.metrics), row.reward, done, False, self._info(row)

    def render(self) -> Any:
        """The last design and its metrics, as text; an environment may have other forms too."""
        if self.render_mode != "ansi":
            return None
        if self._last is None:
            return "nothing evaluated yet"
        last = self._outcome(self._last)
        lines = [f"{name} = {value}" for name, value in last.design.items()]
        units = {metric.name: metric.unit for metric in self.metrics}
        lines += [f"{n}: {v:.6g} {units[n]}" for n, v in last.metrics.items() if v is not None]
        return "\n".join([*lines, f"status: {last.status} {last.reason}".rstrip()])

    def close(self) -> None:
        """Ends the current trial's recording."""
        self.end_trial()

    # -- evaluation ------------------------------------------------------------------------------

    def simulate_baseline(self, retries: int = 0) -> NDArray[np.float64]:
        """Simulates the baseline design, once; later calls give the metrics that it then had.

        Rewards and observations are relative to it, so whatever needs them calls this: the first
        ``reset`` or evaluation, not the constructor. After an error the next call tries again.

        Args:
            retries: how often it is tried again at once where it fails or takes too long.

        Returns:
            Its metrics, shape (n_metrics,), NaN for one that the simulator does not give.

        Raises:
            SimulationError: if it cannot be simulated.
        """
        if self._baseline_metrics is None:
            design = self.design_space.designs([self.baseline_design])
            self._baseline_metrics = simulated_metrics(
                design, self.simulator, self.metrics, retries
            )
        return self._baseline_metrics

    def evaluate(self, design: Mapping[str, Any], fidelity: float = 1.0) -> Outcome:
        """Evaluates one design.

        Args:
            design: a mapping of parameters to values.
            fidelity: value of one of :attr:`fidelities`; by default the full simulation. Another
                one costs less of the budget and gives estimates.

        Raises:
            UnknownNameError, DesignError: if the mapping is not a design of this space.
            InvalidValueError: if there is no such fidelity.
            SimulationError: as :meth:`simulate_baseline`; one of the design itself is its outcome.
            BudgetExhausted: if the trial has a budget and it is spent, or what is left is less
                than this fidelity costs.
        """
        return self._outcome(self._evaluate_one(self.design_space.codes(design), fidelity))

    def evaluate_batch(
        self, designs: Designs | Iterable[Mapping[str, Any]], fidelity: float = 1.0
    ) -> Outcomes:
        """Evaluates many designs, in order; with a budget, as many as are left in it.

        Args:
            designs: of this space.
            fidelity: see :meth:`evaluate`.

        Raises:
            UnknownNameError, DesignError: if a mapping is not a design of this space.
            InvalidValueError: if there is no such fidelity.
            SimulationError, BudgetExhausted: as :meth:`evaluate`.
        """
        if not isinstance(designs, Designs):
            designs = self.design_space.designs(designs)
        elif designs.space is not self.design_space and designs.space != self.design_space:
            raise InvalidValueError("the designs are of another design space")
        return self._evaluate(designs, fidelity)

    def start_trial(self, trial: TrialInfo | None = None) -> None:
        """Begins a trial: counters at zero, nothing known, a budget if the trial has one.

        With ``record`` set and a trial id that the dataset already holds, the trial goes on
        where it stopped: what was evaluated is replayed from the dataset, not simulated again.

        Raises:
            SimulationError: as :meth:`simulate_baseline`.
        """
        trial, scorer = trial or TrialInfo(), self._scorer
        self.end_trial()
        if self.record is not None:
            from archgym.data.recorder import TrialRecorder  # heavy, and only needed here

            optimum = None if self.optimum is None else self.optimum.metrics
            self._recording = TrialRecorder(
                self.record, self.description, trial, self.baseline_metrics.tolist(), optimum
            )
        self._evaluator = Evaluator(
            self.design_space,
            self.metrics,
            self.simulator,
            scorer,
            recorder=self._recording,
            budget=trial.budget,
            proposals_per_budget=trial.proposals_per_budget,
            fidelities=self.fidelities,
        )
        self._ended = False

    def end_trial(self, state: str = "closed") -> None:
        """Ends the current trial and its recording; what is evaluated next begins a new one.

        Args:
            state: ``finished`` if the search came to its end, ``failed``, or ``closed``.
        """
        self._ended = True
        if self._recording is not None:
            recording, self._recording = self._recording, None
            recording.close(state)

    @cached_property
    def optimum(self) -> Optimum | None:
        """The exact best design, if the simulator knows it, as a table does.

        ``None`` with several goals, or if no design is feasible.
        """
        find = getattr(self.simulator, "optimum", None)
        if find is None:
            return None
        found: Optimum | None = find(
            self.design_space, self.objective, self.metrics, self.baseline_metrics.tobytes()
        )
        return found

    def regret(self, outcome: Outcome | None) -> float | None:
        """By which share an outcome is worse than the optimum; see ``Scorer.regret``.

        ``None`` if the optimum is not known, ``inf`` if the outcome is not feasible or there is
        none.
        """
        if self.optimum is None:
            return None
        if outcome is None or not outcome.feasible:
            return math.inf
        return self._scorer.regret(outcome.metrics, self.optimum.metrics)

    def observe(self, outcomes: Outcomes) -> NDArray[np.float32]:
        """Observations of evaluated designs, float32 in [-1, 1], shape (n, width).

        See :func:`archgym.environment.observation.observations`.
        """
        return self._observer.many(outcomes.designs, outcomes.metrics)

    # -- inner workings --------------------------------------------------------------------------

    @cached_property
    def _scorer(self) -> Scorer:
        return Scorer(self.objective, self.metrics, self.baseline_metrics)

    @cached_property
    def _observer(self) -> Observer:
        return Observer(self.design_space, self.metrics, self.baseline_metrics.tolist())

    @cached_property
    def _first_observation(self) -> NDArray[np.float32]:
        codes = self.design_space.codes(self.baseline_design)
        return self._observer.one(codes, self.baseline_metrics.tolist())

    def _evaluate(self, designs: Designs, fidelity: float = 1.0) -> Outcomes:
        if self._ended:
            self.start_trial()  # what follows is a new one, without a budget
        outcomes = self.evaluator.evaluate(designs, fidelity)
        if len(outcomes):
            (self._last,) = outcomes.rows(len(outcomes) - 1)
            if self.on_evaluated is not None:
                self.on_evaluated(outcomes)
        return outcomes

    def _evaluate_one(self, codes: Sequence[int], fidelity: float = 1.0) -> Row:
        """As :meth:`_evaluate`, for one design's canonical codes."""
        if self._ended:
            self.start_trial()
        row = self._last = self.evaluator.evaluate_one(codes, None, fidelity)
        if self.on_evaluated is not None:
            designs = Designs(self.design_space, np.array([codes], dtype=np.int64))
            self.on_evaluated(Outcomes.of(row, designs, self._metric_names))
        return row

    def _outcome(self, row: Row) -> Outcome:
        return Outcome.of(row, self.design_space.design(row.codes), self._metric_names)

    def _info(self, row: Row) -> dict[str, Any]:
        return {
            "design": self.design_space.design(row.codes),
            "metrics": row.metrics_by_name(self._metric_names),
            "objectives": tuple(row.objectives),
            "status": Status(row.status).label,
            "feasible": row.feasible,
            "reason": row.reason,
            "cached": Incidental(row.cached),
            "simulation_s": Incidental(row.simulation_s),
        }
