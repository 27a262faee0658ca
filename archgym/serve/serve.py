"""Begins and ends a session: the environment, its workers, the trial, the dataset."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from archgym.environment.environment import Environment
from archgym.environment.provenance import driven_by
from archgym.errors import InvalidValueError, SimulationError
from archgym.evaluation.trial_info import EXTERNAL, TrialInfo
from archgym.experiment.simulate.simulators import Simulators
from archgym.experiment.spec.checks import goal_directions, make_environment
from archgym.experiment.spec.from_mapping import read_simulation
from archgym.problem.fidelity import FULL
from archgym.problem.objective import Objective
from archgym.registry import agent_names, environment_class, make_agent
from archgym.serve.client import ClientExecutor, ClientSimulator, ProgramEnded
from archgym.serve.evaluating import EvaluatingSession
from archgym.serve.lines import Channel, ClientGone
from archgym.serve.searching import SearchingSession
from archgym.simulators.queued import QueuedSimulator

__all__ = ["CLIENT", "Settings", "serve"]

CLIENT: Final = "client"
"""The ``simulator`` with which the program simulates; a name may follow: ``client:NAME``."""


@dataclass(frozen=True)
class Settings:
    """What is fixed for a session.

    Attributes:
        environment: registered name, ``module:Class``, or the path of a YAML file.
        arguments: of its constructor.
        record: folder of the dataset; ``None`` for none.
        agent: name under which designs are recorded that the program proposes, or the agent of
            archgym whose designs the program simulates.
        hyperparameters: of the agent.
        seed: of the agent; ``None`` if the program has none.
        label: what the designs are for, such as ``train``.
        budget: distinct legal designs to simulate; ``None`` for no limit.
        hours: that all simulations take together; ``None`` for no limit.
        trial_id: name of the trial in the dataset; empty for a new one.
        resume: whether to go on with that trial.
        workers: designs that are simulated at a time.
        time_limit_s: after which a simulation is ended, s; ``None`` for no limit.
    """

    environment: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    record: Path | None = None
    agent: str = ""
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    label: str = ""
    budget: int | None = None
    hours: float | None = None
    trial_id: str = ""
    resume: bool = False
    workers: int | None = None
    time_limit_s: float | None = None

    @property
    def client(self) -> str:
        """The name of the program that simulates; empty if archgym does."""
        name = str(self.arguments.get("simulator", ""))
        return name if name.partition(":")[0] == CLIENT else ""

    @property
    def about(self) -> dict[str, Any]:
        """What a program is told of them."""
        return {
            "agent": self.agent or EXTERNAL,
            "hyperparameters": dict(self.hyperparameters),
            "seed": self.seed,
            "label": self.label,
            "budget": self.budget,
            "hours": self.hours,
            "workers": self.workers or 1,
            "recorded": self.record is not None,
        }

    def check(self) -> None:
        """Refuses settings that do not go together.

        Raises:
            InvalidValueError: with what is wrong.
        """
        if self.resume and not (self.trial_id and self.record is not None):
            raise InvalidValueError("--resume goes on with a trial: give --trial and --record")
        if not self.client:
            if self.agent in agent_names():
                raise InvalidValueError(
                    f"--agent {self.agent!r} is an agent of archgym, but the program proposes the "
                    "designs: give the program's name, or --simulator client for that agent's "
                    "designs to be simulated by the program"
                )
            agent, label = self.agent or EXTERNAL, self.label or None
            driven_by(agent, self.seed, self.hyperparameters, label, self.budget)
            return
        if not self.agent:
            raise InvalidValueError(
                "--simulator client needs --agent: the agent of archgym whose designs the program "
                f"simulates, one of {', '.join(agent_names())}"
            )
        if self.budget is None and self.hours is None:
            raise InvalidValueError("a search needs --budget or --hours")
        if self.label:
            raise InvalidValueError("--label is for designs that the program proposes")
        if self.time_limit_s is not None:
            raise InvalidValueError("--time-limit is for simulators that archgym runs")


def serve(settings: Settings, requests: int, answers: int) -> None:
    """Runs a session to its end: no more requests, ``end``, or nobody who reads the answers.

    Args:
        settings: of the session.
        requests: descriptor that requests are read from.
        answers: descriptor that answers are written to.

    Raises:
        ArchgymError: if the session cannot begin, or its search cannot go on.
    """
    settings.check()
    with contextlib.suppress(ClientGone):
        if settings.client:
            _serve_search(settings, requests, answers)
        else:
            _serve_evaluations(settings, requests, answers)


def _serve_evaluations(settings: Settings, requests: int, answers: int) -> None:
    with _environment(settings) as environment:
        environment.start_trial(
            TrialInfo(
                trial_id=settings.trial_id,
                agent=settings.agent or EXTERNAL,
                hyperparameters=settings.hyperparameters,
                seed=settings.seed,
                budget=settings.budget,
                hours=settings.hours,
                resume=settings.resume,
                label=settings.label or None,
            )
        )
        session = EvaluatingSession(environment, Channel(requests, answers), settings.about)
        session.begun, session.baseline = True, environment.baseline_metrics.tolist()
        session.run()
        over = session.ended or environment.evaluator.exhausted
        environment.end_trial("finished" if over else "closed")


def _serve_search(settings: Settings, requests: int, answers: int) -> None:
    executor = ClientExecutor(settings.workers or 1)
    simulator = _client_simulator(settings, executor)
    with _environment(settings, simulator) as environment:
        seed = settings.seed or 0
        agent = make_agent(
            settings.agent,
            environment.design_space,
            goal_directions(environment),
            seed=seed,
            **settings.hyperparameters,
        )
        about = {**settings.about, "seed": seed}
        session = SearchingSession(environment, Channel(requests, answers), about, executor)
        first = environment.design_space.designs([environment.baseline_design])

        def search() -> None:
            known = _recorded_baseline(settings, environment)
            if known is not None:
                environment.baseline_metrics = known
            session.baseline = environment.simulate_baseline().tolist()
            agent.search(
                environment,
                settings.budget,
                hours=settings.hours,
                initial=first[environment.design_space.legal(first)],
                trial_id=settings.trial_id,
                resume=settings.resume,
            )

        try:
            session.run(search)
        except ProgramEnded:
            sys.stderr.write("the program ended before the search\n")


def _client_simulator(settings: Settings, executor: ClientExecutor) -> QueuedSimulator:
    """The program as the simulator of the environment."""
    cls = environment_class(settings.environment)
    goals = Objective.parse(settings.arguments.get("objective") or cls.default_objective)
    needed = goals.metric_names()
    fidelities = cls.fidelities if getattr(cls, "simulated_elsewhere", False) else (FULL,)
    inner = ClientSimulator(settings.client, needed, tuple(fidelities) or (FULL,))
    return QueuedSimulator(inner, executor, asynchronous=executor.slots > 1)


@contextlib.contextmanager
def _environment(settings: Settings, simulator: Any = None) -> Iterator[Environment]:
    """The environment for a block; at its end its dataset is sealed."""
    recorded = {} if settings.record is None else {"record": settings.record}
    given = dict(settings.arguments) | ({} if simulator is None else {"simulator": simulator})
    environment = make_environment(settings.environment, {**given, **recorded})
    simulation = {"workers": settings.workers, "time_limit_s": settings.time_limit_s}
    if simulator is not None:
        simulation = {}
    try:
        with (
            contextlib.closing(Simulators(read_simulation(simulation))) as simulators,
            contextlib.closing(environment),
        ):
            simulators.serve(environment, settings.environment, given)
            if simulator is None:
                simulators.simulate_baseline(environment)
            yield environment
    except SimulationError as error:
        raise SimulationError(f"nothing can be evaluated: {error}") from error
    finally:
        if environment.record is not None:
            from archgym.data import Dataset  # heavy, and only needed here

            Dataset(environment.record).seal()


def _recorded_baseline(settings: Settings, environment: Environment) -> list[float] | None:
    """Metrics of the baseline design as a resumed trial has them; ``None`` if nothing is known."""
    if not settings.resume or settings.record is None:
        return None
    from archgym.data import Dataset  # heavy, and only needed here

    rows = Dataset(settings.record).trials().select(["trial_id", "baseline"]).to_pylist()
    held = [json.loads(row["baseline"]) for row in rows if row["trial_id"] == settings.trial_id]
    if not held:
        return None
    values = [held[0].get(metric.name) for metric in environment.metrics]
    return [math.nan if value is None else float(value) for value in values]
