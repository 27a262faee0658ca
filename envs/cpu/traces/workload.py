"""Workloads of the processor environment: programs by name, by file, or by a generator.

>>> len(load_program({"generator": "chase", "instructions": 5000}))
5000
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeAlias

from archgym.envs.cpu.traces.champsim_format import ENDINGS, read_champsim
from archgym.envs.cpu.traces.generators import GENERATORS, check_settings, generate
from archgym.envs.cpu.traces.npz_format import read_npz
from archgym.envs.cpu.traces.program import Program
from archgym.errors import InvalidValueError, TraceError, UnknownNameError
from archgym.problem.workload import kind_of

__all__ = [
    "DEFAULT_WORKLOAD",
    "ProgramSpec",
    "Workload",
    "WorkloadSpec",
    "canonical_workload",
    "load_program",
    "load_workload",
    "program_card",
    "program_label",
    "recorded_names",
    "workload_names",
]

ProgramSpec: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]
"""A program: the name of a recorded one or of a generator, the path of a file, or a mapping with
one of the keys ``generator``, ``recorded``, ``file``; ``instructions`` keeps its first ones."""
WorkloadSpec: TypeAlias = ProgramSpec | list[ProgramSpec]
"""A program, a list of programs, or a mapping with ``programs`` and perhaps ``held_out``."""

DEFAULT_WORKLOAD: Final = "sqlite"
_KINDS: Final = ("generator", "recorded", "file", "programs")
_SUFFIXES: Final = (".npz", *(e + c for e in ENDINGS for c in ("", ".xz", ".gz")))
_PACKAGE: Final = "archgym.envs.cpu.traces"


@dataclass(frozen=True)
class Workload:
    """What is run.

    Attributes:
        programs: that the goals are means over.
        labels: a short stable name of each.
        held_out: programs that searches leave out, as a spec; empty for none.
    """

    programs: tuple[Program, ...]
    labels: tuple[str, ...]
    held_out: tuple[dict[str, Any], ...]


def load_workload(spec: WorkloadSpec) -> Workload:
    """The programs of a workload.

    Raises:
        UnknownNameError: for an unknown program or key, with suggestions.
        InvalidValueError: for a setting of the wrong type or out of range.
        TraceError: for a file that cannot be read.
    """
    chosen = canonical_workload(spec)
    programs = chosen.get("programs", [chosen])
    return Workload(
        tuple(load_program(one) for one in programs),
        tuple(program_label(one) for one in programs),
        tuple(chosen.get("held_out", ())),
    )


def canonical_workload(spec: WorkloadSpec) -> dict[str, Any]:
    """The workload as a mapping that JSON can hold, with every default filled in.

    Raises:
        UnknownNameError, InvalidValueError: as :func:`load_workload`.
    """
    if isinstance(spec, list):
        spec = {"programs": spec}
    if isinstance(spec, Mapping) and "programs" in spec:
        for key in spec:
            if key not in ("programs", "held_out"):
                raise UnknownNameError("workload key", key, ("programs", "held_out"))
        chosen = {key: _canonical_list(key, spec[key]) for key in spec if spec[key]}
        if "programs" not in chosen:
            raise InvalidValueError("workload: programs must be a list of at least one program")
        return chosen
    return _canonical_program(spec)


def program_label(spec: ProgramSpec) -> str:
    """A short stable name: ``sqlite``, ``chase(seed=3)``, the stem of a file."""
    chosen = _canonical_program(spec)
    if "generator" in chosen:
        name = chosen.pop("generator")
        defaults = check_settings(name, {})
        shown = [f"{key}={value}" for key, value in chosen.items() if value != defaults[key]]
        return f"{name}({', '.join(shown)})" if shown else str(name)
    stem = chosen["recorded"] if "recorded" in chosen else _stem(Path(chosen["file"]))
    cut = chosen.get("instructions")
    return f"{stem}(instructions={cut})" if cut else str(stem)


def load_program(spec: ProgramSpec) -> Program:
    """One program; recently used ones are kept.

    Raises:
        UnknownNameError, InvalidValueError, TraceError: as :func:`load_workload`.
    """
    chosen = _canonical_program(spec)
    stamp = None
    if "file" in chosen and os.path.exists(chosen["file"]):
        status = os.stat(chosen["file"])
        stamp = (status.st_mtime_ns, status.st_size)
    return _load(json.dumps(chosen, sort_keys=True), stamp)


def workload_names() -> dict[str, str]:
    """Every named program with one line of description, recorded ones first."""
    recorded = {name: str(program_card(name)["title"]) for name in recorded_names()}
    return recorded | {name: description for name, (description, _) in GENERATORS.items()}


def program_card(name: str) -> dict[str, Any]:
    """What is known about a recorded program.

    Raises:
        UnknownNameError: if there is none of that name.
    """
    if name not in recorded_names():
        raise UnknownNameError("recorded program", name, recorded_names())
    with _shipped(f"{name}.json") as path:
        card: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return card


@cache
def recorded_names() -> tuple[str, ...]:
    """The names of the recorded programs that ship with archgym, sorted."""
    folder = resources.files(_PACKAGE).joinpath("recorded")
    if not folder.is_dir():
        return ()
    found = {entry.name.removesuffix(".npz") for entry in folder.iterdir()}
    return tuple(sorted(name for name in found if "." not in name))


def _canonical_list(key: str, programs: Any) -> list[dict[str, Any]]:
    if not isinstance(programs, (list, tuple)):
        raise InvalidValueError(f"workload: {key}={programs!r:.80} must be a list of programs")
    return [_canonical_program(one) for one in programs]


def _canonical_program(spec: Any) -> dict[str, Any]:
    if isinstance(spec, os.PathLike):
        return {"file": os.fspath(spec)}
    if isinstance(spec, str):
        return _canonical_name(spec)
    kind = kind_of(spec, _KINDS, forms="a name, a path, a list")
    if kind == "programs":
        raise InvalidValueError("workload: a list of programs holds programs, not further lists")
    settings = {key: value for key, value in spec.items() if key != kind}
    if kind == "generator":
        name = spec["generator"]
        if not isinstance(name, str) or name not in GENERATORS:
            raise UnknownNameError("generator", f"{name!s:.80}", GENERATORS, where="workload")
        return {"generator": name} | check_settings(name, settings)
    for key in settings:
        if key != "instructions":
            raise UnknownNameError("workload key", key, (kind, "instructions"))
    chosen: dict[str, Any] = {kind: spec[kind]}
    if kind == "recorded" and spec[kind] not in recorded_names():
        raise UnknownNameError("recorded program", spec[kind], recorded_names(), where="workload")
    if kind == "file":
        if not isinstance(spec["file"], (str, os.PathLike)):
            raise InvalidValueError(f"workload: file={spec['file']!r} must be a path")
        chosen["file"] = os.fspath(spec["file"])
    return chosen | _instructions(settings)


def _instructions(settings: Mapping[str, Any]) -> dict[str, int]:
    """The setting ``instructions`` of a program that is cut to its first ones, if given."""
    value = settings.get("instructions")
    if value is None:
        return {}
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidValueError(
            f"workload: instructions={value!r} must be an integer of at least 1"
        )
    return {"instructions": value}


def _canonical_name(spec: str) -> dict[str, Any]:
    if spec in recorded_names():
        return {"recorded": spec}
    if spec in GENERATORS:
        return _canonical_program({"generator": spec})
    is_path = "/" in spec or os.sep in spec or spec.lower().endswith(_SUFFIXES)
    if is_path or os.path.isfile(spec):
        return {"file": spec}
    raise UnknownNameError("workload", spec, [*recorded_names(), *GENERATORS])


def _stem(path: Path) -> str:
    name = path.name
    for suffix in sorted(_SUFFIXES, key=len, reverse=True):
        if name.lower().endswith(suffix):
            return name[: -len(suffix)] or name
    return name


@lru_cache(maxsize=16)
def _load(canonical: str, stamp: tuple[int, int] | None) -> Program:
    """The program of a canonical spec; ``stamp`` makes a changed file another one."""
    del stamp
    chosen = json.loads(canonical)
    label = program_label(chosen)
    if "generator" in chosen:
        name = chosen.pop("generator")
        return generate(name, chosen)
    instructions = chosen.get("instructions")
    if "recorded" in chosen:
        with _shipped(f"{chosen['recorded']}.npz") as path:
            program = read_npz(path, label)
    else:
        path = Path(chosen["file"])
        if path.name.lower().endswith(".npz"):
            program = read_npz(path, label)
        elif path.name.lower().endswith(_SUFFIXES):
            return read_champsim(path, label, instructions)
        else:
            raise TraceError(
                f"{path}: is no instruction stream: its name must end in one of "
                f"{', '.join(_SUFFIXES)}"
            )
    if instructions is None:
        return program
    if instructions > len(program):
        raise InvalidValueError(
            f"workload {label!r}: instructions={instructions} is out of range: the program holds "
            f"{len(program)}"
        )
    return program.part(0, instructions)


@contextmanager
def _shipped(file: str) -> Iterator[Path]:
    """A file of the folder ``recorded``, wherever the package lies."""
    source = resources.files(_PACKAGE).joinpath("recorded").joinpath(file)
    if not source.is_file():
        raise TraceError(f"the shipped program file {file!r} is missing from the installation")
    with resources.as_file(source) as path:
        yield path
