"""A design problem whose designs are evaluated in trials: counted, cached and recorded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archgym.environment.one_thread import OneThread
from archgym.environment.source import source_sha256
from archgym.errors import InvalidValueError
from archgym.evaluation.baseline import simulated_metrics
from archgym.evaluation.evaluator import Evaluator
from archgym.evaluation.outcome import Outcome, Outcomes, Row
from archgym.evaluation.recorder_protocol import Durability
from archgym.evaluation.trial_info import TrialInfo
from archgym.problem import DesignProblem, Objective
from archgym.problem.description import ProblemDescription
from archgym.problem.scoring import Scorer
from archgym.problem.simulator import Simulator, identity
from archgym.space import Designs

if TYPE_CHECKING:
    from archgym.data.trial_recorder import TrialRecorder
    from archgym.simulators.tabular import Optimum


class EvaluatedProblem(DesignProblem):
    """A design problem with a simulator and an objective, whose designs are evaluated in trials.

    :class:`archgym.Environment` adds Gymnasium's contract. A trial begins with its first
    evaluation, or with :meth:`start_trial`. One thread at a time may evaluate or search; another
    one meanwhile gets an ``ArchgymError``.

    Attributes:
        objective: what is sought.
        simulator: that is run, see :class:`archgym.Environment`.
        simulator_options: as given.
        episode_length: designs an episode.
        record: folder of the dataset that takes every evaluation; ``None`` for none.
        durable: when a recorded row is on disk, see :class:`archgym.Environment`.
        trial_info: describes the trials that begin without a call of :meth:`start_trial`.
        on_evaluated: function that is called with the outcomes of each evaluation; or ``None``.
        on_waiting: function that is called before outcomes of designs in flight are waited for;
            or ``None``.
    """

    objective: Objective
    simulator: Simulator
    simulator_options: Mapping[str, Any]
    episode_length: int
    record: Path | None
    durable: Durability = "auto"
    trial_info: TrialInfo = TrialInfo()
    on_evaluated: Callable[[Outcomes], None] | None = None
    on_waiting: Callable[[], None] | None = None

    _baseline_design: Mapping[str, Any]
    _baseline_metrics: NDArray[np.float64] | None = None
    _evaluator: Evaluator | None = None
    _recording: TrialRecorder | None = None
    _ended = True
    _last: Row | None = None

    @property
    def name(self) -> str:
        """The registered name, or ``module:Class``."""
        return f"{type(self).__module__}:{type(self).__qualname__}"

    @property
    def trial_settings(self) -> dict[str, Any]:
        """All settings that metrics depend on: :attr:`settings` and the simulator's options."""
        left_out = self.incidental_options
        options = {k: v for k, v in self.simulator_options.items() if k not in left_out}
        return {**self.settings, **({"simulator_options": options} if options else {})}

    @property
    def description(self) -> ProblemDescription:
        """The environment as records of its results describe it."""
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
            simulator=identity(simulator),
            source_sha256=source_sha256(type(self), type(simulator)),
            metrics_given=tuple(simulator.metric_names),
            fidelities=self.fidelities,
            baseline_design=self.baseline_design,
            episode_length=self.episode_length,
        )

    @property
    def baseline_design(self) -> dict[str, Any]:
        """The baseline, canonical, in the design space as it is searched; a copy."""
        return dict(self._baseline_design)

    @property
    def baseline_metrics(self) -> NDArray[np.float64]:
        """Metrics of the baseline design, shape (n_metrics,); see :meth:`simulate_baseline`.

        They may be set, where they are known already, before anything reads them.
        """
        return self.simulate_baseline()

    @baseline_metrics.setter
    def baseline_metrics(self, metrics: Sequence[float] | NDArray[np.float64]) -> None:
        known = np.array(metrics, dtype=np.float64)
        if known.shape != (len(self.metrics),):
            raise InvalidValueError(
                f"baseline_metrics has shape {known.shape}, there are {len(self.metrics)} metrics"
            )
        known.flags.writeable = False
        self._baseline_metrics = known

    @property
    def baseline_is_known(self) -> bool:
        """Whether :attr:`baseline_metrics` are known without a simulation."""
        return self._baseline_metrics is not None

    @property
    def evaluator(self) -> Evaluator:
        """The evaluation core of the current or else the last trial, with its counters."""
        if self._evaluator is None:
            self.start_trial()
        assert self._evaluator is not None
        return self._evaluator

    def simulate_baseline(self, retries: int = 0) -> NDArray[np.float64]:
        """Simulates the baseline design, once; later calls give the metrics that it then had.

        Rewards and observations are relative to it, so whatever needs them calls this: the first
        ``reset`` or evaluation, not the constructor. After an error the next call tries again.

        Args:
            retries: how often it is tried again at once where it fails or takes too long.

        Returns:
            Its metrics, shape (n_metrics,), NaN for one that the simulator does not give; they
            cannot be written to.

        Raises:
            SimulationError: if it cannot be simulated.
        """
        if self._baseline_metrics is None:
            design = self.design_space.designs([self.baseline_design])
            self.baseline_metrics = simulated_metrics(design, self.simulator, self.metrics, retries)
        assert self._baseline_metrics is not None
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
        designs = self.own_designs(designs)
        with OneThread(self):
            if self._ended:
                self.start_trial()  # what follows is a new one
            outcomes = self.evaluator.evaluate(designs, fidelity)
            if len(outcomes):
                (self._last,) = outcomes.rows(len(outcomes) - 1)
                if self.on_evaluated is not None:
                    self.on_evaluated(outcomes)
            return outcomes

    def submit(
        self, designs: Designs | Iterable[Mapping[str, Any]], fidelity: float = 1.0
    ) -> list[int]:
        """Takes designs to evaluate and does not wait; :meth:`collect` gives their outcomes.

        ``env.evaluator.vacant`` says how many keep all workers busy: see
        :class:`archgym.evaluation.queue.Queue`.

        >>> import archgym
        >>> env = archgym.make("Conformance-v0")
        >>> tickets = env.submit([env.baseline_design])
        >>> [(ticket, outcomes[0].status) for ticket, outcomes in env.collect()]
        [(0, 'ok')]

        Args:
            designs: of this space.
            fidelity: see :meth:`evaluate`.

        Returns:
            The tickets of the designs; with a budget, of as many as are left in it.

        Raises:
            UnknownNameError, DesignError: if a mapping is not a design of this space.
            InvalidValueError: if there is no such fidelity.
            SimulationError, BudgetExhausted: as :meth:`evaluate`.
        """
        designs = self.own_designs(designs)
        with OneThread(self):
            if self._ended:
                self.start_trial()
            return self.evaluator.submit(designs, fidelity)

    def collect(self, timeout_s: float | None = None) -> list[tuple[int, Outcomes]]:
        """Outcomes of submitted designs as their simulations end: each with its ticket.

        Args:
            timeout_s: how long to wait for the first one, s; 0 does not wait, ``None`` waits
                without a limit.

        Returns:
            Tickets, and batches of one outcome, in the order in which the outcomes came and were
            recorded; none after the timeout, and at once if nothing is in flight.
        """
        if self.on_waiting is not None:
            self.on_waiting()
        collected = []
        for ticket, row in self.evaluator.collect(timeout_s):
            self._last = row
            designs = Designs(self.design_space, np.array([row.codes], dtype=np.int64))
            outcomes = Outcomes.of(row, designs, self._metric_names)
            collected.append((ticket, outcomes))
        if self.on_evaluated is not None:
            for _, outcomes in collected:
                self.on_evaluated(outcomes)
        return collected

    def own_designs(self, designs: Designs | Iterable[Mapping[str, Any]]) -> Designs:
        """The designs as a batch of this space.

        Raises:
            UnknownNameError, DesignError: if a mapping is not a design of this space.
            InvalidValueError: for designs of another space.
        """
        if not isinstance(designs, Designs):
            return self.design_space.designs(designs)
        if designs.space is not self.design_space and designs.space != self.design_space:
            raise InvalidValueError("the designs are of another design space")
        return designs

    def start_trial(self, trial: TrialInfo | None = None) -> None:
        """Begins a trial: counters at zero, nothing known, a budget if the trial has one.

        Without an argument it is described by :attr:`trial_info`.

        With ``record`` set and a trial id that the dataset already holds, the trial goes on
        where it stopped: what was evaluated is replayed from the dataset, not simulated again.

        Raises:
            InvalidValueError: if the trial is described by something else than a ``TrialInfo``.
            SimulationError: as :meth:`simulate_baseline`.
            DatasetError: if the dataset cannot take it, such as one of the same id.
        """
        trial = self.trial_info if trial is None else trial
        if not isinstance(trial, TrialInfo):
            raise InvalidValueError(f"a trial is described by a TrialInfo, not by {trial!r:.80}")
        with OneThread(self):
            self._start(trial)

    def end_trial(self, state: str = "closed") -> None:
        """Ends the current trial and its recording; what is evaluated next begins a new one.

        Args:
            state: ``finished`` if the search ended by itself, ``failed``, or ``closed``.
        """
        self._ended = True
        if self._evaluator is not None:
            self._evaluator.give_up()
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

    # -- inner workings --------------------------------------------------------------------------

    def _start(self, trial: TrialInfo) -> None:
        scorer = self._scorer
        self.end_trial()
        if self.record is not None:
            from archgym.data.trial_recorder import TrialRecorder  # heavy, and only needed here

            optimum = None if self.optimum is None else self.optimum.metrics
            self._recording = TrialRecorder(
                self.record,
                self.description,
                trial,
                self.baseline_metrics.tolist(),
                optimum,
                durable=self.durable,
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
            hours=trial.hours,
        )
        self._ended = False

    @cached_property
    def _metric_names(self) -> tuple[str, ...]:
        return tuple(metric.name for metric in self.metrics)

    @cached_property
    def _scorer(self) -> Scorer:
        return Scorer(self.objective, self.metrics, self.baseline_metrics)

    def _evaluate_one(self, codes: Sequence[int], fidelity: float = 1.0) -> Row:
        """As :meth:`evaluate_batch`, for one design's canonical codes."""
        with OneThread(self):
            if self._ended:
                self.start_trial()
            row = self._last = self.evaluator.evaluate_one(codes, None, fidelity)
            if self.on_evaluated is not None:
                designs = Designs(self.design_space, np.array([codes], dtype=np.int64))
                self.on_evaluated(Outcomes.of(row, designs, self._metric_names))
            return row

    def _outcome(self, row: Row) -> Outcome:
        return Outcome.of(row, self.design_space.design(row.codes), self._metric_names)
