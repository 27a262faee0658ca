"""An autotuner's file as an environment: a design is a configuration, its result is looked up."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from archgym.environment.environment import Environment
from archgym.errors import NotCoveredError, SimulationError
from archgym.problem.simulator import SimulationResult
from archgym.reading.texts import text_of
from archgym.space import Designs
from archgym.tuning.file import Measured, TuningFile, read_tuning


class TuningEnvironment(Environment):
    """The base of the environments that :func:`tuning_class` makes; it is not made itself.

    A configuration that the file does not hold, or that broke the tuner's own constraints, is an
    illegal design and costs nothing; one that could not be compiled or run is a failed one.

    Attributes:
        tuning: what the file holds.
    """

    tuning: ClassVar[TuningFile]
    file_name: ClassVar[str]

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.file_name

    @property
    def warnings(self) -> list[str]:
        """Says that configurations have several results."""
        many = self.tuning.contradictions
        if not many:
            return []
        what = "1 configuration stands" if many == 1 else f"{many:,} configurations stand"
        return [f"{what} in the file several times with different results: the last one counts"]

    @property
    def metrics_given(self) -> tuple[str, ...]:
        """The metrics of the objective, and those that every valid configuration has.

        Others are missing where the tuner did not measure them.
        """
        valid = [one.metrics for one in self.tuning.measured if one.invalidity == "correct"]
        sought = self.objective.metric_names()
        names = [metric.name for metric in self.metrics]
        return tuple(n for n in names if n in sought or all(n in some for some in valid))

    @functools.cached_property
    def _by_design(self) -> dict[tuple[str, ...], Measured]:
        return {_key(one.design): one for one in self.tuning.measured}

    def simulate_batch(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Looks configurations up; each takes the seconds that it took the tuner."""
        found = [self._by_design.get(_key(design)) for design in designs]
        return [(_result(one), one.seconds if one else 0.0) for one in found]


def _key(design: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in sorted(design.items()))


def _result(measured: Measured | None) -> SimulationResult:
    if measured is None:
        return NotCoveredError("the file does not hold this configuration")
    match measured.invalidity:
        case "correct":
            return dict(measured.metrics)
        case "constraints":
            return NotCoveredError("the tuner's constraints exclude this configuration")
        case "timeout":
            return TimeoutError("the tuner's time limit")
    return SimulationError(f"the tuner noted: {measured.invalidity}")


def tuning_class(path: str | Path) -> type[TuningEnvironment]:
    """The environment of a cache file of Kernel Tuner or of T4 results.

    Equal files give the same class. The baseline is the first of the configurations that have
    a value of what was sought, and of most else.

    Raises:
        InvalidValueError: as :func:`archgym.tuning.file.read_tuning`.
    """
    absolute = Path(path).absolute()
    try:
        state = absolute.stat()
    except OSError:
        read_tuning(path)  # which says what is wrong
        raise
    return _made(absolute, state.st_mtime_ns, state.st_size, state.st_ino)


@functools.lru_cache(maxsize=16)
def _made(path: Path, *state: int) -> type[TuningEnvironment]:
    tuning = read_tuning(path)
    sought = [one for one in tuning.measured if tuning.goal in one.metrics]
    first = max(sought, key=lambda one: len(one.metrics))
    goal = next(metric for metric in tuning.metrics if metric.name == tuning.goal)
    return type(
        text_of(path.stem),
        (TuningEnvironment,),
        {
            "__doc__": f"Measured by an autotuner: {text_of(tuning.title)}.",
            "__module__": __name__,
            "tuning": tuning,
            "file_name": path.name,
            "design_space": tuning.space,
            "baseline": first.design,
            "metrics": tuning.metrics,
            "default_objective": f"{goal.direction} {goal.name}",
            "version": tuning.sha256[:16],
        },
    )


def import_tuning(path: str | Path, record: str | Path, *, agent: str = "") -> int:
    """Records what a tuner measured as a trial of a dataset, in the order of the file.

    A warning is given where configurations stand in the file with several results.

    >>> import json, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> cache = {"32": {"block": 32, "time": 2.5}, "64": {"block": 64, "time": 1.5}}
    >>> data = {"tune_params": {"block": [32, 64]}, "cache": cache}
    >>> _ = (folder / "sum.json").write_text(json.dumps(data), "utf-8")
    >>> import_tuning(folder / "sum.json", folder / "designs")
    2

    Args:
        path: a cache file of Kernel Tuner, or T4 results.
        record: folder of the dataset; made if it is not there.
        agent: name of who tuned; by default ``kernel_tuner`` or ``t4``, after the file's form.

    Returns:
        Number of rows.

    Raises:
        InvalidValueError: as :func:`archgym.tuning.file.read_tuning`.
        DatasetError: if the folder holds a dataset of something else.
    """
    made = tuning_class(path)
    env = made(record=record, agent=agent or made.tuning.tuner)
    try:
        for text in env.warnings:
            warnings.warn(f"{path}: {text}", stacklevel=2)
        designs = env.design_space.designs([one.design for one in made.tuning.measured])
        return len(env.evaluate_batch(designs))
    finally:
        env.close()
