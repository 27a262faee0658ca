"""The layout of a dataset: its sidecar, its columns, and rows on their way into columns."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from archgym.data.journal import FLIGHT_FIELDS, ROW_FIELDS
from archgym.errors import DatasetError
from archgym.problem.description import ProblemDescription
from archgym.problem.metrics import Metric, check_metrics
from archgym.problem.status import LABELS
from archgym.reading.files import JSON_LIMIT_BYTES, read_text
from archgym.reading.texts import text_of
from archgym.space import Categorical, Designs, DesignSpace, Ordinal, Parameter

FORMAT = 1
"""Version of the layout."""
SIDECAR = "dataset.json"
_MANY = 64  # designs from which on a space evaluates its rules on columns
_ARROW_TYPES = {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
"""Columns of parameters with numbers; those of all others are dictionaries of texts."""

TRIAL_FIELDS: dict[str, pa.DataType] = {
    "trial_id": pa.string(),
    "environment": pa.string(),
    "settings": pa.string(),
    "agent": pa.string(),
    "hyperparameters": pa.string(),
    "seed": pa.int64(),
    "label": pa.string(),
    "budget": pa.int64(),
    "hours": pa.float64(),
    "objective": pa.string(),
    "fixed": pa.string(),
    "workload": pa.string(),
    "workload_sha256": pa.string(),
    "workload_spec": pa.string(),
    "episode_length": pa.int64(),
    "baseline": pa.string(),
    "fidelities": pa.string(),
    "baseline_design": pa.string(),
    "optimum": pa.string(),
    "history": pa.string(),
    "versions": pa.string(),
    "commit": pa.string(),
    "started": pa.timestamp("us", "UTC"),
    "state": pa.string(),
    "ended": pa.timestamp("us", "UTC"),
}
"""Columns of the table of trials; settings, hyperparameters, objective, fixed, baseline (its
metrics), baseline_design, fidelities, optimum and versions are JSON texts. ``optimum`` holds the
metrics of the exact best design, and is null where that is not known; ``fidelities`` is null in
datasets from before there were any. ``history`` describes what the search learned from before, as
a JSON text; it is null where the search began from nothing. ``workload_spec`` is what the
environment was given as the workload, as a JSON text, null where it is no JSON value. ``label``
says what the evaluations were for, such as ``eval``; it is null where nobody said."""
TRIAL_SCHEMA = pa.schema(list(TRIAL_FIELDS.items()))
"""Columns of the table of trials."""
NEVER_NULL = ("trial_id", "step", "reward", "status", "feasible", "cached", "fidelity", "timestamp")
"""Columns of the table of evaluations in which every row has a value."""
FLIGHT_COLUMNS: dict[str, pa.DataType] = {
    "proposal": pa.int64(),
    "proposed": pa.int64(),
    "worker": pa.dictionary(pa.int32(), pa.string()),
    "started": pa.timestamp("us", "UTC"),
    "partial": pa.string(),
}
"""Columns that are null unless an executor simulated the design. ``proposal`` is its number in the
order of proposals and ``proposed`` the number of proposals before its outcome was there, both null
where outcomes are in the order of proposals; ``worker`` simulated it, and began when ``started``
says. ``partial`` is what the run had on the way where the search stops runs early, as a JSON text:
``so_far`` holds metrics by progress; of a run that was stopped, ``progress`` says where, and
``predicted`` holds the metrics that its agent was told. Files of earlier versions lack some."""


@dataclass(frozen=True)
class Sidecar:
    """The description that all trajectories of a dataset share.

    Attributes:
        space: the design space, with nothing fixed.
        metrics: the metrics, with units.
        simulator: name and version.
        source_sha256: digest of the code that simulates, see
            :func:`archgym.environment.source.source_sha256`; empty where the version says enough.
        workloads: hash of each workload by name, filled in when the dataset is sealed.
    """

    space: DesignSpace
    metrics: tuple[Metric, ...]
    simulator: dict[str, str]
    workloads: dict[str, str]
    source_sha256: str = ""

    @staticmethod
    def of(problem: ProblemDescription) -> Sidecar:
        """The sidecar for evaluations of an environment."""
        simulator, source = dict(problem.simulator), problem.source_sha256
        return Sidecar(problem.space, problem.metrics, simulator, {}, source)

    @staticmethod
    def load(directory: Path) -> Sidecar:
        """Reads the sidecar of a dataset.

        Raises:
            DatasetError: if there is none, or it is of another version or damaged.
        """
        path = directory / SIDECAR
        try:
            text = read_text(path, JSON_LIMIT_BYTES)
        except FileNotFoundError:
            raise DatasetError(f"{directory} is not a dataset: it has no {SIDECAR}") from None
        except (OSError, ValueError) as error:
            raise DatasetError(f"cannot read {path}: {error}") from error
        read = _read_sidecar(path, text)
        return replace(read, simulator=dict(read.simulator), workloads=dict(read.workloads))

    def save(self, directory: Path, *, replace: bool = False) -> None:
        """Writes the sidecar in one step; without ``replace``, only if there is none yet."""
        data = {
            "format": FORMAT,
            "design_space": {**self.space.to_json(), "fixed": {}},
            "metrics": [metric.to_json() for metric in self.metrics],
            "simulator": self.simulator,
            "workloads": self.workloads,
        }
        if self.source_sha256:
            data["source_sha256"] = self.source_sha256
        data[_CHECKSUM] = _checksum(data)
        path, temporary = directory / SIDECAR, ""
        try:
            directory.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=directory, prefix=".sidecar-")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(data, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            if replace:
                os.replace(temporary, path)
                return
            with contextlib.suppress(FileExistsError):  # another process was first
                os.link(temporary, path)
            os.unlink(temporary)
        except OSError as error:
            if temporary:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            raise DatasetError(f"cannot write to {directory}: {error.strerror}") from error

    def difference(self, recorded: Sidecar, accepted_by: str) -> str:
        """Why rows of now cannot join those of a dataset; empty if they can.

        Args:
            recorded: the sidecar of the dataset.
            accepted_by: the command that lets them join where only the simulator was edited and
                metrics did not change, see :func:`accepting_command`.
        """
        mine, theirs = self.space.to_json(), recorded.space.to_json()
        for field in ("parameters", "rules"):
            if mine[field] != theirs[field]:
                return f"the design spaces differ in their {field}"
        if self.space.excluded != recorded.space.excluded:
            return (
                f"the design spaces exclude other values: {self.space.excluded or 'none'} and "
                f"{recorded.space.excluded or 'none'}"
            )
        theirs_and_units = [(m.name, m.unit) for m in recorded.metrics]
        if [(m.name, m.unit) for m in self.metrics] != theirs_and_units:
            return "the metrics differ"
        now, before = self.simulator, recorded.simulator
        if now["name"] != before["name"]:
            return (
                f"the simulators differ: results were recorded with {before['name']!r}, and now "
                f"it is {now['name']!r}; choose that one, or record into another folder"
            )
        same = f"if metrics are as before, {accepted_by} shows it, and lets you go on"
        if now["version"] != before["version"]:
            return (
                "the simulators differ: results were recorded with version "
                f"{before['version']!r}, and now it is {now['version']!r}, so they would mix: "
                f"record into another folder, or put back what was changed; {same}"
            )
        if self.source_changed(recorded):
            return (
                "the source of the simulator has changed since results were recorded, and its "
                f"version {now['version']!r} has not, so they would mix: raise the "
                f"version and record into another folder, or put the source back; {same}"
            )
        return ""

    def source_changed(self, other: Sidecar) -> bool:
        """Whether both know the code that simulates, and it is not the same."""
        both = (self.source_sha256, other.source_sha256)
        return all(both) and both[0] != both[1]


def accepting_command(folder: Path, environment: str) -> str:
    """The command that accepts an edited simulator for a dataset, if its metrics are as before.

    >>> accepting_command(Path("runs/a"), "cache:Cache")
    'archgym dataset validate runs/a --replay --accept-source --environment cache:Cache'

    Args:
        folder: of the dataset.
        environment: registered name, ``module:Class`` or path of a YAML file.
    """
    words = ["archgym", "dataset", "validate", str(folder), "--replay", "--accept-source"]
    if ":" in environment or environment.lower().endswith((".yaml", ".yml")):
        words += ["--environment", environment]  # a dataset does not decide what is imported
    return shlex.join(words)


_CHECKSUM = "checksum"
_KEYS = {"format", "design_space", "metrics", "simulator", "source_sha256", "workloads"}


@lru_cache(maxsize=8)
def _read_sidecar(path: Path, text: str) -> Sidecar:
    """The sidecar in a text; kept, since each trial of a run asks for the same one."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = error if isinstance(error, ValueError) else "it is nested too deeply"
        raise DatasetError(f"cannot read {path}: {reason}") from error
    if not isinstance(data, dict):
        raise DatasetError(f"{path} is damaged: it holds no JSON object")
    if data.get("format") != FORMAT:
        raise DatasetError(
            f"{path} has format {data.get('format')!r}; this version of archgym reads {FORMAT}"
        )
    given = data.pop(_CHECKSUM, None)
    if given is None and data.keys() <= _KEYS:
        pass  # of an earlier version
    elif given != _checksum(data):
        raise DatasetError(f"{path} is damaged: it was changed, its checksum is another one")
    try:
        simulator = {name: str(data["simulator"][name]) for name in ("name", "version")}
        space = DesignSpace.from_json(data["design_space"])
        metrics = tuple(Metric.from_json(m) for m in data["metrics"])
        check_metrics(metrics, "the dataset")
        evaluation_schema(space, metrics)
        _try_out(space)
        workloads, source = dict(data.get("workloads", {})), str(data.get("source_sha256", ""))
        return Sidecar(space, metrics, simulator, workloads, source)
    except Exception as error:  # whatever forged parameters and rules do
        raise DatasetError(f"{path} is damaged: {type(error).__name__}: {error}") from error


def _checksum(data: Mapping[str, Any]) -> str:
    """The checksum of a sidecar, by what it holds, in any form of writing it."""
    try:
        content = json.dumps(json.loads(json.dumps(data)), sort_keys=True)
    except RecursionError:
        return ""
    return hashlib.sha256(content.encode()).hexdigest()


def _try_out(space: DesignSpace) -> None:
    """Evaluates every condition and rule, on one design and on columns: they may be forged."""
    designs = space.canonicalise(np.zeros((_MANY, len(space.names)), dtype=np.int64))
    space.legal(designs)
    space.illegal_reason(designs.codes[0].tolist())


def recorded_as_text(parameter: Parameter) -> bool:
    """Whether values that are texts, numbers and booleans are recorded as texts."""
    return isinstance(parameter, Categorical | Ordinal) and parameter.of_several_kinds


def evaluation_schema(space: DesignSpace, metrics: Sequence[Metric]) -> pa.Schema:
    """Columns of the table of evaluations."""
    text = pa.dictionary(pa.int32(), pa.string())
    fields = [("trial_id", text), ("step", pa.int64()), ("parent_step", pa.int64())]
    for parameter in space.parameters:
        levels = range(parameter.size if parameter.kind == "ordinal" else 1)
        kinds = {type(parameter.value(code)) for code in levels}
        kind = float if kinds == {int, float} else type(parameter.value(0))
        written = text if recorded_as_text(parameter) else _ARROW_TYPES.get(kind, text)
        fields.append((f"param.{parameter.name}", written))
    fields += [(f"metric.{metric.name}", pa.float64()) for metric in metrics]
    fields += [
        ("reward", pa.float64()),
        ("status", text),
        ("reason", text),
        ("feasible", pa.bool_()),
        ("cached", pa.bool_()),
        ("fidelity", pa.float64()),
        ("simulation_s", pa.float64()),
        ("agent_s", pa.float64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        *FLIGHT_COLUMNS.items(),
    ]
    return pa.schema(fields)


def rows_to_table(
    space: DesignSpace,
    metrics: Sequence[Metric],
    rows: Sequence[Sequence[Any]],
    trial_ids: Mapping[int, str],
) -> pa.Table:
    """A table of evaluations from the rows of a journal."""
    schema = evaluation_schema(space, metrics)
    if not rows:
        return schema.empty_table()
    fields = (*ROW_FIELDS, *FLIGHT_FIELDS)
    rows = [[*row, *[None] * (len(fields) - len(row))] for row in rows]
    columns = dict(zip(fields, zip(*rows, strict=True), strict=True))
    codes = np.array(columns["codes"], dtype=np.int64).reshape(len(rows), len(space.names))
    designs = Designs(space, codes)
    arrays: dict[str, Any] = {
        "trial_id": [trial_ids[n] for n in columns["n"]],
        "status": [LABELS[status] for status in columns["status"]],
        "timestamp": columns["timestamp_us"],
        "started": columns["started_us"],
        "simulation_s": [ns * 1e-9 for ns in columns["simulation_ns"]],
        "agent_s": [ns * 1e-9 for ns in columns["agent_ns"]],
        "feasible": [bool(value) for value in columns["feasible"]],
        "cached": [bool(value) for value in columns["cached"]],
    }
    for name in space.names:
        values = designs.values(name).tolist()
        if recorded_as_text(space[name]):
            values = [None if value is None else str(value) for value in values]
        arrays[f"param.{name}"] = values
    for i, metric in enumerate(metrics):
        arrays[f"metric.{metric.name}"] = [row[i] if row else None for row in columns["metrics"]]
    arrays["reason"] = [text_of(text) for text in columns["reason"]]
    return pa.table(
        [pa.array(arrays.get(f.name, columns.get(f.name)), type=f.type) for f in schema], schema
    )


def columns(*types: tuple[pa.DataType, str]) -> pa.Schema:
    """A schema from types, each with the names of consecutive columns, separated by blanks."""
    return pa.schema([(name, kind) for kind, names in types for name in names.split()])
