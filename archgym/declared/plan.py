"""What is run for a design: files, stages, failures and readings, compiled and checked.

Everything that can be known to be wrong with a declaration is found here, before anything runs.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import Any, Final

from archgym.declared.edits import steps_of
from archgym.declared.files import File, declared_file, file_sha256
from archgym.declared.load import Source
from archgym.declared.names import BUILT_IN, Names
from archgym.declared.readings.extract import compiled
from archgym.declared.readings.partial_plan import Partial, Reading, own_patterns, planned
from archgym.declared.schema import (
    READINGS,
    FailureEntry,
    MetricEntry,
    StageEntry,
)
from archgym.declared.templates import Template
from archgym.declared.units import factor
from archgym.errors import InvalidValueError, UnknownNameError, check_choice
from archgym.space import Expression, param
from archgym.space.expression import Literal
from archgym.space.formula import parse_formula

__all__ = ["Failure", "Plan", "Stage"]

_FOLDER: Final = re.compile(r"\bfolder\.([A-Za-z_]\w*)")
_HERE: Final = re.compile(r"\{\{\s*here\s*\}\}/([\w./+-]+)")
_NEEDS_STAGES: Final = ("files", "failures", "noise", "partial", "where", "inputs")
"""Keys that mean nothing in a declaration without stages."""
_OUTPUTS: Final = ("stdout", "stderr")


@dataclass(frozen=True)
class Stage:
    """One command.

    Attributes:
        name: of the stage.
        entry: its limits.
        command: the program and its arguments.
        env: environment variables.
        files: that are written into its own folder before it runs.
        inputs: files beside the declaration that the command names.
    """

    name: str
    entry: StageEntry
    command: tuple[Template, ...]
    env: Mapping[str, Template]
    files: tuple[File, ...]
    inputs: tuple[Path, ...]

    @property
    def own_program(self) -> bool:
        """Whether the program is one that an earlier stage made."""
        return "folder" in self.command[0].names


@dataclass(frozen=True)
class Failure:
    """A text in the output, and what it means."""

    entry: FailureEntry
    pattern: Any


class Plan:
    """All that a declaration says about running a design.

    Args:
        source: the declaration.
        names: its names.

    Raises:
        InvalidValueError, UnknownNameError: for what is not possible, with its line.
    """

    def __init__(self, source: Source, names: Names) -> None:
        self._source, self._names = source, names
        declaration = source.declaration
        self._check_stages()
        self.stages = tuple(self._stage(name) for name in declaration.stages)
        self.files = tuple(
            declared_file(source, number, partial(self._template, allowed=names.all))
            for number, entry in enumerate(declaration.files)
            if entry.stage is None
        )
        self.checkpoint = self._checkpoint()
        self.failures = tuple(
            self._failure(number, entry) for number, entry in enumerate(declaration.failures)
        )
        self.readings: list[Reading] = []
        for name, entry in declaration.metrics.items() if self.stages else ():
            with source.at("metrics", name):
                self.readings.append(self._reading(name, entry))
        self.partial: Partial | None = None
        if declaration.partial is not None:
            patterns = own_patterns(source, self.readings)
            with source.at("partial"):
                whole = self._formula(str(declaration.partial.of))
                self.partial = planned(source, self.readings, patterns, whole)
        self.inputs: list[Path] = []
        for number, name in enumerate(declaration.inputs):
            with source.at("inputs", number):
                self.inputs += source.all_beside(name)

    @cached_property
    def content_sha256(self) -> str:
        """Hash of what results depend on: the declaration without texts and limits, and files."""
        declared = self._source.declaration
        left_out = {"description", "install", "objective", "keep", "rules", "version", "workloads"}
        left_out |= {"partial", "where"}  # the image is a part of the version
        data = declared.model_dump(mode="json", exclude=left_out)
        data["parameters"] = {
            name: one.when_inactive
            for name, one in declared.parameters.items()
            if one.when_inactive is not None
        }
        for entry in (*data["metrics"].values(), *data["fidelities"]):
            entry.pop("doc")
        for stage in data["stages"].values():
            for key in ("uses", "where", "checkpoint"):
                stage.pop(key)
            for key in [key for key in stage if "limit" in key]:
                stage.pop(key)
        files = [*self.files, *(file for stage in self.stages for file in stage.files)]
        contents = [f.raw if f.template is None else f.template.text.encode() for f in files]
        hashes = [hashlib.sha256(content).hexdigest() for content in contents]
        hashes += [file_sha256(path) for path in self.inputs]
        hashes += [file_sha256(path) for stage in self.stages for path in stage.inputs]
        text = json.dumps([data, hashes], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    # -- parts -----------------------------------------------------------------------------------

    def _check_stages(self) -> None:
        """Refuses what says how something is run or read, where nothing is run."""
        declaration = self._source.declaration
        if declaration.stages:
            return
        about = "(the commands, by name, in their order)"
        given = [key for key in _NEEDS_STAGES if getattr(declaration, key)]
        given += [f"metrics.{n}" for n, one in declaration.metrics.items() if one.given(READINGS)]
        if given:
            with self._source.at("stages"):
                raise InvalidValueError(
                    f"this is missing {about}, though {given[0]} needs it; without stages a "
                    "program simulates, through archgym serve, and metrics have no readings"
                )

    def _stage(self, name: str) -> Stage:
        entry, source = self._source.declaration.stages[name], self._source
        allowed: Collection[str] = self._names.all
        if entry.uses is not None:
            if name == "run":
                with source.at("stages", name):
                    raise InvalidValueError(
                        "a stage with 'uses' is not called run: folder.run is the run's folder"
                    )
            usable = [
                one for one in allowed if one not in ("here", "folder", "repeat", "resumed_from")
            ]
            for number, one in enumerate(entry.uses):
                with source.at("stages", name, "uses", number):
                    check_choice("name", one, usable)
            allowed = {*entry.uses, "here", "folder"}
        command = []
        for number, text in enumerate(entry.run):
            with source.at("stages", name, "run", number):
                command.append(self._template(text, allowed, name))
        with source.at("stages", name, "run"):
            if not entry.run[0].strip():
                raise InvalidValueError("the first of it is the program, which is empty")
        env = {}
        for variable, text in entry.env.items():
            with source.at("stages", name, "env", variable):
                env[variable] = self._template(text, allowed, name)
        template = partial(self._template, allowed=allowed, stage=name)
        files = tuple(
            declared_file(source, number, template)
            for number, file in enumerate(source.declaration.files)
            if file.stage == name
        )
        named = [source.folder / found for text in entry.run for found in _HERE.findall(text)]
        inputs = tuple(path for path in named if path.is_file())
        return Stage(name, entry, tuple(command), env, files, inputs)

    def _checkpoint(self) -> tuple[str, str] | None:
        """The stage that has a checkpoint, and its path; ``None`` if there is none."""
        declaration = self._source.declaration
        found = None
        for name, stage in declaration.stages.items():
            if stage.checkpoint is None:
                continue
            with self._source.at("stages", name, "checkpoint"):
                path = PurePosixPath(stage.checkpoint)
                if path.is_absolute() or ".." in path.parts or not path.name:
                    raise InvalidValueError(
                        f"it is {stage.checkpoint!r}, allowed is a path in the folder of the run"
                    )
                if stage.uses is not None:
                    raise InvalidValueError(f"stage {name!r} has 'uses': it does not run each time")
                if len(declaration.fidelities) < 2:
                    raise InvalidValueError("a checkpoint needs two fidelities or more")
                if found is not None:
                    raise InvalidValueError(f"stage {found[0]!r} has one already")
            found = name, stage.checkpoint
        return found

    def _template(self, text: str, allowed: Collection[str], stage: str = "") -> Template:
        uses = stage and self._source.declaration.stages[stage].uses is not None
        where = f"stage {stage!r} sees only what it uses" if uses else ""
        template = Template(text, allowed, where)
        if "folder" in template.names:
            own = [n for n, s in self._source.declaration.stages.items() if s.uses is not None]
            before = own[: own.index(stage)] if uses else own
            for name in _FOLDER.findall(text):
                check_choice("folder", name, before if uses else [*before, "run"])
        return template

    def _failure(self, number: int, entry: FailureEntry) -> Failure:
        with self._source.at("failures", number):
            if (entry.text is None) == (entry.regex is None):
                raise InvalidValueError("it has exactly one of the keys text and regex")
            if entry.stage is not None:
                check_choice("stage", entry.stage, self._source.declaration.stages)
            return Failure(entry, None if entry.regex is None else compiled(entry.regex))

    def _reading(self, name: str, entry: MetricEntry) -> Reading:
        kinds = entry.given(READINGS)
        if len(kinds) != 1:
            found = " and ".join(kinds) or "none"
            raise InvalidValueError(
                f"it has exactly one of the keys {', '.join(READINGS)}, not {found}"
            )
        (kind,) = kinds
        what: Any = getattr(entry, entry.field_of(kind))
        stages = self._source.declaration.stages
        stage = entry.stage if entry.stage is not None else list(stages)[-1]
        check_choice("stage", stage, stages)
        if kind == "regex":
            what = compiled(what)
        elif kind == "formula":
            what = self._formula(what)
        elif kind == "json":
            steps_of(what)
        elif kind == "seconds":
            check_choice("stage", what, stages)
            if stages[what].uses is not None:
                raise InvalidValueError(f"stage {what!r} has 'uses': it does not run each time")
        for path in (entry.source, entry.file_size or ""):
            if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                raise InvalidValueError(
                    f"the file is {path!r}, allowed is a path inside the folder of the stage"
                )
        if entry.where and kind != "csv":
            raise InvalidValueError(f"where is for a csv, not for {kind}")
        read_unit = {"seconds": "s", "file_size": "B"}.get(kind, entry.read_unit)
        return Reading(
            name,
            entry,
            kind,
            what,
            stage,
            1.0 if read_unit is None else factor(read_unit, entry.unit),
        )

    def _formula(self, text: str) -> Expression | Literal:
        known: dict[str, Expression | Literal] = {
            name: param(name) for name in self._names.all if name not in BUILT_IN
        }
        before = [reading.name for reading in self.readings]
        try:
            return parse_formula(text, {**known, **{name: param(name) for name in before}})
        except UnknownNameError:
            for name in self._source.declaration.metrics:
                if name not in before and re.search(rf"\b{name}\b", text):
                    raise InvalidValueError(
                        f"{text!r}: {name} must be listed before the metric that needs it"
                    ) from None
            raise
