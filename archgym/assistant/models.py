"""What tools give: typed, with units, so that an assistant needs no page to read it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

__all__ = [
    "AgentInfo",
    "Agents",
    "BestDesign",
    "BestDesigns",
    "BudgetState",
    "EnvironmentInfo",
    "EnvironmentName",
    "Environments",
    "Evaluated",
    "Evaluation",
    "MetricInfo",
    "MetricValue",
    "Report",
    "Results",
    "RunState",
]


class BudgetState(BaseModel):
    """The budget of the folder, in simulated designs."""

    total: int = Field(description="designs that may be simulated in this folder")
    spent: int = Field(description="designs simulated so far, in earlier sessions too")
    left: int


class EnvironmentName(BaseModel):
    """An environment."""

    name: str
    description: str
    workloads: list[str] = Field(description="names for the argument workload; may be empty")


class Environments(BaseModel):
    """All environments that may be used."""

    environments: list[EnvironmentName]
    budget: BudgetState


class MetricInfo(BaseModel):
    """A metric."""

    name: str
    unit: str = Field(description="empty for a share, rate or count")
    better: str = Field(description="smaller or larger")
    doc: str


class EnvironmentInfo(BaseModel):
    """Everything that designs and objectives of an environment can be made of."""

    environment: str
    description: str
    parameters: list[dict[str, Any]] = Field(
        description="name, kind, values or low and high, unit, doc; acts_when: the condition under "
        "which the parameter acts, and otherwise may be left out"
    )
    rules: list[dict[str, str]] = Field(description="laws that legal designs keep")
    legal_designs: float | None = Field(description="how many there are; null: not countable")
    metrics: list[MetricInfo]
    default_objective: dict[str, Any]
    baseline: dict[str, Any] = Field(description="design that others are compared with")
    workload: str = Field(description="the default workload")
    workloads: dict[str, str]
    spaces: list[str]
    simulators: list[str]
    settings: dict[str, str] = Field(description="further settings, and what they can be")
    caveats: list[str] = Field(description="what the model leaves out")


class AgentInfo(BaseModel):
    """A search algorithm."""

    name: str
    description: str
    hyperparameters: dict[str, Any] = Field(description="JSON Schema of each, with its default")


class Agents(BaseModel):
    """Search algorithms; auto is the one to begin with."""

    agents: dict[str, str] = Field(description="name and description")


class MetricValue(BaseModel):
    """A metric of a design."""

    value: float | None
    unit: str
    better: str = Field(description="smaller or larger")
    baseline: float | None = Field(description="value of the baseline design")


class Evaluated(BaseModel):
    """The outcome of a design."""

    design: dict[str, Any] = Field(description="parameters that act, with their values")
    status: str = Field(description="ok, illegal (breaks a rule; free), failed or timeout")
    feasible: bool = Field(description="ok and within all limits of the objective")
    reward: float = Field(description="larger is better; the baseline has 0.5, infeasible below 0")
    reason: str = Field(description="why it is not ok or not feasible")
    metrics: dict[str, MetricValue]
    known: bool = Field(description="evaluated before, so that it cost nothing")
    caveats: list[str] = Field(description="what the metrics do not show of this design")


class Evaluation(BaseModel):
    """Outcomes of designs, in their order."""

    outcomes: list[Evaluated]
    not_evaluated: int = Field(description="designs at the end for which no budget was left")
    recorded_in: str = Field(description="name of the result, for best_designs and make_report")
    budget: BudgetState


class RunState(BaseModel):
    """An experiment, now."""

    name: str
    state: str = Field(description="running, finished, interrupted or not begun")
    trials: dict[str, int] = Field(description="number of trials by state")
    simulations: int
    best: list[str] = Field(description="the best values so far, with units, by problem")
    message: str = ""
    budget: BudgetState


class BestDesign(BaseModel):
    """The best design that was found for a problem."""

    environment: str
    workload: str
    objective: dict[str, Any]
    agent: str
    seed: int | None
    trials: int
    simulations: int = Field(description="in all trials of the problem")
    design: dict[str, Any]
    feasible: bool
    metrics: dict[str, MetricValue]
    changes: dict[str, Any] = Field(description="parameters that differ from the baseline")
    front: list[dict[str, Any]] = Field(description="with several goals: designs and goals of the "
                                        "Pareto set")  # fmt: skip
    command: str = Field(description="a line for a shell that evaluates the design again")


class BestDesigns(BaseModel):
    """The best design of each problem of a result."""

    name: str
    problems: list[BestDesign]


class Results(BaseModel):
    """What is in the folder."""

    folder: str
    results: dict[str, str] = Field(description="name, and whether it is a run or evaluations")
    budget: BudgetState


class Report(BaseModel):
    """A report: one HTML page."""

    path: str = Field(description="the page, for the person to open in a browser")
    trials: int
