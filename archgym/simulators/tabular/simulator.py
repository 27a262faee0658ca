"""``simulator="tabular:PATH"``: a table in place of a simulator."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from archgym.errors import (
    DatasetError,
    InvalidValueError,
    NotCoveredError,
    SimulationError,
    UnknownNameError,
)
from archgym.problem import DesignProblem, Metric, Objective, Status
from archgym.problem.scoring import Scorer
from archgym.problem.simulator import SimulationResult
from archgym.simulators.compatibility import differences
from archgym.simulators.tabular.optimum import Optimum, find_optimum, given_metrics
from archgym.simulators.tabular.table import Table
from archgym.space import Designs, DesignSpace
from archgym.space.designs import MISSING, recoded

PREFIX = "tabular:"
TABLE_FILE = "table.parquet"
"""Name of the table in a folder of ``archgym enumerate``."""
_ENDING = ".parquet"


class TableFile:
    """A table in the simulator's place; see :class:`archgym.simulators.resolve.SimulatorFile`.

    Args:
        path: a file, a folder of ``archgym enumerate``, or the name of a table that ships.

    Raises:
        UnknownNameError, InvalidValueError, DatasetError: as :func:`table_named`.
    """

    kind = "table"

    def __init__(self, path: str) -> None:
        self._label = f"{PREFIX}{path}"
        self._table = table_named(self._label)
        header = self._table.header
        self.environment, self.arguments = header.environment, header.arguments
        self.space: str | DesignSpace = header.space
        self.workload: tuple[Any, str] | None = (header.workload, header.workload_sha256)
        spec = header.workload if isinstance(header.workload, Mapping) else {}
        parts = (value for value in spec.values() if isinstance(value, str))
        self.workload_names = (header.workload_name, *parts)

    def differences(self, problem: DesignProblem) -> list[str]:
        """The differences that make the table unusable for an environment."""
        header = self._table.header
        found = differences(self.kind, problem, header.space, header.settings, header.metrics)
        if problem.workload_sha256 != header.workload_sha256:
            found.append(
                f"the table is of workload {header.workload_name!r} "
                f"(sha256 {header.workload_sha256[:12]}), not {problem.workload_name!r} "
                f"({problem.workload_sha256[:12]})"
            )
        return found

    def simulator(self, problem: DesignProblem) -> TabularSimulator:
        """Serves the table; warns once if another version of the simulator made it."""
        made_by = self._table.header.simulator
        if made_by["name"] == "embedded" and made_by["version"] != problem.version:
            _warn_once(self._label, made_by["version"], problem.version)
        return TabularSimulator(self._table)


class TabularSimulator:
    """Serves the outcomes of a table.

    Args:
        table: the table.
    """

    name = "tabular"

    def __init__(self, table: Table) -> None:
        made_by = table.header.simulator
        self.table = table
        self.version = f"{made_by['name']}-{made_by['version']}/{table.fingerprint}"
        self.metric_names = table.metric_names

    def simulate(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Looks designs up."""
        began = time.perf_counter()
        table, own = self.table, self.table.header.space
        positions = own.rank(designs)
        held = np.maximum(positions, 0)
        values = table.values(held, self.metric_names)
        results: list[SimulationResult] = [
            dict(zip(self.metric_names, row, strict=True)) for row in values.tolist()
        ]
        if np.isnan(values).any():
            results = [given_metrics(self.metric_names, row) for row in values.tolist()]
        failure = np.where(positions < 0, -1, table.failure[held])
        for i in np.flatnonzero(failure).tolist():
            if positions[i] < 0:
                why = self._missing(designs[i : i + 1])
                results[i] = NotCoveredError(f"the table does not hold this design: {why}")
            else:
                results[i] = _error(*table.failures[failure[i]])
        each = (time.perf_counter() - began) / max(1, len(results))
        return [(result, each) for result in results]

    def _missing(self, design: Designs) -> str:
        """Why the table does not hold a design, a batch of one."""
        own = self.table.header.space
        (codes,) = recoded(design, own).tolist()
        for name, code in zip(own.names, codes, strict=True):
            if code == MISSING:
                return f"{name}={design[0][name]!r} is excluded there"
        return own.illegal_reason(codes) or "it is not canonical"

    def optimum(
        self, space: DesignSpace, objective: Objective, metrics: Sequence[Metric], baseline: bytes
    ) -> Optimum | None:
        """The exact best design; ``None`` with several goals, or if nothing is feasible.

        Args:
            space: which designs count.
            objective: what is sought.
            metrics: all metrics of the environment.
            baseline: of the baseline design, the float64 values of ``metrics``.
        """
        return _optimum(self.table, space, objective, tuple(metrics), baseline)


@functools.lru_cache(maxsize=64)
def _optimum(
    table: Table,
    space: DesignSpace,
    objective: Objective,
    metrics: tuple[Metric, ...],
    baseline: bytes,
) -> Optimum | None:
    return find_optimum(table, space, Scorer(objective, metrics, np.frombuffer(baseline)))


def table_named(simulator: str) -> Table:
    """The table that ``tabular:PATH`` names; read once as long as the file stays as it is.

    Args:
        simulator: the prefix, then a file, a folder of ``archgym enumerate``, or the name of a
            table that comes with archgym.

    Raises:
        UnknownNameError, DatasetError: if there is no such table, or it cannot be read.
    """
    text = simulator.removeprefix(PREFIX)
    if not text:
        raise InvalidValueError(f"simulator {simulator!r} names no table: write tabular:PATH")
    path = Path(text)
    if path.is_dir():
        path /= TABLE_FILE
        if not path.exists():
            raise DatasetError(
                f"{text} holds no {TABLE_FILE}: its enumeration has not been finished"
                if (path.parent / "enumeration.json").exists()
                else f"{text} holds no {TABLE_FILE}"
            )
    if not path.is_file():
        shipped = shipped_tables()
        if text in shipped:
            path = shipped[text]
        elif path.parent == Path() and path.suffix != _ENDING:
            raise UnknownNameError("table (and there is no such file)", text, shipped)
        else:
            raise DatasetError(f"there is no table {path}")
    stat = path.stat()
    return _load(path.absolute(), stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=8)
def _load(path: Path, changed_ns: int, size: int) -> Table:
    return Table.load(path)


def shipped_tables() -> dict[str, Path]:
    """The tables that come with archgym, by name."""
    folder = resources.files("archgym").joinpath("datasets")
    with resources.as_file(folder) as found:
        files = [*found.glob(f"*{_ENDING}"), *found.glob(f"*/tables/*{_ENDING}")]
        return {path.stem: path for path in sorted(files, key=lambda path: path.stem)}


def _error(status: int, reason: str) -> SimulationResult:
    if status == Status.ILLEGAL:
        return NotCoveredError(reason)
    return TimeoutError(reason) if status == Status.TIMEOUT else SimulationError(reason)


@functools.cache
def _warn_once(label: str, made_by: str, here: str) -> None:
    warnings.warn(
        f"{label} was made by version {made_by} of the embedded simulator, this is version "
        f"{here}: what it gives may differ from what the simulator gives now",
        stacklevel=4,
    )
