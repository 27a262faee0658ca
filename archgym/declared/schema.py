"""The form of a file that declares an environment, as typed models that also give a JSON Schema."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from archgym.declared.places.entry import WhereEntry
from archgym.problem.metrics import Direction

__all__ = [
    "Declaration",
    "FailureEntry",
    "FidelityEntry",
    "FileEntry",
    "MetricEntry",
    "NoiseEntry",
    "ParameterEntry",
    "PartialEntry",
    "StageEntry",
    "WorkloadEntry",
]

Scalar = str | int | float | bool
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Seconds = Annotated[float, Field(gt=0, le=1e8, allow_inf_nan=False)]
Megabytes = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Take = Literal["first", "last", "sum", "mean", "min", "max"]
Across = Literal["mean", "geometric_mean", "worst", "sum"]

PARAMETER_KINDS = (
    "values",
    "choices",
    "integer",
    "real",
    "powers_of_two",
    "boolean",
    "permutation",
)
"""Keys of a parameter of which there is exactly one."""
READINGS = ("regex", "key", "json", "csv", "xml", "formula", "seconds", "file_size")
"""Keys of a metric of which there is exactly one."""
CONTENTS = ("text", "template", "copy", "edit")
"""Keys of a file of which there is exactly one."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)

    def given(self, names: tuple[str, ...]) -> list[str]:
        """Those of some fields that have a value."""
        return [name for name in names if getattr(self, self.field_of(name)) is not None]

    @classmethod
    def field_of(cls, key: str) -> str:
        """The field behind a key of the file."""
        aliases = {field.alias: name for name, field in cls.model_fields.items() if field.alias}
        return aliases.get(key, key)


class ParameterEntry(_Model):
    """One knob: one of the kinds, and its value in the baseline design."""

    values: list[Any] | None = Field(
        default=None, min_length=1, description="a list of values in their order"
    )
    choices: list[Any] | None = Field(
        default=None, min_length=1, description="a list of values without an order"
    )
    integer: list[int] | None = Field(
        default=None, min_length=2, max_length=2, description="[low, high], both included"
    )
    real: list[float] | None = Field(
        default=None, min_length=2, max_length=2, description="[low, high]"
    )
    powers_of_two: list[int] | None = Field(
        default=None, min_length=2, max_length=2, description="[low, high], both powers of two"
    )
    boolean: Literal[True] | None = Field(default=None, description="true: it is true or false")
    permutation: list[str] | None = Field(
        default=None, min_length=1, description="items, of which it is an order"
    )
    baseline: Any = Field(description="its value in the design that others are compared with")
    step: int | None = Field(default=None, ge=1, description="of an integer; 1 if left out")
    log: bool = Field(default=False, description="whether a real one is on a logarithmic scale")
    unit: str = Field(default="", description="unit of the value")
    doc: str = Field(default="", description="what it does, in a line")
    when: str | None = Field(
        default=None, description="condition on parameters above it under which it acts"
    )
    when_inactive: Any = Field(
        default=None, description="what templates and expressions see where it does not act"
    )
    group: str = Field(default="", description="name of the group that it belongs to")


class WorkloadEntry(_Model):
    """What the hardware runs: values for the templates, and files."""

    values: dict[Name, Scalar] = Field(
        default_factory=dict, description="name: value, for templates and formulas"
    )
    files: dict[Name, str] = Field(
        default_factory=dict,
        description="name: path beside this file; templates see the absolute path, and the "
        "content is a part of what results are kept under",
    )
    weight: float = Field(
        default=1, gt=0, allow_inf_nan=False, description="in metrics over several workloads"
    )
    held_out: bool = Field(
        default=False, description="whether searches leave it out; evaluate it as held_out"
    )
    doc: str = Field(default="", description="what it is, in a line")


class FileEntry(_Model):
    """One file that is written before a stage runs."""

    path: str = Field(description="where it is written, inside the folder of the run")
    text: str | None = Field(default=None, description="its content, a template")
    template: str | None = Field(default=None, description="path of a template beside this file")
    copy_: str | None = Field(
        default=None, alias="copy", description="path of a file beside this one, taken as it is"
    )
    edit: str | None = Field(
        default=None, description="path of a JSON, YAML, INI or XML file of which values are set"
    )
    set: dict[str, Any] | None = Field(
        default=None, description="path in the edited file: value; a text is a template"
    )
    format: Literal["json", "yaml", "ini", "xml"] | None = Field(
        default=None, description="of the edited file; its ending says it if left out"
    )
    stage: str | None = Field(
        default=None, description="the stage with 'uses' that it is for; the run's folder if not"
    )


class StageEntry(_Model):
    """One command, run without a shell."""

    run: list[str] = Field(
        min_length=1, description="the program and its arguments; each is a template"
    )
    uses: list[str] | None = Field(
        default=None,
        description="names of the only values that it sees: it runs once for equal ones, in a "
        "folder of its own that later stages see as folder.STAGE",
    )
    checkpoint: str | None = Field(
        default=None,
        min_length=1,
        description="file or folder that it leaves at a lower fidelity and goes on from at a "
        "higher one; templates see resumed_from, the fidelity that it is of",
    )
    time_limit_s: Seconds = Field(default=3600, description="s; then the design is a timeout")
    memory_limit_mb: Megabytes | None = Field(
        default=None, description="address space of each process, MB (10^6 bytes)"
    )
    output_limit_mb: Megabytes = Field(default=16, description="what it may print, MB")
    file_limit_mb: Megabytes = Field(default=8000, description="size of any file it writes, MB")
    good_exit_codes: list[Annotated[int, Field(ge=0, le=255)]] = Field(
        default_factory=lambda: [0], description="exit codes of a success"
    )
    env: dict[str, str] = Field(
        default_factory=dict, description="environment variables; each value is a template"
    )
    where: WhereEntry | None = Field(
        default=None, description="host or a container; that of the declaration if left out"
    )


class MetricEntry(_Model):
    """One number of the output: one way to read it, its unit and which way is better."""

    regex: str | None = Field(
        default=None, description="regular expression; the group 'value', the first one, or all"
    )
    key: str | None = Field(
        default=None, description="KEY of lines such as KEY = VALUE or KEY: VALUE"
    )
    json_: str | None = Field(
        default=None, alias="json", description="path such as stats.caches[0].misses or runs[*].ms"
    )
    csv: str | None = Field(default=None, description="name of a column")
    xml: str | None = Field(
        default=None, description="path such as cpu/stat[@name='ipc']/@value, or of an element"
    )
    formula: str | None = Field(
        default=None, description="expression of metrics above it, parameters and derived values"
    )
    seconds: str | None = Field(default=None, description="name of a stage: how long it took")
    file_size: str | None = Field(default=None, description="path of a file: its size in bytes")
    source: str = Field(
        default="stdout", alias="from", description="stdout, stderr, or the path of a file"
    )
    stage: str | None = Field(
        default=None, description="whose output or file it is; the last stage if left out"
    )
    take: Take = Field(default="last", description="which of several matches")
    where: dict[str, Scalar] = Field(
        default_factory=dict, description="column: value, which rows of a csv"
    )
    separator: str = Field(default=",", min_length=1, max_length=1, description="of a csv")
    unit: str = Field(
        default="",
        description="of the metric; its name ends in it; s of seconds and B of file_size if left "
        "out",
    )
    read_unit: str | None = Field(
        default=None, description="unit in the output, where it is another one"
    )
    goal: Direction = Field(default="minimize", description="minimize or maximize: what is better")
    doc: str = Field(default="", description="what is measured, in a line")
    signed: bool = Field(default=False, description="whether it may be below zero")
    optional: bool = Field(default=False, description="whether an output without it is well")
    over_workloads: Across = Field(
        default="mean", description="mean, geometric_mean, worst or sum over several workloads"
    )

    @model_validator(mode="before")
    @classmethod
    def _unit_of_what_is_known(cls, data: Any) -> Any:
        if isinstance(data, dict) and "unit" not in data:
            for key, unit in (("seconds", "s"), ("file_size", "B")):
                if key in data:
                    return {**data, "unit": unit}
        return data


class FailureEntry(_Model):
    """A text in the output of a stage that says how the design ended."""

    text: str | None = Field(default=None, min_length=1, description="a part of a line")
    regex: str | None = Field(default=None, min_length=1, description="a regular expression")
    means: Literal["illegal", "failed", "retry"] = Field(
        description="illegal: the simulator does not take this design; failed; retry: such as a "
        "licence that is taken"
    )
    stage: str | None = Field(default=None, description="in whose output; any if left out")
    times: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=3, description="of retry: how often the stage is run again"
    )
    wait_s: Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)] = Field(
        default=10, description="of retry: seconds before each"
    )


class FidelityEntry(_Model):
    """A part of the full simulation at a part of its cost."""

    value: float = Field(description="how much is simulated, above 0 and up to 1")
    cost: float = Field(description="share of the full simulation's cost")
    values: dict[Name, Scalar] = Field(
        min_length=1, description="name: value, for templates and formulas; each has the same names"
    )
    doc: str = Field(default="", description="what it means")


class NoiseEntry(_Model):
    """How often a design is run, where runs differ."""

    repeats: Annotated[int, Field(ge=2, le=1000)] = Field(
        description="runs of a design; each metric is their median"
    )
    spread: list[str] | None = Field(
        default=None,
        description="metrics whose spread is a metric too, NAME_spread_share: the standard "
        "deviation over the median; those of the objective if left out",
    )


class PartialEntry(_Model):
    """What a stage says while it runs: how far it is; metrics are read from the same text."""

    regex: str | None = Field(
        default=None,
        min_length=1,
        description="regular expression of a line; the group 'value', or the first one, is how "
        "far the run is",
    )
    counts: str | None = Field(
        default=None,
        min_length=1,
        description="regular expression; each line that matches is one step",
    )
    of: Scalar = Field(
        default=1,
        description="the number, or a formula of it, at which the run is at its end: 1 for "
        "fractions, 100 for percent",
    )
    source: str = Field(
        default="stdout", alias="from", description="stdout, stderr, or the path of a file"
    )
    stage: str | None = Field(
        default=None, description="whose output or file it is; the last stage if left out"
    )
    metrics: dict[Name, str] = Field(
        default_factory=dict,
        description="metric: regular expression, where a metric is read in another way than at "
        "the end; its unit is then that of the metric",
    )
    at: list[Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]] = Field(
        default_factory=lambda: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
        min_length=1,
        max_length=100,
        description="shares of the run at which metrics are looked at",
    )


class Declaration(_Model):
    """An environment around any program."""

    description: str = Field(default="", description="what it is, in a line")
    install: str = Field(default="", description="how to get the program, for messages")
    parameters: dict[Name, ParameterEntry] = Field(min_length=1, description="the knobs, by name")
    derived: dict[Name, Scalar] = Field(
        default_factory=dict, description="name: an expression of parameters and names above it"
    )
    rules: dict[Name, str] = Field(
        default_factory=dict, description="name: an expression that every legal design keeps"
    )
    workloads: dict[Name, WorkloadEntry] = Field(default_factory=dict)
    files: list[FileEntry] = Field(default_factory=list)
    stages: dict[Name, StageEntry] = Field(
        default_factory=dict,
        description="the commands, by name, in their order; without any, and without readings of "
        "metrics, a program simulates through archgym serve",
    )
    metrics: dict[Name, MetricEntry] = Field(
        min_length=1, description="the numbers in the output, by name"
    )
    objective: str | dict[str, Any] | None = Field(
        default=None,
        description="as in an experiment; the first metric's goal if left out",
    )
    failures: list[FailureEntry] = Field(default_factory=list)
    fidelities: list[FidelityEntry] = Field(
        default_factory=list, description="ascending; the last one has value and cost 1"
    )
    noise: NoiseEntry | None = None
    partial: PartialEntry | None = Field(
        default=None, description="how a search sees metrics while the program runs"
    )
    version: list[str] = Field(
        default_factory=list,
        description="a command that prints the program's version, a part of what results are "
        "kept under; or a text",
    )
    where: WhereEntry | None = Field(
        default=None, description="host (as if left out) or a container: where commands run"
    )
    inputs: list[str] = Field(
        default_factory=list,
        description="further files beside this one that commands read; results depend on them; "
        "in a name, * stands for any part",
    )
    keep: Literal["never", "failed", "always"] = Field(
        default="never", description="which folders of runs stay, in archgym-kept"
    )

    @field_validator("version", mode="before")
    @classmethod
    def _text_or_command(cls, value: Any) -> Any:
        if value is not None and not isinstance(value, str | list):
            raise ValueError(
                f"allowed is a text, as '{value!s:.40}', or a command, as [gcc, --version]"
            )
        return ["", value] if isinstance(value, str) else value

    @field_validator("objective", mode="before")
    @classmethod
    def _plain_objective(cls, value: Any) -> Any:
        """Checked here: a union of types would give a message for each of them."""
        if value is not None and not isinstance(value, str | dict):
            raise ValueError("allowed is 'minimize METRIC', 'maximize METRIC' or a mapping")
        return value
