"""What journals and tables of trials may hold: every line and row is checked when it is read.

A dataset may be damaged, or come from anybody. Whoever works with its rows relies on the types and
the JSON texts that are described here, so that damage is one message and not an error in the middle
of something else.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from archgym.data.journal import FLIGHT_FIELDS, ROW_FIELDS, ROW_LENGTHS
from archgym.errors import ArchgymError, DatasetError
from archgym.evaluation.trial_info import HistoryInfo
from archgym.problem.fidelity import Fidelity
from archgym.problem.metrics import Metric
from archgym.problem.objective import Objective
from archgym.problem.status import LABELS
from archgym.reading.checked_json import checked_json
from archgym.space import DesignSpace

STATES = ("running", "finished", "failed", "closed")
"""What the table of trials says of how a trial ended."""
_INT64 = range(-(1 << 63), 1 << 63)
_LATEST_S = 250_000_000_000  # in some 8,000 years; Arrow's microseconds end after it
_JSON_OBJECTS = (
    *("settings", "hyperparameters", "fixed", "baseline", "baseline_design", "optimum"),
    *("versions", "history"),
)
_ALL_FIELDS = (*ROW_FIELDS, *FLIGHT_FIELDS)
_MAY_LACK = {"workload_spec", "fidelities", "baseline_design", "optimum", "seed", "budget"}
_MAY_LACK |= {
    "history",
    "label",
    "hours",
    "episode_length",
    "commit",
    "workload_sha256",
    "started",
    "ended",
}
"""Columns of trials that are null where something is not known, or was not recorded yet."""


def check_line(path: Path, number: int, line: object) -> None:
    """Checks a line of a journal that is no row: the beginning or the end of a trial.

    Args:
        path: the journal.
        number: of the line, counted from 1.
        line: as read from JSON.

    Raises:
        DatasetError: if it is neither.
    """
    problem = "it is neither a row nor the beginning or end of a trial"
    if isinstance(line, Mapping) and isinstance(line.get("trial"), Mapping):
        trial, started = line["trial"], line["trial"].get("started")
        problem = _field_problem({**trial, "started": None, "ended": None, "state": "running"})
        if not problem and not _is_time(started):
            problem = f"started is {started!r:.80}, not a time"
        if not problem and not _is_index(line.get("n")):
            problem = f"n is {line.get('n')!r:.80}, not a number of a trial"
    elif isinstance(line, Mapping) and "end" in line:
        problem = ""
        if not _is_index(line["end"]):
            problem = f"end is {line['end']!r:.80}, not a number of a trial"
        elif line.get("state") not in STATES:
            problem = f"state is {line.get('state')!r:.80}, not one of {', '.join(STATES)}"
        elif not _is_time(line.get("timestamp")):
            problem = f"timestamp is {line.get('timestamp')!r:.80}, not a time"
    if problem:
        raise DatasetError(f"{path}, line {number} is damaged: {problem}")


def check_rows(
    path: Path,
    rows: Sequence[Sequence[Any]],
    space: DesignSpace,
    n_metrics: int,
    trials: Mapping[int, str],
) -> None:
    """Checks rows of a journal, some thousand at a time.

    Args:
        path: the journal.
        rows: as read from JSON, each a list.
        space: design space of the dataset.
        n_metrics: number of its metrics.
        trials: ids of the trials that the journal has announced, by number.

    Raises:
        DatasetError: for the first row that is none.
    """
    names: tuple[str, ...] = ()
    for length, group in itertools.groupby(rows, len):
        some = list(group)
        names = _ALL_FIELDS[:length]
        if length not in ROW_LENGTHS:
            raise DatasetError(f"{path} is damaged: a row has {length} values: {some[0]!r:.120}")
        columns = dict(zip(names, zip(*some, strict=True), strict=True))
        if all(_sound(columns, name, space, n_metrics, trials) for name in names):
            continue
        for row in some:  # slow, and only to say which one
            one = dict(zip(names, ((value,) for value in row), strict=True))
            for name in names:
                if not _sound(one, name, space, n_metrics, trials):
                    at = f"step {row[1]!r:.20} of trial {trials.get(_plain(row[0]), '?')}"
                    raise DatasetError(f"{path} is damaged: {at}: {name} is {one[name][0]!r:.80}")


def check_trial(row: Mapping[str, Any], space: DesignSpace, metrics: Sequence[Metric]) -> str:
    """What is wrong with a row of the table of trials; empty if nothing is.

    Args:
        row: with all columns.
        space: design space of the dataset.
        metrics: of the dataset.
    """
    if problem := _field_problem(row):
        return problem
    if problem := _history_problem(row.get("history")):
        return problem
    texts = (row["objective"], row["fixed"], row["baseline"], row["fidelities"], row["optimum"])
    return _meaning_problem(texts, row["baseline_design"], space, tuple(metrics))


@functools.lru_cache(maxsize=256)
def recorded_history(text: str | None) -> HistoryInfo | None:
    """What a trial learned from, as the table of trials has it.

    Raises:
        ValueError: if the text is none of that form.
    """
    return None if text is None else checked_json(text, HistoryInfo)


# -- inner workings ------------------------------------------------------------------------------


def _field_problem(row: Mapping[str, Any]) -> str:
    """The first value of a trial that has another type than its column."""
    for name, kind in _TRIAL_KINDS.items():
        value = row.get(name)
        if value is None:
            if name not in _MAY_LACK:
                return f"{name} is missing"
        elif not kind(value):
            return f"{name} is {value!r:.80}, not {_KIND_NAMES[kind]}"
    return ""


@functools.lru_cache(maxsize=4096)
def _meaning_problem(
    texts: tuple[str, str, str, str | None, str | None],
    baseline_design: str | None,
    space: DesignSpace,
    metrics: tuple[Metric, ...],
) -> str:
    """What is wrong with what JSON texts of a trial stand for."""
    field = "objective"
    try:
        objective, fixed, baseline, fidelities, optimum = (json.loads(t or "null") for t in texts)
        Objective.parse(objective).check(metrics)
        field = "fixed"
        for name, value in fixed.items():
            space[name].code(value)
        field = "fidelities"
        for one in fidelities or ():
            Fidelity(**one)
        field = "baseline_design"
        for name, value in json.loads(baseline_design or "{}").items():
            space[name].code(value)
        for field, values in (("baseline", baseline), ("optimum", optimum or {})):
            for name, value in values.items():
                if value is not None and not _is_number(value):
                    return f"{field}: {name} is {value!r:.80}, not a number"
    except ArchgymError as error:
        return f"{field}: {error}"
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        return f"{field} cannot be read: {type(error).__name__}: {error}"
    return ""


def _history_problem(text: str | None) -> str:
    try:
        recorded_history(text)
    except ValueError as error:
        return f"history: {error}"
    return ""


def _sound(
    columns: Mapping[str, Sequence[Any]],
    name: str,
    space: DesignSpace,
    n_metrics: int,
    trials: Mapping[int, str],
) -> bool:
    """Whether a column of rows has only values that it may have; by whole columns, for speed."""
    column = columns[name]
    kinds = set(map(type, column))
    if name == "n":
        return kinds <= {int} and set(column) <= trials.keys()
    if name == "codes":
        return kinds <= {list} and _are_codes(column, space)
    if name == "metrics":
        given = [row for row in column if row is not None]
        flat = set(map(type, itertools.chain.from_iterable(given))) if kinds - {_NONE} else set()
        lengths = set(map(len, given)) if kinds <= {list, _NONE} else {-1}
        return lengths <= {n_metrics} and flat <= {int, float, _NONE}
    if name == "status":
        return kinds <= {int} and set(column) <= set(range(len(LABELS)))
    if name in ("feasible", "cached"):
        return kinds <= {int, bool} and set(column) <= {0, 1}
    if name in ("reward", "fidelity"):
        return kinds <= {int, float} and all(abs(value) < 1e300 for value in column)
    if name in ("reason", "worker", "partial"):
        return kinds <= ({str} if name == "reason" else {str, _NONE})
    if name == "parent_step" or name in FLIGHT_FIELDS:
        column = [value for value in column if value is not None]
        kinds -= {_NONE}
    if not kinds <= {int} or not column:
        return kinds <= {int}
    least = 0 if name in ("step", "proposal", "proposed") else _INT64[0]
    return least <= min(column) and max(column) in _INT64


def _are_codes(column: Sequence[list[Any]], space: DesignSpace) -> bool:
    flat = list(itertools.chain.from_iterable(column))
    if set(map(len, column)) - {len(space.names)} or not set(map(type, flat)) <= {int}:
        return False
    if not flat:
        return True
    if min(flat) < -1 or max(flat) not in _INT64:
        return False
    sizes = np.array([parameter.size for parameter in space.parameters], dtype=object)
    most = np.array(flat, dtype=np.int64).reshape(len(column), -1).max(axis=0)
    return bool((most.astype(object) < sizes).all())


_NONE = type(None)


def _plain(value: Any) -> int:
    return value if type(value) is int else -1


def _is_index(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 31


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LATEST_S


def _is_text(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(value.encode() or True)
    except UnicodeEncodeError:
        return False


def _is_name(value: object) -> bool:
    return _is_text(value) and bool(value)


def _is_hours(value: object) -> bool:
    return _is_number(value) and value > 0  # type: ignore[operator]


def _is_state(value: object) -> bool:
    return value in STATES


def _is_integer(value: object) -> bool:
    return type(value) is int and value in _INT64


def _is_any(value: object) -> bool:
    return True


@functools.lru_cache(maxsize=8192)
def _kind_of_json(text: str) -> type | None:
    """The type of what a JSON text stands for; ``None`` if it is no JSON."""
    try:
        return type(json.loads(text))
    except (ValueError, RecursionError):
        return None


def _is_json(value: object) -> bool:
    return _is_text(value) and _kind_of_json(str(value)) is not None


def _is_json_object(value: object) -> bool:
    return _is_text(value) and _kind_of_json(str(value)) is dict


def _is_json_list(value: object) -> bool:
    return _is_text(value) and _kind_of_json(str(value)) is list


_TRIAL_KINDS: dict[str, Callable[[object], bool]] = {
    "trial_id": _is_name,
    "environment": _is_text,
    "agent": _is_text,
    **dict.fromkeys(("workload", "workload_sha256", "commit", "label"), _is_text),
    **dict.fromkeys(_JSON_OBJECTS, _is_json_object),
    **dict.fromkeys(("objective", "workload_spec"), _is_json),
    "fidelities": _is_json_list,
    **dict.fromkeys(("seed", "budget", "episode_length"), _is_integer),
    "hours": _is_hours,
    "state": _is_state,
    **dict.fromkeys(("started", "ended"), _is_any),
}
"""What each column of the table of trials may hold."""
_KIND_NAMES: dict[Callable[[object], bool], str] = {
    _is_name: "a name",
    _is_text: "a text",
    _is_json: "a JSON text",
    _is_json_object: "the JSON text of an object",
    _is_json_list: "the JSON text of a list",
    _is_integer: "an integer",
    _is_hours: "a number above 0",
    _is_state: f"one of {', '.join(STATES)}",
    _is_any: "",
}
