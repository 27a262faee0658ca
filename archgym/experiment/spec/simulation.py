"""The ``simulation`` settings of an experiment file: where and how designs are simulated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from archgym.simulators.executor import Attempts

__all__ = ["SimulationSettings"]

_LARGEST = (1 << 63) - 1
_Positive = Annotated[int, Field(ge=1, le=_LARGEST, strict=True)]
_KINDS = {
    "log_normal": {"median": "above 0", "sigma": "at least 0", "seed": "an integer"},
    "uniform": {"low": "above 0", "high": "above low", "seed": "an integer"},
    "metric": {"name": "a metric", "times": "above 0"},
}
_FORMS = (
    "allowed are seconds above 0, the name of a metric that holds seconds, "
    "{metric: {name: NAME, times: FACTOR}}, {log_normal: {median: S, sigma: 1, seed: 0}} or "
    "{uniform: {low: S, high: S, seed: 0}}"
)


class SimulationSettings(BaseModel):
    """How designs are simulated; for simulators of a second or more."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    workers: _Positive | None = Field(
        default=None,
        description="simulations of a trial that run at a time, in processes, through Ray where "
        "it runs; one, in the trial's own process, if left out; with executor: workers as many as "
        "there are workers",
    )
    executor: Literal["processes", "workers"] = Field(
        default="processes",
        description="what simulates: processes that archgym starts on this machine or through Ray, "
        "or workers that you start by archgym worker DIR on any machine that sees the folder",
    )
    lease_s: float = Field(
        default=30.0,
        ge=0.5,
        le=1e9,
        allow_inf_nan=False,
        description="with executor: workers: seconds without a sign of life after which a worker "
        "is given up and its designs go to others",
    )
    asynchronous: bool = Field(
        default=True,
        description="with several workers: whether agents propose a design whenever a worker is "
        "free; if not, they propose batches, whose result does not depend on timing",
    )
    time_limit_s: float | None = Field(
        default=None,
        gt=0,
        le=1e9,
        allow_inf_nan=False,
        description="seconds after which a design's simulation is ended, with status timeout",
    )
    retries: Annotated[int, Field(ge=0, le=_LARGEST, strict=True)] = Field(
        default=1,
        description="how often a simulation that failed or died is tried again; needs workers "
        "or time_limit_s, but for the baseline design, which is tried again after a time limit too",
    )
    stop_early: bool = Field(
        default=False,
        description="whether the simulation of a design is ended whose metrics so far show that it "
        "is clearly worse than the best; for environments that give metrics on the way",
    )
    cache: str = Field(
        default="",
        description="file that keeps results for other trials and runs; made if it is not there",
    )
    cpus: float = Field(default=1, ge=0, description="CPUs that Ray sets aside for each worker")
    gpus: float = Field(default=0, ge=0, description="GPUs that Ray sets aside for each worker")
    memory_gb: float = Field(
        default=0, ge=0, description="memory that Ray sets aside for each worker, GB (10^9 bytes)"
    )
    resources: dict[str, Annotated[float, Field(gt=0)]] = Field(
        default_factory=dict,
        description="what else Ray sets aside for each worker, by the name that the cluster gives "
        "it, such as the licence of a tool: {synthesis_licence: 1}",
    )
    clock: Literal["real", "simulated"] = Field(
        default="real",
        description="simulated: designs are looked up or simulated at once, in the trial's own "
        "process, and recorded as if each had taken its duration on one of the workers",
    )
    duration: Any = Field(
        default=None,
        description="how long a design takes on the simulated clock: seconds, a metric, "
        "{log_normal: {median, sigma, seed}} or {uniform: {low, high, seed}}",
    )

    @property
    def attempts(self) -> Attempts:
        """Time limit and retries as an executor takes them."""
        return Attempts(self.time_limit_s, self.retries)

    @property
    def simulated(self) -> bool:
        """Whether the clock is simulated."""
        return self.clock == "simulated"

    @property
    def leased(self) -> bool:
        """Whether workers simulate that others start."""
        return self.executor == "workers"

    @property
    def elsewhere(self) -> bool:
        """Whether an executor simulates, and not the trial's own process."""
        return self.leased or self.workers is not None or self.time_limit_s is not None

    @property
    def several(self) -> bool:
        """Whether several designs of a trial may be simulated at a time."""
        return (self.workers is None and self.leased) or (self.workers or 1) > 1

    @property
    def processes(self) -> int:
        """Processes that archgym starts beside a trial's own, to simulate for it."""
        return 0 if self.simulated or self.leased else self.workers or 0

    @property
    def for_ray(self) -> dict[str, Any]:
        """What Ray sets aside for a worker, as options of an actor."""
        options: dict[str, Any] = {"num_cpus": self.cpus, "num_gpus": self.gpus}
        if self.memory_gb:
            options["memory"] = int(self.memory_gb * 1e9)
        return {**options, "resources": dict(self.resources)} if self.resources else options

    @property
    def bundle(self) -> dict[str, float]:
        """The same as Ray's placement groups name it."""
        named = {"CPU": self.cpus, "GPU": self.gpus, "memory": float(int(self.memory_gb * 1e9))}
        return {name: value for name, value in {**named, **self.resources}.items() if value}

    @field_validator("duration")
    @classmethod
    def _known_form(cls, value: Any) -> Any:
        """Checked here: a union of types would give a message for each of them."""
        if value is None or (isinstance(value, str) and value):
            return value
        if isinstance(value, Mapping):
            return _checked_mapping(value)
        if _is_number(value) and value > 0:
            return float(value)
        raise ValueError(_FORMS)

    @model_validator(mode="after")
    def _clock_and_duration(self) -> SimulationSettings:
        if self.simulated and self.duration is None:
            raise ValueError(f"clock: simulated needs a duration: {_FORMS}")
        if not self.simulated and self.duration is not None:
            raise ValueError("a duration needs clock: simulated")
        if self.simulated and self.leased:
            raise ValueError("clock: simulated needs no workers of others: leave executor out")
        if self.simulated and self.stop_early:
            raise ValueError("clock: simulated takes no stop_early: nothing takes long")
        if self.simulated and self.cache:
            raise ValueError("clock: simulated takes no cache: nothing takes long")
        return self


def _checked_mapping(value: Mapping[Any, Any]) -> dict[str, dict[str, Any]]:
    kind = next(iter(value), None)
    given = value.get(kind)
    if len(value) != 1 or kind not in _KINDS or not isinstance(given, Mapping):
        raise ValueError(_FORMS)
    for name in given:
        if name not in _KINDS[kind]:
            raise ValueError(f"{kind} has no {name!r}; it takes {', '.join(_KINDS[kind])}")
    if kind == "metric":
        times = given.get("times", 1.0)
        sound = isinstance(given.get("name"), str) and _is_number(times) and times > 0
    else:
        seed = given.get("seed", 0)
        sound = isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0
        first, second = list(_KINDS[kind])[:2]
        low, high = given.get(first), given.get(second, 1.0 if kind == "log_normal" else None)
        if sound and _is_number(low) and _is_number(high) and low is not None and high is not None:
            sound = low > 0 and (high >= 0 if kind == "log_normal" else high > low)
        else:
            sound = False
    if not sound:
        needs = ", ".join(f"{name} ({what})" for name, what in _KINDS[kind].items())
        raise ValueError(f"{kind} takes {needs}")
    return {kind: dict(given)}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
