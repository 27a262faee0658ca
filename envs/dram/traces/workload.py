"""Workloads of the DRAM environment by name, by file or by a mapping of settings.

>>> len(load_workload({"generator": "zipf", "requests": 5000, "seed": 3}))
5000
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

from archgym.envs.dram.traces.generators import GENERATORS
from archgym.envs.dram.traces.trace import Trace
from archgym.envs.dram.traces.trace_files import FORMATS, TRACE_SUFFIXES, read_trace, trace_name
from archgym.errors import InvalidValueError, TraceError, UnknownNameError
from archgym.problem.workload import kind_of

__all__ = [
    "WorkloadSpec",
    "canonical_workload",
    "load_workload",
    "recorded_names",
    "workload_card",
    "workload_label",
    "workload_names",
]

WorkloadSpec: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]
"""A workload: the name of a recorded program or of a generator, the path of a trace file, or a
mapping with one of the keys ``generator``, ``recorded``, ``file`` and the settings that go with it.
"""

_KINDS = ("generator", "recorded", "file")
_RECORDED_KEYS = ("recorded", "requests")
_FILE_KEYS = ("file", "format", "clock_mhz", "interval_ns", "requests", "fold_bytes")


def load_workload(spec: WorkloadSpec) -> Trace:
    """The trace of a workload. Its arrays are read-only; recently used ones are kept.

    Args:
        spec: a name (``"sqlite"``, ``"zipf"``), a path (``"run.stl.gz"``) or a mapping:
            ``{"generator": "zipf", "seed": 3}`` with the generator's parameters,
            ``{"recorded": "sqlite", "requests": 20000}`` (the first ones only), or
            ``{"file": "run.stl", "format": "stl", "clock_mhz": 800, "requests": 20000}``; with
            ``fold_bytes`` its addresses are taken modulo that number, which brings a trace of
            virtual addresses into the memory, as DRAMSys does.

    Raises:
        UnknownNameError: for an unknown workload or key, with suggestions.
        InvalidValueError: for a setting of the wrong type or out of range.
        TraceError: for a file that cannot be read.
    """
    chosen = canonical_workload(spec)
    stamp = None
    if "file" in chosen and os.path.exists(chosen["file"]):
        status = os.stat(chosen["file"])
        stamp = (status.st_mtime_ns, status.st_size)
    return _load(json.dumps(chosen, sort_keys=True), stamp)


def canonical_workload(spec: WorkloadSpec) -> dict[str, Any]:
    """The workload as a mapping that JSON can hold, with every default of a generator filled in.

    Two specs of the same workload have the same canonical form; it is itself a valid spec.

    Raises:
        UnknownNameError: for an unknown workload or key, with suggestions.
        InvalidValueError: for a setting of the wrong type or out of range.
    """
    if isinstance(spec, os.PathLike):
        return {"file": os.fspath(spec)}
    if isinstance(spec, str):
        return _canonical_name(spec)
    return {
        "generator": _canonical_generator,
        "recorded": _canonical_recorded,
        "file": _canonical_file,
    }[kind_of(spec, _KINDS)](spec)


def workload_label(spec: WorkloadSpec) -> str:
    """A short stable name for tables: ``"zipf(seed=3)"``, ``"sqlite"``, the stem of a file.

    Settings that equal their defaults do not show.
    """
    chosen = canonical_workload(spec)
    if "generator" in chosen:
        name = chosen.pop("generator")
        return GENERATORS[name].label(chosen)
    stem = chosen["recorded"] if "recorded" in chosen else trace_name(chosen["file"])
    return f"{stem}(requests={chosen['requests']})" if "requests" in chosen else str(stem)


def workload_names() -> dict[str, str]:
    """Every named workload with one line of description, recorded programs first."""
    recorded = {name: str(workload_card(name)["title"]) for name in recorded_names()}
    return recorded | {name: entry.description for name, entry in GENERATORS.items()}


def workload_card(name: str) -> dict[str, Any]:
    """What is known about a named workload.

    Returns:
        For a recorded program its card (program, command, input, cache model, clock, statistics,
        licence); for a generator its description and parameters.

    Raises:
        UnknownNameError: if there is no workload of that name.
    """
    if name in GENERATORS:
        entry = GENERATORS[name]
        return {
            "name": name,
            "kind": "generator",
            "title": entry.description,
            "parameters": [
                {
                    "name": p.name,
                    "type": p.kind,
                    "default": p.default,
                    "low": p.low,
                    "high": p.high,
                    "doc": p.doc,
                }
                for p in entry.parameters
            ],
        }
    if name not in recorded_names():
        raise UnknownNameError("workload", name, _all_names())
    with _shipped(f"{name}.json") as path:
        card: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return {"name": name, "kind": "recorded"} | card


@cache
def recorded_names() -> tuple[str, ...]:
    """The names of the recorded programs that ship with archgym, sorted."""
    folder = resources.files("archgym.envs.dram.traces").joinpath("recorded")
    if not folder.is_dir():
        return ()
    found = {entry.name.removesuffix(".npz") for entry in folder.iterdir()}
    return tuple(sorted(name for name in found if "." not in name))


def _all_names() -> list[str]:
    return [*recorded_names(), *GENERATORS]


def _canonical_name(spec: str) -> dict[str, Any]:
    if spec in GENERATORS:
        return _canonical_generator({"generator": spec})
    if spec in recorded_names():
        return {"recorded": spec}
    is_path = "/" in spec or os.sep in spec or spec.lower().endswith(TRACE_SUFFIXES)
    if is_path or os.path.isfile(spec):
        return {"file": spec}
    raise UnknownNameError("workload", spec, _all_names())


def _canonical_generator(spec: Mapping[str, Any]) -> dict[str, Any]:
    name = spec["generator"]
    if not isinstance(name, str) or name not in GENERATORS:
        raise UnknownNameError("generator", f"{name!s:.80}", GENERATORS, where="workload")
    settings = {key: value for key, value in spec.items() if key != "generator"}
    return {"generator": name} | GENERATORS[name].checked(settings)


def _canonical_recorded(spec: Mapping[str, Any]) -> dict[str, Any]:
    _check_keys(spec, _RECORDED_KEYS)
    name = spec["recorded"]
    if name not in recorded_names():
        raise UnknownNameError("recorded workload", name, recorded_names(), where="workload")
    return {"recorded": name} | _requests(spec)


def _canonical_file(spec: Mapping[str, Any]) -> dict[str, Any]:
    _check_keys(spec, _FILE_KEYS)
    if not isinstance(spec["file"], (str, os.PathLike)):
        raise InvalidValueError(f"workload: file={spec['file']!r} must be a path")
    chosen: dict[str, Any] = {"file": os.fspath(spec["file"])}
    if spec.get("format") is not None:
        if spec["format"] not in FORMATS:
            raise UnknownNameError("trace format", spec["format"], FORMATS, where="workload")
        chosen["format"] = spec["format"]
    for key in ("clock_mhz", "interval_ns"):
        value = spec.get(key)
        if value is None:
            continue
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise InvalidValueError(f"workload: {key}={value!r} must be a number")
        chosen[key] = float(value)
    return chosen | _whole(spec, "fold_bytes") | _requests(spec)


def _check_keys(spec: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in spec:
        if key not in known:
            raise UnknownNameError("workload key", key, known)


def _requests(spec: Mapping[str, Any]) -> dict[str, int]:
    """The setting ``requests`` of a trace that is cut to its first ones, if given."""
    return _whole(spec, "requests")


def _whole(spec: Mapping[str, Any], key: str) -> dict[str, int]:
    value = spec.get(key)
    if value is None:
        return {}
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidValueError(f"workload: {key}={value!r} must be an integer of at least 1")
    return {key: value}


@lru_cache(maxsize=16)
def _load(canonical: str, stamp: tuple[int, int] | None) -> Trace:
    """The trace of a canonical spec; ``stamp`` makes a changed file another one."""
    del stamp
    chosen = json.loads(canonical)
    label = workload_label(chosen)
    if "generator" in chosen:
        name = chosen.pop("generator")
        return _frozen(GENERATORS[name](**chosen))
    requests = chosen.pop("requests", None)
    fold_bytes = chosen.pop("fold_bytes", None)
    if "recorded" in chosen:
        with _shipped(f"{chosen['recorded']}.npz") as path:
            trace = read_trace(path)
    else:
        file = chosen.pop("file")
        trace = read_trace(file, **chosen)
    if fold_bytes is not None:
        folded = trace.address % fold_bytes
        trace = Trace(trace.name, trace.arrival_ps, folded, trace.is_write)
    return _frozen(_first(trace, requests, label))


def _first(trace: Trace, requests: int | None, label: str) -> Trace:
    if requests is not None and requests > len(trace):
        raise InvalidValueError(
            f"workload {trace.name!r}: requests={requests} is out of range: "
            f"the trace holds {len(trace)}"
        )
    cut = slice(requests)
    return Trace(label, trace.arrival_ps[cut], trace.address[cut], trace.is_write[cut])


def _frozen(trace: Trace) -> Trace:
    """The trace with read-only arrays, since it is shared by everyone who asks for it."""
    for column in (trace.arrival_ps, trace.address, trace.is_write):
        column.setflags(write=False)
    return trace


@contextmanager
def _shipped(file: str) -> Iterator[Path]:
    """A file of the folder ``recorded``, wherever the package lies."""
    source = resources.files("archgym.envs.dram.traces").joinpath("recorded").joinpath(file)
    if not source.is_file():
        raise TraceError(f"the shipped workload file {file!r} is missing from the installation")
    with resources.as_file(source) as path:
        yield path
