"""The form of an experiment file, as typed models that also give its JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from archgym.evaluation.recorder_protocol import Durability
from archgym.experiment.spec.folders import Folders
from archgym.experiment.spec.simulation import SimulationSettings
from archgym.reading.suggestions import did_you_mean

__all__ = [
    "AgentEntry",
    "BudgetEntry",
    "EnvironmentEntry",
    "Experiment",
    "Resources",
]

Design = dict[str, Any]
MAX_TRIALS = 10_000_000
"""Trials of an experiment above which it is refused: a list of more fills the memory."""
_LARGEST = (1 << 63) - 1  # in a column of a dataset
_MAX_HOURS = 1e9
Natural = Annotated[int, Field(ge=0, le=_LARGEST, strict=True)]
Positive = Annotated[int, Field(ge=1, le=_LARGEST, strict=True)]


def _listed(value: Any) -> Any:
    """A value, or a list of them, as a list."""
    return value if isinstance(value, list) else [value]


Excluded = dict[str, Annotated[list[Any], BeforeValidator(_listed, json_schema_input_type=Any)]]
"""Values by the name of their parameter, of which a file may give one alone."""
_OWN_KEYS = ("workload", "objective", "space", "fixed", "exclude", "include", "simulator")
"""Arguments of an environment that are keys of its entry."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EnvironmentEntry(_Model):
    """One environment on one or several workloads."""

    id: str = Field(
        description="a registered name, such as DRAM-v0, module:Class, or the path of a YAML file "
        "that declares an environment"
    )
    workload: Any = Field(
        default=None,
        description="a workload, or a list of them; the environment's default if left out",
    )
    held_out: Any = Field(
        default=None,
        description="a workload that is not searched: the best design of each trial is evaluated "
        "on it at the end, which reports show apart; a YAML file's own if left out",
    )
    objective: str | dict[str, Any] | None = Field(
        default=None,
        description="'minimize METRIC', or a mapping with minimize, maximize, product, target, "
        "limits, weights; the environment's default if left out",
    )
    space: str | None = Field(default=None, description="name of a design space of the environment")
    fixed: Design | None = Field(default=None, description="parameters held at a value")
    exclude: Excluded | None = Field(
        default=None,
        description="values that no design has, one or a list by parameter, as in "
        "{scheduler: fifo}; beside those that the environment excludes",
    )
    include: list[str] | None = Field(
        default=None,
        description="parameters that are searched over all their values, although the "
        "environment gives them or excludes some of their values (archgym show says which)",
    )
    simulator: str | None = Field(
        default=None, description="name of a simulator of the environment"
    )
    arguments: dict[str, Any] = Field(
        default_factory=dict, description="further constructor arguments of the environment"
    )
    name: str = Field(
        default="",
        pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$",
        description="what results call it; made from id and workload if left out",
    )
    initial: str | list[Design] = Field(
        default_factory=list,
        description="designs that searches evaluate first, after the baseline: a list, a CSV file, "
        "a folder of earlier runs or datasets, of which the ten best are taken, or `predicted`: "
        "the ten that the embedded simulator likes best, before another one is searched",
    )
    history: Folders = Field(
        default_factory=list,
        description="folders of earlier runs or datasets that searches learn from: of the same or "
        "a similar environment, whatever its workload, objective and limits; or proxies of many "
        "workloads (archgym proxy train --per workload-features), or shipped:NAME; one or a list",
    )
    agents: list[str] | None = Field(
        default=None,
        min_length=1,
        description="names of the agents that search it; all of them if left out",
    )
    least_random_draws: Positive | None = Field(
        default=None,
        description="refuse to run if random search is expected to need fewer draws than this "
        "to come within 1 % of the optimum; for tables, whose optimum is known",
    )

    @property
    def workloads(self) -> list[Any]:
        """The workloads as a list; ``None`` in it is the default workload."""
        return list(self.workload) if isinstance(self.workload, list) else [self.workload]

    def constructor_arguments(self, workload: Any) -> dict[str, Any]:
        """Keyword arguments that make the environment on one of the workloads."""
        given = {**{name: getattr(self, name) for name in _OWN_KEYS}, "workload": workload}
        return {**{k: v for k, v in given.items() if v is not None}, **self.arguments}

    def without(self, values: Mapping[str, list[Any]]) -> EnvironmentEntry:
        """The same entry, with more values excluded."""
        own = self.exclude or {}
        exclude = {name: [*own.get(name, []), *more] for name, more in values.items()}
        return self.model_copy(update={"exclude": {**own, **exclude}})

    @field_validator("initial", mode="before")
    @classmethod
    def _plain_initial(cls, value: Any) -> Any:
        """Checked here: a union of types would give a message for each of them."""
        listed = isinstance(value, list) and all(isinstance(one, Mapping) for one in value)
        if not (listed or (isinstance(value, str) and value)):
            raise ValueError(
                "allowed is a list of designs, each a mapping, the path of a CSV file or folder, "
                "or predicted"
            )
        return value

    @field_validator("workload")
    @classmethod
    def _some_workload(cls, value: Any) -> Any:
        if value == []:
            raise ValueError("list at least one workload")
        return value

    @field_validator("arguments")
    @classmethod
    def _not_twice(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if name in _OWN_KEYS:
                raise ValueError(f"{name} is a key of the entry itself, not of its arguments")
            if name == "record":
                raise ValueError("every trial is recorded in the output folder; record is not free")
            if name == "durable":
                raise ValueError("durable is a key of the experiment, not of an environment")
        return value


class AgentEntry(_Model):
    """One agent with one or many sets of hyperparameters."""

    name: str = Field(description="a registered name, such as ga, or module:Class")
    hyperparameters: dict[str, Any] = Field(
        default_factory=dict,
        description="name: a value; a list is a grid; {uniform: [low, high]}, {log_uniform: "
        "[low, high]}, {integer: [low, high]} and {choice: [...]} are distributions",
    )
    samples: Positive | None = Field(
        default=None,
        description="draws from the distributions, for each grid point",
    )


class Resources(_Model):
    """What a trial may use."""

    cpus_per_trial: float = Field(
        default=1, gt=0, allow_inf_nan=False, description="CPUs that Ray sets aside for a trial"
    )
    max_concurrent: Positive | None = Field(
        default=None,
        description="most trials at a time; as many as fit if left out",
    )


class BudgetEntry(_Model):
    """What a trial may spend, where that is not a number of designs alone."""

    designs: Positive | None = Field(
        default=None, description="distinct legal designs a trial simulates"
    )
    hours: float | None = Field(
        default=None,
        gt=0,
        le=_MAX_HOURS,
        allow_inf_nan=False,
        description="hours that the simulations of a trial take together; what is in flight then "
        "still ends",
    )


class Experiment(_Model):
    """Environments x agents x hyperparameters x seeds, with one budget."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="names the folder")
    description: str = Field(default="", description="what it is for")
    budget: Positive | BudgetEntry = Field(
        description="distinct legal designs a trial simulates; or {hours: 500}, hours that its "
        "simulations take together; or both, {designs: 1000, hours: 500}"
    )
    seeds: Positive | Annotated[list[Natural], Field(min_length=1)] = Field(
        default=1, description="seeds of the agents: a list, or n for 0, 1, ..., n-1"
    )
    seed: Natural = Field(
        default=0, description="seed of the draws from hyperparameter distributions"
    )
    baseline_first: bool = Field(
        default=True,
        description="whether each search evaluates the baseline design first, so that none ends "
        "below it; false compares agents without that help",
    )
    environments: list[EnvironmentEntry] = Field(min_length=1)
    agents: list[AgentEntry] = Field(min_length=1)
    history: Folders = Field(
        default_factory=list,
        description="as that of an environment, for all of them that can use it; each folder is of "
        "use to one environment at least",
    )
    library: str | None = Field(
        default=None,
        description="folder of a library of runs that archgym history made: searches learn from "
        "what is found there, and the run is added at its end; an empty text for none, whatever "
        "ARCHGYM_LIBRARY says",
    )
    resources: Resources = Field(default_factory=Resources)
    simulation: SimulationSettings = Field(default_factory=SimulationSettings)
    durable: Durability = Field(
        default="auto",
        description="when a row is on disk, so that a power cut does not take it: second (within "
        "a second), always (before the agent learns the outcome), auto (before the agent learns "
        "it if its simulation took a second or more)",
    )
    log: list[Literal["tensorboard", "mlflow"]] = Field(
        default_factory=list,
        description="where else a run is shown while it goes on, one or a list: tensorboard "
        "(in DIR/tensorboard) or mlflow (where MLFLOW_TRACKING_URI says, or in DIR/mlflow.db)",
    )

    @property
    def number_of_seeds(self) -> int:
        """How many seeds there are."""
        return self.seeds if isinstance(self.seeds, int) else len(self.seeds)

    @property
    def seed_list(self) -> list[int]:
        """The seeds, one by one."""
        return list(range(self.seeds)) if isinstance(self.seeds, int) else list(self.seeds)

    @property
    def designs(self) -> int | None:
        """Distinct legal designs that a trial simulates; ``None`` for no limit."""
        return self.budget if isinstance(self.budget, int) else self.budget.designs

    @property
    def hours(self) -> float | None:
        """Hours that the simulations of a trial take; ``None`` for no limit."""
        return None if isinstance(self.budget, int) else self.budget.hours

    @property
    def budget_text(self) -> str:
        """What a trial may spend, for people."""
        parts = [] if self.designs is None else [f"{self.designs:,} simulations"]
        parts += [] if self.hours is None else [f"{self.hours:,g} hours of simulation"]
        return " or ".join(parts)

    @field_validator("budget", mode="before")
    @classmethod
    def _plain_budget(cls, value: Any) -> Any:
        """Checked here: a union of types would give a message for each of them."""
        if isinstance(value, BudgetEntry) or (type(value) is int and 1 <= value <= _LARGEST):
            return value
        if type(value) is int:
            raise ValueError(f"allowed is at least 1 and at most {_LARGEST}")
        if not isinstance(value, Mapping):
            raise ValueError("allowed is an integer of at least 1, or a mapping as {hours: 500}")
        for name in value:
            if name not in BudgetEntry.model_fields:
                hint = did_you_mean(str(name), BudgetEntry.model_fields)
                raise ValueError(f"there is no {name!r}. {hint}")
        designs, hours = value.get("designs"), value.get("hours")
        if designs is None and hours is None:
            raise ValueError("give designs, hours or both")
        if designs is not None and not (type(designs) is int and 1 <= designs <= _LARGEST):
            raise ValueError(f"designs is an integer of at least 1 and at most {_LARGEST}")
        if hours is not None and not (type(hours) in (int, float) and 0 < hours <= _MAX_HOURS):
            raise ValueError(f"hours is a number above 0 and at most {_MAX_HOURS:g}")
        return value

    @field_validator("log", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("seeds", mode="before")
    @classmethod
    def _plain_seeds(cls, value: Any) -> Any:
        """Checked here: a union of types would give a message for each of them."""
        if type(value) is int:
            if not 1 <= value <= MAX_TRIALS:
                raise ValueError(f"a number of seeds is at least 1 and at most {MAX_TRIALS:,}")
        elif not isinstance(value, list) or not value:
            raise ValueError(
                "allowed is a list of integers of at least 0, or an integer n of at least 1"
            )
        elif not all(type(seed) is int and 0 <= seed <= _LARGEST for seed in value):
            raise ValueError(f"a seed is an integer of at least 0 and at most {_LARGEST}")
        elif len(set(value)) < len(value):
            raise ValueError("a seed is listed twice")
        return value

    def to_json(self) -> dict[str, Any]:
        """A mapping from which :func:`archgym.experiment.read_experiment` makes the same one."""
        return self.model_dump(mode="json", exclude_defaults=True)
