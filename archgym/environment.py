"""The base class of every environment."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError, SimulationError, UnknownNameError
from archgym.evaluation import Evaluator
from archgym.fidelity import FULL, Fidelity, check_fidelities
from archgym.metrics import Metric, metric_named
from archgym.objective import Objective, Scorer
from archgym.observation import metric_scale, observations
from archgym.outcome import STATUSES, Incidental, Outcome, Outcomes, Row
from archgym.simulator import (
    MultiFidelitySimulator,
    Simulation,
    Simulator,
    read_result,
    simulate_each,
)
from archgym.space import (
    BoxEncoding,
    Designs,
    DesignSpace,
    Encoding,
    FlatEncoding,
    MultiDiscreteEncoding,
)
from archgym.space.nearest import nearest_legal
from archgym.trial import TrialInfo

if TYPE_CHECKING:
    from archgym.data.recorder import TrialRecorder
    from archgym.reference import Reference
    from archgym.tabular import Optimum, Table

__all__ = ["Environment"]

ActionForm = str
_ACTIONS = ("auto", "multi_discrete", "box", "discrete")


class Environment(gymnasium.Env[NDArray[np.float32], Any]):
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
        objective: see :meth:`archgym.objective.Objective.parse`; default :attr:`default_objective`.
        space: name of one of :attr:`design_spaces`, or a design space of one's own; by default
            the one called ``default``.
        fixed: parameters held at a value; the rest is searched.
        simulator: ``"embedded"``, a name from :attr:`simulators`, ``"tabular:PATH"`` (a table
            that ``archgym enumerate`` made, or the name of one that ships; workload and space
            are then the table's unless they are given), or a simulator.
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
        evaluator: the evaluation core of the current trial, with its counters.
        baseline_design: the baseline, canonical, in the design space as it is searched.
        baseline_metrics: its metrics, simulated once at construction, shape (n_metrics,).
        workload_sha256: hash of the workload's content; equal hashes mean equal workloads.
        on_evaluated: called with the outcomes of each evaluation; ``None`` for nobody.

    Raises:
        UnknownNameError, InvalidValueError: for an argument that is not possible.
        SimulationError: if the baseline design cannot be simulated.
    """

    design_space: DesignSpace
    design_spaces: ClassVar[Mapping[str, DesignSpace]] = {}
    metrics: ClassVar[tuple[Metric, ...]] = ()
    """What it measures. Where that depends on the workload, this holds the metrics of the default
    one, and a constructor sets those of an instance before it calls this class's."""
    default_objective: ClassVar[str | Mapping[str, Any]] = ""
    baseline: ClassVar[Mapping[str, Any]] = {}
    default_workload: ClassVar[Any] = None
    simulators: ClassVar[Mapping[str, Callable[[Any], Simulator]]] = {}
    fidelities: tuple[Fidelity, ...] = (FULL,)
    version: ClassVar[str] = "1"
    """Version of :meth:`simulate`: raise it whenever a design may give other metrics."""
    spaces_of_workload: ClassVar[tuple[str, ...]] = ()
    """Names of the spaces whose parameters depend on the workload (``default`` is the one that is
    searched where none is named): trials on different workloads cannot share a dataset."""
    not_modelled: ClassVar[tuple[str, ...]] = ()
    """What the simulator leaves out, a sentence each; shown by ``archgym show``."""
    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["ansi"],
        "render_fps": 1,
    }

    def __init__(
        self,
        *,
        workload: Any = None,
        objective: Objective | str | Mapping[str, Any] | None = None,
        space: str | DesignSpace | None = None,
        fixed: Mapping[str, Any] | None = None,
        simulator: str | Simulator = "embedded",
        record: str | Path | None = None,
        episode_length: int = 1,
        action: ActionForm = "auto",
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
        table = _table_of(simulator)
        if space is None:
            space = "default" if table is None else table.header.space
        self.design_space = self._choose_space(space)
        if fixed:
            self.design_space = self.design_space.fix(fixed)
        self.objective = Objective.parse(self.default_objective if objective is None else objective)
        for name in self.objective.metric_names():
            metric_named(name, self.metrics, "objective")
        if table is None or workload is not None:
            self.workload = self.default_workload if workload is None else workload
            self.load_workload(self.workload)
            self.workload_sha256 = self.hash_workload()
        else:  # there is no need to load what will not be run
            self.workload = table.header.workload
            self.workload_sha256 = table.header.workload_sha256
        self.simulator = self._choose_simulator(simulator, table)
        self.fidelities = self._choose_fidelities()
        for name in self.objective.metric_names():
            if name not in self.simulator.metric_names:
                raise InvalidValueError(
                    f"objective: simulator {self.simulator.name!r} does not give metric {name!r}; "
                    f"it gives {', '.join(self.simulator.metric_names)}"
                )
        self.record = Path(record) if record is not None else None
        self.baseline_metrics = self._simulate_baseline()
        self._scorer = Scorer(self.objective, self.metrics, self.baseline_metrics)
        self.encoding = self._choose_encoding(action, levels)
        self._observed = BoxEncoding(self.design_space)
        self.action_space = self.encoding.space  # type: ignore[attr-defined]
        self._width = len(self._observed.free) + len(self.metrics)
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (self._width,), np.float32)
        base = self.baseline_metrics.tolist()
        self._bases = list(zip(base, self.metrics, strict=True))
        self._metric_names = tuple(metric.name for metric in self.metrics)
        self.on_evaluated: Callable[[Outcomes], None] | None = None
        self._recording: TrialRecorder | None = None
        self._steps = 0
        self._last: Row | None = None
        self._first_observation = self._observe(self.design_space.codes(self.baseline_design), base)
        self.start_trial()

    # -- what a subclass writes ------------------------------------------------------------------

    def simulate(self, design: dict[str, Any]) -> Mapping[str, float]:
        """Metrics of one legal, canonical design.

        Raises:
            SimulationError: if this design fails; it becomes an outcome with status ``failed``.
            NotCoveredError: if the simulator does not model this design (status ``illegal``).
            TimeoutError: if it took too long (status ``timeout``).
        """
        raise NotImplementedError(
            f"{type(self).__name__} must override simulate, simulate_batch or simulate_batch_at"
        )

    def simulate_batch(self, designs: Designs) -> list[tuple[Simulation, float]]:
        """Metrics, or the error, of each of many designs, with the seconds that each took.

        Override it where many designs at once are faster than one by one.
        """
        return simulate_each(self, designs)

    def simulate_batch_at(
        self, designs: Designs, fidelity: float
    ) -> list[tuple[Simulation, float]]:
        """As :meth:`simulate_batch`, at one of :attr:`fidelities`: all simulations begin here.

        An environment that declares several overrides it. Below 1 it gives estimates of what
        the full simulation gives: every metric, in the same unit (a total over a tenth of a
        trace is scaled up tenfold).

        Args:
            designs: legal, canonical ones.
            fidelity: value of one of :attr:`fidelities`.
        """
        return self.simulate_batch(designs)

    def load_workload(self, spec: Any) -> None:
        """Makes ready what the hardware runs; called once, at construction.

        Raises:
            UnknownNameError, InvalidValueError: if there is no such workload.
        """
        if spec is not None:
            raise InvalidValueError(
                f"{type(self).__name__} has no workloads, got workload={spec!r}"
            )

    @classmethod
    def workloads(cls) -> dict[str, str]:
        """Names of the workloads that come with it, and a line on each."""
        return {}

    @classmethod
    def argument_docs(cls) -> dict[str, str]:
        """What the constructor arguments of its own may be, a line each."""
        return {}

    @classmethod
    def references(
        cls,
        table: Path | None = None,
        *,
        workloads: Path | None = None,
        hardware: str | None = None,
    ) -> list[Reference]:
        """Figures of other simulators that :meth:`simulate` should agree with.

        ``archgym validate`` evaluates the designs in them and compares. Override it where there
        are such figures.

        Args:
            table: a table in a form that the environment documents; ``None`` for those that
                ship with it.
            workloads: folder of the workloads that the rows name, where they do not ship.
            hardware: name or file of what the rows ran on (a memory, a cell library), where
                the rows alone do not say.

        Raises:
            InvalidValueError: if there are none, or the table cannot be read.
        """
        raise InvalidValueError(f"{cls.__name__} has no reference figures")

    @classmethod
    def named_designs(cls) -> dict[str, dict[str, Any]]:
        """Designs that have a name, such as published ones."""
        return {}

    @classmethod
    def draw(cls, design: Mapping[str, Any], path: Path) -> None:
        """Draws a design into a file; ``archgym show --picture`` does. Override it to.

        Raises:
            InvalidValueError: if it draws none, or not in this format.
        """
        raise InvalidValueError(f"{cls.__name__} draws no pictures, so there is none for {path}")

    @property
    def name(self) -> str:
        """The registered name, or ``module:Class``."""
        if self.spec is not None:
            return self.spec.id.removeprefix("archgym/")
        return f"{type(self).__module__}:{type(self).__qualname__}"

    @property
    def settings(self) -> dict[str, Any]:
        """Constructor arguments of its own under which metrics hold; recorded with each trial."""
        return {}

    @property
    def metrics_given(self) -> tuple[str, ...]:
        """Names of the metrics that :meth:`simulate` gives; all, unless it says otherwise."""
        return tuple(metric.name for metric in self.metrics)

    @property
    def workload_name(self) -> str:
        """What tables and datasets call the workload."""
        return "" if self.workload is None else str(self.workload)

    def hash_workload(self) -> str:
        """Hash of the workload's content; equal hashes mean equal workloads.

        Called once, after :meth:`load_workload`.
        """
        return ""

    # -- Gymnasium -------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Starts an episode; simulates nothing and observes the baseline design."""
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
        return self._observe(row.codes, row.metrics), row.reward, done, False, self._info(row)

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

    def evaluate(self, design: Mapping[str, Any], fidelity: float = 1.0) -> Outcome:
        """Evaluates one design.

        Args:
            design: a mapping of parameters to values.
            fidelity: value of one of :attr:`fidelities`; by default the full simulation. Another
                one costs less of the budget and gives estimates.

        Raises:
            UnknownNameError, DesignError: if the mapping is not a design of this space.
            InvalidValueError: if there is no such fidelity.
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
            BudgetExhausted: as :meth:`evaluate`.
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
        """
        trial = trial or TrialInfo()
        self.end_trial()
        if self.record is not None:
            from archgym.data.recorder import TrialRecorder  # heavy, and only needed here

            self._recording = TrialRecorder(self.record, self, trial)
        self.evaluator = Evaluator(
            self.design_space,
            self.metrics,
            self.simulator,
            self._scorer,
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

        See :func:`archgym.observation.observations`.
        """
        return observations(
            self._observed,
            self.metrics,
            self.baseline_metrics.tolist(),
            outcomes.designs,
            outcomes.metrics,
        )

    # -- inner workings --------------------------------------------------------------------------

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

    def _observe(self, codes: Sequence[int], metrics: Sequence[float]) -> NDArray[np.float32]:
        """As :meth:`observe`, for one design."""
        seen = self._observed.encode_one(codes)
        for value, (base, metric) in zip(metrics, self._bases, strict=True):
            if value == base:
                seen.append(0.0)
            elif value != value:  # NaN: there is no metric
                seen.append(metric.sign)
            else:
                seen.append((value - base) / metric_scale(value, base, metric.signed))
        return np.array(seen, dtype=np.float32)

    def _outcome(self, row: Row) -> Outcome:
        return Outcome.of(row, self.design_space.design(row.codes), self._metric_names)

    def _info(self, row: Row) -> dict[str, Any]:
        return {
            "design": self.design_space.design(row.codes),
            "metrics": row.metrics_by_name(self._metric_names),
            "objectives": tuple(row.objectives),
            "status": STATUSES[row.status],
            "feasible": row.feasible,
            "reason": row.reason,
            "cached": Incidental(row.cached),
            "simulation_s": Incidental(row.simulation_s),
        }

    def _baseline_codes(self) -> tuple[int, ...]:
        """Codes of the baseline, moved to where parameters are fixed.

        What only other spaces have is left out; what a fixed value makes active takes its first
        level. Where the fixed values make it illegal, it moves to the nearest legal design.
        """
        space = self.design_space
        elsewhere = {name for other in self.spaces().values() for name in other.names}
        known = {
            name: value
            for name, value in self.baseline.items()
            if name in space or name not in elsewhere
        }
        free = DesignSpace(space.parameters, space.rules)
        codes = [max(code, 0) for code in free.codes({**space.fixed, **known})]
        for name, value in space.fixed.items():
            codes[space.index(name)] = space[name].code(value)
        canonical = space.canonical_codes(codes)
        if space.fixed and space.illegal_reason(canonical):
            return nearest_legal(space, np.array(codes, dtype=np.int64)) or canonical
        return canonical

    def _simulate_baseline(self) -> NDArray[np.float64]:
        codes = self._baseline_codes()
        self.baseline_design = self.design_space.design(codes)
        broken = self.design_space.illegal_reason(codes)
        if broken:
            raise InvalidValueError(f"the baseline design is illegal: {broken}")
        (result, _), *_ = self.simulator.simulate(self.design_space.designs([self.baseline_design]))
        given = [m for m in self.metrics if m.name in self.simulator.metric_names]
        status, values, reason = read_result(result, self.metrics, given)
        if STATUSES[status] != "ok":
            raise SimulationError(f"the baseline design cannot be simulated: {reason}")
        return np.array(values)

    @classmethod
    def spaces(cls) -> dict[str, DesignSpace]:
        """Every design space that it offers, by name."""
        if cls.design_spaces:
            return dict(cls.design_spaces)
        if not isinstance(getattr(cls, "design_space", None), DesignSpace):
            raise InvalidValueError(f"{cls.__name__} must set design_space to a DesignSpace")
        return {"default": cls.design_space}

    def _choose_space(self, space: str | DesignSpace) -> DesignSpace:
        if isinstance(space, DesignSpace):
            return space
        offered = self.spaces()
        if space not in offered:
            raise UnknownNameError("space", space, offered)
        return offered[space]

    def _choose_simulator(self, simulator: str | Simulator, table: Table | None) -> Simulator:
        if not isinstance(simulator, str):
            return simulator
        if table is not None:
            from archgym.tabular import TabularSimulator

            return TabularSimulator(table, self, simulator)
        if simulator == "embedded":
            return _Embedded(self)
        if simulator not in self.simulators:
            allowed = ["embedded", *self.simulators, "tabular:PATH"]
            raise UnknownNameError("simulator", simulator, allowed)
        return self.simulators[simulator](self)

    def _choose_fidelities(self) -> tuple[Fidelity, ...]:
        """Those of the simulator: of another one than its own, an environment's do not hold."""
        owner = type(self)
        declared = check_fidelities(self.fidelities, owner.__name__)
        if len(declared) > 1 and owner.simulate_batch_at is Environment.simulate_batch_at:
            raise InvalidValueError(
                f"{owner.__name__} declares fidelities and must override simulate_batch_at"
            )
        if isinstance(self.simulator, MultiFidelitySimulator):
            return check_fidelities(self.simulator.fidelities, self.simulator.name)
        return (FULL,)

    def _choose_encoding(self, action: str, levels: int | None) -> Encoding:
        if action not in _ACTIONS:
            raise UnknownNameError("action form", action, _ACTIONS)
        space = self.design_space
        if action == "auto":
            real = any(space.parameters[i].continuous for i in space.free)
            action = "box" if real and levels is None else "multi_discrete"
        if action == "box":
            return BoxEncoding(space)
        return (
            MultiDiscreteEncoding(space, levels)
            if action == "multi_discrete"
            else FlatEncoding(space, levels)
        )


def _table_of(simulator: object) -> Table | None:
    """The table behind ``tabular:PATH``; ``None`` for another simulator."""
    if not (isinstance(simulator, str) and simulator.startswith("tabular:")):
        return None
    from archgym.tabular import table_named  # only where it is needed

    return table_named(simulator)


class _Embedded:
    """The simulator that an environment brings itself."""

    name = "embedded"

    def __init__(self, environment: Environment) -> None:
        self.version = environment.version
        self.metric_names = environment.metrics_given
        self.fidelities = environment.fidelities
        self.simulate_at = environment.simulate_batch_at

    def simulate(self, designs: Designs) -> list[tuple[Simulation, float]]:
        return self.simulate_at(designs, 1.0)
