"""The tools, as functions whose names, arguments and texts an assistant sees."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Annotated, Any, Final

from pydantic import Field

from archgym.assistant.choices import chosen_arguments, simulators_of
from archgym.assistant.evaluations import Evaluations, budget_state
from archgym.assistant.models import (
    AgentInfo,
    Agents,
    BestDesigns,
    EnvironmentInfo,
    EnvironmentName,
    Environments,
    Evaluation,
    MetricInfo,
    Report,
    Results,
    RunState,
)
from archgym.assistant.results import best_designs, made_report
from archgym.assistant.runs import Running, run_state
from archgym.assistant.workplace import RUNS, Workplace
from archgym.environment.arguments import own_arguments
from archgym.environment.environment import Environment
from archgym.errors import UnknownNameError
from archgym.problem.objective import Objective
from archgym.registry import agent_class, agent_names
from archgym.serve.describe import metric_json, space_json

__all__ = ["INSTRUCTIONS", "Tools"]

INSTRUCTIONS: Final = (
    "archgym explores designs of computer hardware with simulators: memory controllers, DNN "
    "accelerators, arithmetic units, networks with their chips. A design is a set of values of "
    "parameters; a simulation gives its metrics, such as latency, energy and area, with units. An "
    "objective says which metric is minimised or maximised, within which limits. Begin with "
    "list_environments and show_environment. evaluate simulates designs that you choose; "
    "run_experiment lets search algorithms choose them, which finds better designs; best_designs "
    "reads what was found. Simulations count against a budget that you cannot change; designs "
    "that this session evaluated before, or that break a rule, are free. Everything is recorded. "
    "Metrics are of models: tell the person the caveats."
)
_MAX_DESIGNS: Final = 200
_MAX_BUDGET: Final = 1_000_000

Name = Annotated[str, Field(max_length=200, description="name, from list_environments")]
Workload = Annotated[
    str | None,
    Field(max_length=200, description="what the hardware runs, a name of show_environment"),
]
ObjectiveText = Annotated[
    str | dict[str, Any] | None,
    Field(
        description="'minimize METRIC', 'maximize METRIC', or a mapping as {'minimize': "
        "'read_latency_mean_ns', 'limits': ['power_mw <= 2000']}; also product {METRIC: weight}, "
        "target {METRIC: value}, and lists of metrics for several goals; the default if left out"
    ),
]
Space = Annotated[
    str | None, Field(max_length=200, description="one of the spaces, if there are several")
]
Fixed = Annotated[
    dict[str, Any] | None, Field(description="parameters that are held: name and value")
]
Simulator = Annotated[
    str | None, Field(max_length=200, description="one of the simulators; embedded if left out")
]
SettingValues = Annotated[
    dict[str, str | int | float | bool] | None,
    Field(description="further settings of show_environment, as {'memory': 'DDR3-1600'}"),
]
ResultName = Annotated[str, Field(max_length=200, description="name, from list_results")]


class Tools:
    """The tools of a session: each method but :meth:`stop`, :meth:`close`, :meth:`running`.

    Args:
        workplace: what they work in.
    """

    def __init__(self, workplace: Workplace) -> None:
        self.workplace = workplace
        self._evaluations = Evaluations(workplace)
        self._lock = threading.Lock()

    def stop(self) -> None:
        """Begins no further simulation: the server is told to end."""
        self._evaluations.stop.set()

    def close(self) -> None:
        """Ends what is open, and seals datasets."""
        with self._lock:
            self._evaluations.flush()
        self.workplace.close()

    @property
    def simple(self) -> list[Callable[..., Any]]:
        """The tools that need no progress."""
        return [
            self.list_environments,
            self.show_environment,
            self.list_agents,
            self.show_agent,
            self.evaluate,
            self.list_results,
            self.best_designs,
            self.run_status,
            self.make_report,
        ]

    def list_environments(self) -> Environments:
        """List the environments (hardware whose design can be explored), and the budget."""
        found = []
        for name in self.workplace.environments:
            _, cls = self.workplace.environment(name)
            about, names = _first_line(cls.__doc__), sorted(cls.workloads())
            found.append(EnvironmentName(name=name, description=about, workloads=names))
        return Environments(environments=found, budget=budget_state(self.workplace))

    def show_environment(self, environment: Name, space: Space = None) -> EnvironmentInfo:
        """Show an environment: parameters with values, rules, metrics with units, workloads.

        Read it before evaluate or run_experiment: it has the names that they take. Free.
        """
        _, cls = self.workplace.environment(environment)
        spaces = cls.spaces()
        if space is not None and space not in spaces:
            raise UnknownNameError("space", space, spaces)
        chosen = spaces[space] if space is not None else next(iter(spaces.values()))
        about, docs = space_json(chosen), cls.argument_docs()
        return EnvironmentInfo(
            environment=environment,
            description=_first_line(cls.__doc__),
            parameters=about["parameters"],
            rules=about["rules"],
            legal_designs=about["legal_designs"],
            metrics=[MetricInfo(**metric_json(metric)) for metric in cls.metrics],
            default_objective=Objective.parse(cls.default_objective).to_json(),
            baseline=dict(cls.baseline),
            workload=str(cls.default_workload or ""),
            workloads=dict(cls.workloads()),
            spaces=list(spaces),
            simulators=simulators_of(self.workplace, cls),
            settings={name: docs.get(name, "") for name in own_arguments(cls, Environment)},
            caveats=[*cls.caveats, *cls.not_modelled],
        )

    def list_agents(self) -> Agents:
        """List the search algorithms that run_experiment can use. auto is a good first choice."""
        return Agents(
            agents={name: _first_line(agent_class(name).__doc__) for name in agent_names()}
        )

    def show_agent(
        self, agent: Annotated[str, Field(max_length=200, description="name, from list_agents")]
    ) -> AgentInfo:
        """Show the hyperparameters of a search algorithm; all of them have defaults."""
        if agent not in agent_names():
            raise UnknownNameError("agent", agent, agent_names())
        cls = agent_class(agent)
        schema = cls.Hyperparameters.model_json_schema()
        return AgentInfo(
            name=agent,
            description=_first_line(cls.__doc__),
            hyperparameters=schema.get("properties", {}),
        )

    def evaluate(
        self,
        environment: Name,
        designs: Annotated[
            list[dict[str, Any]],
            Field(
                min_length=1,
                max_length=_MAX_DESIGNS,
                description="designs: parameter names and values; parameters that are left out "
                "have the value of the baseline, so [{}] is the baseline itself",
            ),
        ],
        workload: Workload = None,
        objective: ObjectiveText = None,
        space: Space = None,
        fixed: Fixed = None,
        simulator: Simulator = None,
        settings: SettingValues = None,
    ) -> Evaluation:
        """Simulate designs and give their metrics beside those of the baseline design.

        Each new legal design costs one of the budget. The first evaluation of an environment may
        take a minute, for compilation.
        """
        spec, cls = self.workplace.environment(environment)
        given = chosen_arguments(
            self.workplace,
            cls,
            workload=workload,
            objective=objective,
            space=space,
            fixed=fixed,
            simulator=simulator,
            settings=settings,
        )
        with self._lock:
            return self._evaluations.evaluate(spec, given, designs)

    def list_results(self) -> Results:
        """List what was recorded: runs of experiments, and evaluations; and the budget."""
        found = {
            name: "run" if path.parent.name == RUNS else "evaluations"
            for name, path in self.workplace.results().items()
        }
        return Results(
            folder=str(self.workplace.folder), results=found, budget=budget_state(self.workplace)
        )

    def best_designs(self, name: ResultName) -> BestDesigns:
        """Show the best design of each problem in a result, with metrics and the baseline's."""
        return best_designs(name, self.workplace.result(name))

    def run_status(self, name: ResultName) -> RunState:
        """Show how far a run of run_experiment is."""
        return run_state(self.workplace, name, self.workplace.result(name))

    def make_report(self, name: ResultName) -> Report:
        """Write a report of a result for the person: one HTML page with charts and tables."""
        return made_report(self.workplace.result(name))

    def running(
        self,
        name: str,
        environment: str,
        agents: list[str | dict[str, Any]],
        budget: int,
        seeds: int,
        **choices: Any,
    ) -> Running:
        """An experiment that is to run; see :class:`archgym.assistant.runs.Running`."""
        spec, cls = self.workplace.environment(environment)
        given = chosen_arguments(self.workplace, cls, **choices)
        own = {k: v for k, v in given.items() if k not in _KEYS}
        entry = {"id": spec, **{k: v for k, v in given.items() if k in _KEYS}, "arguments": own}
        return Running(self.workplace, name, entry, agents, budget, seeds)


_KEYS: Final = ("workload", "objective", "space", "fixed", "simulator")


def _first_line(doc: str | None) -> str:
    return " ".join((doc or "").strip().split("\n\n")[0].split()).replace("``", "")
