"""The interface of every search agent."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pydantic

from archgym.environment.environment import Environment
from archgym.environment.one_thread import OneThread
from archgym.environment.unwrapped import unwrapped
from archgym.errors import BudgetExhausted, InvalidValueError, UnknownNameError, check_seed
from archgym.evaluation.best import Best
from archgym.evaluation.budget import check_budget
from archgym.evaluation.outcome import Outcome, Outcomes, told
from archgym.evaluation.trial_info import TrialInfo
from archgym.history.history import History, HistoryPaths
from archgym.problem.fidelity import FULL, Fidelity
from archgym.problem.goals import checked_directions
from archgym.problem.spread import GoalSpread
from archgym.reading.pydantic_messages import allowed_text
from archgym.space import Designs, DesignSpace

_FROM_HISTORY = 5
"""Designs that are evaluated first because they were good before."""


class Hyperparameters(pydantic.BaseModel):
    """Base of an agent's hyperparameters: typed fields with a default, bounds and a description."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, repr=False)
class SearchResult:
    """The result of a search.

    Attributes:
        best: the best outcome at full fidelity, feasible if any is; ``None`` if none is simulated.
        best_at: number of simulations after which it was found.
        front: the non-dominated feasible outcomes (with one goal, the best one).
        simulations: distinct legal designs simulated, each fidelity by itself.
        proposals: designs proposed.
        duplicates: proposals that were known already.
        illegal: proposals that broke a rule or were not covered by the simulator.
        spent: budget spent: the simulations, each by the relative cost of its fidelity.
        regret: by which share the best outcome is worse than the exact optimum (0 is the optimum,
            ``inf`` is nothing feasible); ``None`` if the optimum is not known, as it is with
            ``simulator="tabular:PATH"`` and one goal.
    """

    best: Outcome | None
    best_at: int
    front: list[Outcome]
    simulations: int
    proposals: int
    duplicates: int
    illegal: int
    spent: float
    regret: float | None = None

    def __repr__(self) -> str:
        if self.best is None:
            return f"SearchResult(nothing could be simulated, {self.simulations} simulations)"
        goals = ", ".join(f"{value:.6g}" for value in self.best.objectives)
        kind = "best" if self.best.feasible else "best, not feasible"
        front = f", {len(self.front)} on the front" if len(self.front) > 1 else ""
        return (
            f"SearchResult({kind}: {goals}, after {self.best_at} of {self.simulations} "
            f"simulations{front})"
        )


class Agent(ABC):
    """A search algorithm over designs.

    A subclass sets :attr:`name` and :attr:`Hyperparameters` and writes :meth:`run`; most derive
    from :class:`Sampler` and write ``ask`` and ``tell`` instead. It prepares its state in
    :meth:`setup`.

    Args:
        space: the design space to search.
        directions: ``minimize`` or ``maximize`` for each goal; only their number matters.
        seed: of everything random, below 2^63; the same seed gives the same search.
        **hyperparameters: fields of :attr:`Hyperparameters`.

    Attributes:
        ignored_sources: places of the sources of its history of which it makes no use.
        fidelities: those of the environment that is searched; until then the full one only.
        spread: what spreads of metrics mean for the goals of the environment that is searched;
            ``None`` if it gives none.
        hyperparameters: the validated hyperparameters.
        rng: seeded with ``seed``; the agent's only source of randomness.
        plans_by_budget: whether what it proposes depends on the budget, so that a finished trial
            cannot go on with more.

    Raises:
        UnknownNameError: for a hyperparameter that does not exist.
        InvalidValueError: for one that is out of range.
        AgentUnsuitableError: if the agent cannot work on this space or these goals.
    """

    name: ClassVar[str]
    Hyperparameters: ClassVar[type[Hyperparameters]] = Hyperparameters
    plans_by_budget: ClassVar[bool] = False

    def __init__(
        self,
        space: DesignSpace,
        directions: Sequence[str] = ("minimize",),
        seed: int = 0,
        **hyperparameters: Any,
    ) -> None:
        if not isinstance(space, DesignSpace):
            raise InvalidValueError(
                f"space must be a DesignSpace, such as env.design_space, not {type(space).__name__}"
            )
        self.space = space
        self.ignored_sources: tuple[int, ...] = ()
        self.fidelities: tuple[Fidelity, ...] = (FULL,)
        self.spread: GoalSpread | None = None
        self.directions = checked_directions(directions)
        self.seed = check_seed(seed)
        self.hyperparameters = self.check_hyperparameters(hyperparameters)
        self.rng = np.random.default_rng(self.seed)
        self.setup()

    def setup(self) -> None:  # noqa: B027 - optional to override
        """Prepares the agent, at the end of its construction; nothing, unless overridden.

        Raises:
            AgentUnsuitableError: if the agent cannot work on this space or these goals.
        """

    @classmethod
    def check_hyperparameters(cls, values: Mapping[str, Any]) -> Any:
        """Validated hyperparameters.

        Raises:
            UnknownNameError: for a name that does not exist.
            InvalidValueError: for a value that is out of range.
        """
        fields = cls.Hyperparameters.model_fields
        for name in values:
            if name not in fields:
                raise UnknownNameError(f"hyperparameter of agent {cls.name!r}", name, fields)
        try:
            return cls.Hyperparameters(**values)
        except pydantic.ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(str(part) for part in problem["loc"]) or "hyperparameters"
            if problem["type"] == "missing":
                raise InvalidValueError(
                    f"agent {cls.name!r}: hyperparameter {where} has no default: give it a value"
                ) from None
            raise InvalidValueError(
                f"agent {cls.name!r}: hyperparameter {where} cannot be "
                f"{problem['input']!r}: {allowed_text(problem)}"
            ) from None

    def search(
        self,
        env: Environment,
        budget: int | None = None,
        *,
        hours: float | None = None,
        initial: Designs | Iterable[Mapping[str, Any]] = (),
        history: History | HistoryPaths | None = None,
        trial_id: str = "",
        resume: bool = False,
    ) -> SearchResult:
        """Searches until the budget is spent, the space is exhausted or proposals run away.

        Args:
            env: the environment; recorded if it has ``record`` set.
            budget: distinct legal designs to simulate; one at a lower fidelity counts as its
                relative cost; ``None`` for no limit.
            hours: that all simulations take together; ``None`` for no limit. One of both is
                needed.
            initial: known designs to evaluate first.
            history: what earlier searches found, or folders of runs and datasets that hold it.
            trial_id: name of the trial in the dataset.
            resume: go on with the trial of that id in the dataset.

        Raises:
            InvalidValueError: without a budget, or for what is not possible; the message says it.
        """
        env = unwrapped(env)
        budget = check_budget(budget, hours, env.design_space.raw_cardinality)
        env.objective.check_directions(self.directions)
        initial = env.own_designs(initial)
        if not isinstance(self.spread, GoalSpread | None):
            raise InvalidValueError(f"agent {self.name!r}: search sets self.spread: rename yours")
        self.fidelities = env.fidelities
        self.spread = GoalSpread.of(env.objective, env.metrics, env.repeats)
        learned = None
        if history is not None and not isinstance(history, History):
            from archgym.history.reading import read_history  # heavy, and only needed here

            history = read_history(history, env)
        if history:
            first = self.recall(history)
            initial, learned = initial.concatenate(first), history.info(first, self.ignored_sources)
        env.start_trial(
            TrialInfo(
                trial_id=trial_id,
                agent=self.name,
                hyperparameters=self.hyperparameters.model_dump(mode="json"),
                seed=self.seed,
                budget=budget,
                hours=hours,
                resume=resume,
                history=learned,
            )
        )
        best = Best()
        listener = env.on_evaluated

        def watch(outcomes: Outcomes) -> None:
            best.update(outcomes)
            if listener is not None:
                listener(outcomes)

        env.on_evaluated = watch
        state = "closed"  # interrupted: nothing failed
        try:
            with OneThread(env), contextlib.suppress(BudgetExhausted):
                self.run(env, initial)
            state = "finished"
        except Exception:
            state = "failed"
            raise
        finally:
            env.on_evaluated = listener
            env.end_trial(state)
        counts = env.evaluator
        return SearchResult(
            best=best.outcome,
            best_at=best.at,
            front=best.front,
            simulations=counts.simulations,
            proposals=counts.proposals,
            duplicates=counts.duplicates,
            illegal=counts.illegal,
            spent=counts.spent,
            regret=env.regret(best.outcome),
        )

    def recall(self, history: History) -> Designs:
        """Learns from earlier searches; called once, before :meth:`run`.

        Unless overridden, the best designs of the sources come first, and nothing else is learned.

        Args:
            history: at least one source.

        Returns:
            Designs to evaluate first, besides those the user gave; recorded as from history.
        """
        return history.start(_FROM_HISTORY)

    @abstractmethod
    def run(self, env: Environment, initial: Designs) -> None:
        """Drives the environment until it raises ``BudgetExhausted``, or the agent is done.

        Args:
            env: the environment, with a trial begun.
            initial: designs to evaluate first; may be empty.
        """


class Sampler(Agent):
    """An agent that proposes designs and observes their outcomes.

    A subclass writes :meth:`ask` and :meth:`tell`, and :attr:`batch_size` if it wants more than
    one design at a time. One that uses fidelities sets :attr:`fidelity` in ``ask``; each outcome
    holds its own.

    Attributes:
        fidelity: at which the designs that were asked for last are to be simulated, the value of
            one of :attr:`fidelities`.
    """

    fidelity: float = 1.0

    @property
    def batch_size(self) -> int:
        """How many designs :meth:`search` asks for at once."""
        return 1

    @abstractmethod
    def ask(self, n: int) -> Designs:
        """Up to ``n`` designs to evaluate next; none when the agent has nothing left to propose.

        Designs that it returned before, and whose outcomes it was not told, are in flight. Where
        several workers simulate it is asked for one design whenever a worker is free; it is asked
        again after the next outcome if it returns none while designs are in flight.
        """

    @abstractmethod
    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        """Takes in outcomes.

        Args:
            designs: those it asked for, in that order and perhaps fewer at the end of the budget,
                or any others (a warm start).
            outcomes: one each.
        """

    def first(self, initial: Designs) -> Designs:
        """Those of the initial designs that are evaluated before any is asked for.

        All, unless overridden by an agent that asks for the others itself, in :meth:`ask`.

        Args:
            initial: designs that the user gave, and then those of :meth:`~Agent.recall`.
        """
        return initial

    def run(self, env: Environment, initial: Designs) -> None:
        """Asks, evaluates and tells until the search is over.

        Where several workers simulate, it asks for one design whenever one of them is free, and
        tells each outcome as it comes.
        """
        if env.evaluator.asynchronous:
            self._run_steadily(env, initial)
            return
        designs, fidelity = self.first(initial), 1.0
        while True:
            if len(designs):
                outcomes = env.evaluate_batch(designs, fidelity)
                self.tell(outcomes.designs, told(outcomes))
            if env.evaluator.exhausted:
                return
            designs = _checked(self.name, self.ask(self.batch_size))
            fidelity = self.fidelity
            if not len(designs):
                return

    def _run_steadily(self, env: Environment, initial: Designs) -> None:
        initial = self.first(initial)
        in_flight = len(env.submit(initial)) if len(initial) else 0

        def propose(in_flight: int) -> tuple[Designs, float]:
            designs = _checked(self.name, self.ask(1))
            return designs, self.fidelity

        keep_busy(env, propose, lambda outcomes: self.tell(outcomes.designs, outcomes), in_flight)


def keep_busy(
    env: Environment,
    propose: Callable[[int], tuple[Designs, float]],
    learn: Callable[[Outcomes], None],
    in_flight: int = 0,
) -> None:
    """Proposes designs whenever a worker is free, until nothing is proposed and all are learned.

    What is in flight when the budget is spent is waited for.

    Args:
        env: the environment, with a trial begun.
        propose: given the number of designs in flight, gives designs and their fidelity; none if
            there are none to propose before the next outcome.
        learn: takes in the outcome of one design.
        in_flight: designs that were submitted already.
    """
    core, over = env.evaluator, False
    while True:
        idle = over
        while not idle and core.vacant and not core.exhausted:
            designs, fidelity = propose(in_flight)
            idle = not len(designs)
            if not idle:
                try:
                    in_flight += len(env.submit(designs, fidelity))
                except BudgetExhausted:  # nothing left at this fidelity
                    idle = over = True
        if not in_flight:
            return
        for _, outcomes in env.collect(core.patience_s):
            in_flight -= 1
            learn(told(outcomes))


def _checked(agent: str, designs: Designs) -> Designs:
    """What an agent's ``ask`` returned, if that is designs."""
    if not isinstance(designs, Sequence | Designs):
        raise InvalidValueError(
            f"agent {agent!r}: ask returned {type(designs).__name__}, not designs: as "
            "space.sample, space.designs or the decode of an encoding gives them, or a list of "
            "mappings"
        )
    return designs
