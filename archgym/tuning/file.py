"""Reading what autotuners recorded: the cache files of Kernel Tuner, and T4 results.

T4 is the schema of results that the autotuning community agreed on
(https://github.com/odgaard/TuningSchema, branch T4); Kernel Tuner writes it with
``store_output_file``. A file is data: it is parsed within limits and nothing in it is run.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from archgym.errors import ArchgymError, InvalidValueError
from archgym.problem import Metric
from archgym.reading.files import meant_file, read_text
from archgym.space import Boolean, Categorical, DesignSpace, Ordinal, Parameter

LIMIT_BYTES = 1 << 27
MAX_CONFIGURATIONS = 1_000_000
MAX_PARAMETERS = 256
MAX_METRICS = 256
MAX_VALUES = 4096
_TIMES = ("compile_time", "benchmark_time", "framework_time", "strategy_time", "verification_time")
_NOT_MEASURED = {*_TIMES, "timestamp", "times", "__error__"}
_FAILURES = {
    "CompilationFailedConfig": "compile",
    "ErrorConfig": "runtime",
    "InvalidConfig": "constraints",
    "RuntimeFailedConfig": "runtime",
}
"""What Kernel Tuner writes in the place of a result, in the words of T4."""
_INVALID = ("timeout", "compile", "runtime", "correctness", "constraints", "correct")
_UNITS = (("energy", "J"), ("power", "W"), ("clock", "MHz"), ("freq", "MHz"), ("time", "ms"))
"""Kernel Tuner's units, which its files do not name, by a part of the name."""
_TIME_UNITS = {"milliseconds": "ms", "miliseconds": "ms", "microseconds": "us", "seconds": "s"}
"""Units of times as T4 results name them; Kernel Tuner misspells the first."""
_UNKNOWN = "au"
"""Unit of what has none in the file: arbitrary units."""


_Row = tuple[dict[str, Any], dict[str, tuple[float, str]], str, float]
"""Configuration, values with their units by name, invalidity, and seconds, as in the file."""


@dataclass(frozen=True)
class Measured:
    """One configuration of the file.

    Attributes:
        design: values by parameter.
        metrics: by name; empty unless it is valid.
        invalidity: in the words of T4: ``correct``, ``timeout``, ``compile``, ``runtime``,
            ``correctness`` or ``constraints``.
        seconds: that the tuner spent on it: compiling, running and checking.
    """

    design: dict[str, Any]
    metrics: dict[str, float]
    invalidity: str
    seconds: float


@dataclass(frozen=True)
class TuningFile:
    """What a file of an autotuner holds.

    Attributes:
        title: kernel and device, as far as the file names them.
        tuner: name of who made it, as the agent of its rows.
        space: the parameters that were tuned, each with the values that occur.
        metrics: what was measured.
        goal: name of the metric that was sought.
        measured: the configurations in the order of the file, each once.
        sha256: of the content.
        contradictions: number of configurations that stand in the file again with another result;
            the last result counts.
    """

    title: str
    tuner: str
    space: DesignSpace
    metrics: tuple[Metric, ...]
    goal: str
    measured: tuple[Measured, ...]
    sha256: str
    contradictions: int = 0


def read_tuning(path: str | Path) -> TuningFile:
    """Reads a cache file of Kernel Tuner (one that was not closed, too), or T4 results.

    Either may be gzipped, as those of the autotuning community's benchmark hub are.

    Raises:
        InvalidValueError: if it is neither, or too large; the message names the place.
    """
    path = Path(path)
    try:
        text = read_text(path, LIMIT_BYTES, unpack=True)
    except FileNotFoundError:
        raise InvalidValueError(f"there is no file {path}{meant_file(path)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValueError(f"cannot read {path}: {error}") from None
    try:
        data = _parsed(text)
        if not isinstance(data, dict) or not ({"cache", "results"} & set(data)):
            raise InvalidValueError(
                "it is no result of an autotuner: a cache file of Kernel Tuner has 'cache', T4 "
                "results have 'results'"
            )
        reader = _of_kernel_tuner if "cache" in data else _of_t4
        return reader(data, hashlib.sha256(text.encode()).hexdigest())
    except RecursionError:
        raise InvalidValueError(f"{path}: it is nested too deeply") from None
    except (ArchgymError, KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
        what = str(error) if isinstance(error, ArchgymError) else f"{type(error).__name__}: {error}"
        raise InvalidValueError(f"{path}: {what[:400]}") from None


def _parsed(text: str) -> Any:
    """The JSON in a file; Kernel Tuner closes its cache only when a tuning ends."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        stripped = text.rstrip().removesuffix(",")
        if '"cache"' not in text or error.pos < len(stripped) - 1:
            raise InvalidValueError(f"it is no JSON: {error}") from None
        try:
            return json.loads(stripped + "}\n}")
        except json.JSONDecodeError:
            raise InvalidValueError(f"it is no JSON: {error}") from None


# -- the two forms ---------------------------------------------------------------------------------


def _of_kernel_tuner(data: dict[str, Any], sha256: str) -> TuningFile:
    listed, cache = data.get("tune_params"), data["cache"]
    if not isinstance(listed, dict) or not isinstance(cache, dict):
        raise InvalidValueError("tune_params and cache must be objects")
    _limited("configurations", cache, MAX_CONFIGURATIONS)
    rows: list[_Row] = []
    for key, entry in cache.items():
        if not isinstance(entry, dict) or not all(name in entry for name in listed):
            raise InvalidValueError(f"cache[{key!r:.80}] lacks a parameter of tune_params")
        failure = next((_FAILURES[v] for v in _texts(entry) if v in _FAILURES), "correct")
        if "__error__" in entry and failure == "correct":
            failure = "runtime"
        measured = {
            name: (value, _unit_of(name))
            for name, value in entry.items()
            if name not in listed and name not in _NOT_MEASURED and _is_number(value)
        }
        spent = _seconds(entry, "compile_time", "benchmark_time", "verification_time")
        rows.append(({name: entry[name] for name in listed}, measured, failure, spent))
    title = " on ".join(str(data[k]) for k in ("kernel_name", "device_name") if data.get(k))
    sought = data.get("objective", "time")
    values = {name: some if isinstance(some, list) else [some] for name, some in listed.items()}
    return _made(title, "kernel_tuner", values, rows, sought, sha256)


def _of_t4(data: dict[str, Any], sha256: str) -> TuningFile:
    results = data["results"]
    notes = data.get("metadata")
    notes = notes if isinstance(notes, dict) else {}
    time_unit = _TIME_UNITS.get(str(notes.get("timeunit")), "")
    if not isinstance(results, list):
        raise InvalidValueError("results must be a list")
    _limited("configurations", results, MAX_CONFIGURATIONS)
    rows: list[_Row] = []
    values: dict[str, dict[tuple[bool, Any], None]] = {}
    sought: Any = None
    for number, entry in enumerate(results):
        if not isinstance(entry, dict) or not isinstance(entry.get("configuration"), dict):
            raise InvalidValueError(f"results[{number}] has no configuration")
        invalidity = entry.get("invalidity", "correct")
        if invalidity not in _INVALID:
            raise InvalidValueError(
                f"results[{number}]: invalidity cannot be {invalidity!r:.80}: allowed are "
                f"{', '.join(_INVALID)}"
            )
        measured = {}
        for one in _measurements(entry, number):
            if _is_number(one.get("value")):
                name, unit = str(one.get("name")), one.get("unit")
                unit = unit if isinstance(unit, str) else ""
                measured[name] = one["value"], unit or (time_unit if name == "time" else "")
        for name, value in entry["configuration"].items():
            values.setdefault(name, {})[type(value) is bool, _plain(name, value)] = None
        objectives = entry.get("objectives")
        sought = sought or (next(iter(objectives), None) if isinstance(objectives, list) else None)
        rows.append((entry["configuration"], measured, invalidity, _t4_seconds(entry)))
    ours = notes.get("archgym")
    ours = ours if isinstance(ours, dict) else {}
    space = ours.get("design_space")
    own = None if space is None else DesignSpace.from_json(space)
    metrics = {one.name: one for one in map(Metric.from_json, ours.get("metrics", []))}
    listed = {name: [value for _, value in some] for name, some in values.items()}
    return _made("T4 results", "t4", listed, rows, sought, sha256, own, metrics)


def _measurements(entry: Mapping[str, Any], number: int) -> list[dict[str, Any]]:
    found = entry.get("measurements", [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise InvalidValueError(
            f"results[{number}].measurements cannot be {found!r:.80}: allowed is a list of objects "
            "with name, value and unit"
        )
    return found


def _made(
    title: str,
    tuner: str,
    values: Mapping[str, list[Any]],
    rows: list[_Row],
    sought: Any,
    sha256: str,
    space: DesignSpace | None = None,
    described: Mapping[str, Metric] | None = None,
) -> TuningFile:
    _limited("parameters", values, MAX_PARAMETERS)
    names = _identifiers(values)
    if space is None:
        if missing := [name for row in rows for name in values if name not in row[0]]:
            raise InvalidValueError(f"a configuration lacks parameter {missing[0]!r:.80}")
        space = DesignSpace([_parameter(names[name], some) for name, some in values.items()])
    own_names = _metrics(rows, described or {})
    found: dict[tuple[int, ...], Measured] = {}
    contradicted: set[tuple[int, ...]] = set()
    for configuration, measured, invalidity, spent in rows:
        design = space.canonical({names[name]: v for name, v in configuration.items()})
        kept = {own_names[name].name: float(value) for name, (value, _) in measured.items()}
        if invalidity == "correct" and not kept:
            invalidity = "runtime"
        result = Measured(design, kept if invalidity == "correct" else {}, invalidity, spent)
        codes = space.codes(design)
        if found.get(codes, result) != result:
            contradicted.add(codes)
        found[codes] = result
    if not own_names or not any(one.metrics for one in found.values()):
        raise InvalidValueError("no configuration has a measurement")
    wanted = str(sought[0] if isinstance(sought, list) and sought else sought)
    goal = own_names.get(wanted) or next(
        (m for m in own_names.values() if m.name == wanted or m.name.startswith("time")),
        next(iter(own_names.values())),
    )
    ordered = sorted(own_names.values(), key=lambda metric: metric.name != goal.name)
    return TuningFile(
        title,
        tuner,
        space,
        tuple(ordered),
        goal.name,
        tuple(found.values()),
        sha256,
        len(contradicted),
    )


# -- parameters and metrics --------------------------------------------------------------------


def _parameter(name: str, values: list[Any]) -> Parameter:
    kept = list(dict.fromkeys((type(v) is bool, _plain(name, v)) for v in values))
    levels = [value for _, value in kept]
    if len(levels) > MAX_VALUES:
        raise InvalidValueError(f"parameter {name!r} has more than {MAX_VALUES:,} values")
    if set(map(type, levels)) == {bool} and len(levels) == 2:
        return Boolean(name)
    if all(_is_number(value) for value in levels):
        return Ordinal(name, sorted(set(levels)))
    return Categorical(name, levels)


def _metrics(rows: list[_Row], described: Mapping[str, Metric]) -> dict[str, Metric]:
    """The metric of each measurement.

    Args:
        rows: what the file holds.
        described: metrics that the file itself describes, by name.
    """
    units: dict[str, str] = {}
    signed = set()
    for _, measured, _, _ in rows:
        for name, (value, unit) in measured.items():
            if unit and units.get(name, "") not in ("", unit):
                raise InvalidValueError(
                    f"measurement {name!r:.80} is in {units[name]!r:.40} and in {unit!r:.40}: "
                    "a metric has one unit"
                )
            units[name] = units.get(name) or unit
            if value < 0:
                signed.add(name)
    _limited("measurements", units, MAX_METRICS)
    names = _identifiers(units)
    found: dict[str, Metric] = {}
    for name, unit in units.items():
        rate = "/s" in unit or "/s" in name or "flop" in name.lower()
        direction: Any = "maximize" if rate else "minimize"
        metric = described.get(name)
        if metric is None or metric.unit != unit:
            metric = _metric(names[name], unit, direction, name, signed=name in signed)
        if alike := [other for other, one in found.items() if one.name == metric.name]:
            raise InvalidValueError(
                f"two measurements read alike: {alike[0]!r:.80} and {name!r:.80} are "
                f"{metric.name!r}; rename one"
            )
        found[name] = metric
    return found


def _metric(name: str, unit: str, direction: Any, measured: str, *, signed: bool) -> Metric:
    """A metric of a name and a unit; without a unit it has one only if its name demands one."""
    doc = f"{measured}, as measured"
    try:
        return Metric(name, unit, direction, doc, signed)
    except InvalidValueError:
        unit = re.sub(r"[^A-Za-z0-9/]+", "", unit) or _UNKNOWN
        ending = unit.lower().replace("/", "_per_")
        if unit == "GB/s":
            ending = "gb_per_s"
        return Metric(f"{name}_{ending}", unit, direction, doc, signed)


def _unit_of(name: str) -> str:
    """The unit of a measurement of Kernel Tuner."""
    if "/" in name:
        return next(iter(re.findall(r"[A-Za-z]+/[A-Za-z]+", name)), "")
    return next((unit for part, unit in _UNITS if part in name.lower()), "")


def _identifiers(names: Mapping[str, Any]) -> dict[str, str]:
    """Each name as one of letters, digits and underscores, all different."""
    found: dict[str, str] = {}
    for name in names:
        text = re.sub(r"[^0-9A-Za-z_]+", "_", str(name).replace("/", "_per_")).strip("_")[:100]
        text = text.lower() if "/" in str(name) else text
        text = f"p_{text}" if not text or text[0].isdigit() else text
        if text in found.values():
            raise InvalidValueError(f"two names read alike: {name!r:.80} is {text!r}")
        found[name] = text
    return found


def _seconds(times: Any, *names: str) -> float:
    """The sum of some times of an entry, which are in milliseconds, in seconds."""
    found = [times.get(name) for name in names] if isinstance(times, dict) else []
    return sum(float(value) for value in found if _is_number(value) and value > 0) / 1e3


def _t4_seconds(entry: Mapping[str, Any]) -> float:
    times = entry.get("times")
    spent = _seconds(times, "compilation", "compilation_time", "benchmark", "validation")
    runtimes = times.get("runtimes") if isinstance(times, dict) else None
    if not isinstance(runtimes, list) or "benchmark" in (times or ()):
        return spent
    return spent + sum(float(value) for value in runtimes if _is_number(value) and value > 0) / 1e3


def _texts(entry: Mapping[str, Any]) -> Iterator[str]:
    return (value for value in entry.values() if isinstance(value, str))


def _plain(name: str, value: Any) -> Any:
    """A value of a parameter that can be one."""
    is_text = isinstance(value, str) and len(value) <= 200
    if isinstance(value, bool) or is_text or _is_number(value):
        return value
    raise InvalidValueError(
        f"parameter {name!r:.80} cannot be {value!r:.80}: allowed is a number or text"
    )


def _is_number(value: Any) -> TypeGuard[int | float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 1e300 and math.isfinite(value)


def _limited(what: str, found: Any, most: int) -> None:
    if len(found) > most:
        raise InvalidValueError(f"it has {len(found):,} {what}, at most {most:,} are read")
