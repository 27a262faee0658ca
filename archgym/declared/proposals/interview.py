"""Writes a declaration from answers: a command, what is varied in it, and what is read."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from archgym.declared.proposals.propose import Proposal
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["Answers", "Knob", "check_name", "declaration_text", "knob_of", "reading_words"]

_RANGE: Final = re.compile(r"\s*(?P<low>[-+.\deE]+?)\s*\.\.\s*(?P<high>[-+.\deE]+)\s*")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Knob:
    """A part of the command that is varied.

    Attributes:
        name: of the parameter.
        part: text of the command in whose place its value stands.
        entry: of the parameter.
    """

    name: str
    part: str
    entry: Mapping[str, Any]


@dataclass
class Answers:
    """What somebody has said about a program.

    Attributes:
        name: of the file.
        command: the program and its arguments.
        knobs: what is varied.
        metrics: numbers of its output.
        goals: ``minimize`` or ``maximize`` of metrics; the first of it is the objective.
        exit_code: with which it ends when all is well.
        written: arguments that name files which it writes: they belong into the run's folder.
    """

    name: str
    command: list[str]
    knobs: list[Knob] = field(default_factory=list)
    metrics: list[Proposal] = field(default_factory=list)
    goals: dict[str, str] = field(default_factory=dict)
    exit_code: int = 0
    written: list[str] = field(default_factory=list)


def knob_of(name: str, part: str, values: str, command: Sequence[str]) -> Knob:
    """A knob of a command.

    >>> knob_of("size", "32", "16 32 64", ["sim", "--kb=32"]).entry
    {'values': [16, 32, 64], 'baseline': 32}
    >>> knob_of("volt", "1.0", "0.6..1.2", ["sim", "1.0"]).entry
    {'real': [0.6, 1.2], 'baseline': 1.0}

    Args:
        name: of it.
        part: a text that stands in the command.
        values: ``1 2 4``, ``1..16``, ``0.5..2.0`` or words.
        command: the program and its arguments.

    Raises:
        InvalidValueError, UnknownNameError: if it is not possible.
    """
    check_name(name)
    if not any(part in text for text in command[1:]):
        raise UnknownNameError("part of the command", part, list(command[1:]))
    baseline = _scalar(part)
    if bounds := _RANGE.fullmatch(values):
        ends = [_scalar(bounds["low"]), _scalar(bounds["high"])]
        if not all(isinstance(one, int | float) for one in (*ends, baseline)):
            raise InvalidValueError(f"{values!r} is no range of numbers around {part!r}")
        kind = "integer" if all(isinstance(one, int) for one in (*ends, baseline)) else "real"
        if not ends[0] <= baseline <= ends[1]:
            raise InvalidValueError(f"{part} stands in the command and is not in {values}")
        return Knob(name, part, {kind: ends, "baseline": baseline})
    if ".." in values:
        raise InvalidValueError(f"{values!r} is no range of numbers, as 1..16 or 0.5..2.0 is one")
    listed = [_scalar(word) for word in values.replace(",", " ").split()]
    if baseline not in listed:
        raise InvalidValueError(
            f"{part!r} stands in the command and is not among the values {values!r}"
        )
    numbers = all(isinstance(one, int | float) for one in listed)
    kind = "values" if numbers else "choices"
    listed = sorted(listed) if numbers else [str(one) for one in listed]
    return Knob(name, part, {kind: listed, "baseline": baseline if numbers else part})


def check_name(name: str) -> str:
    """A name that a parameter can have.

    Raises:
        InvalidValueError: if it is none.
    """
    if not _NAME.fullmatch(name):
        raise InvalidValueError(f"a name is made of letters, digits and '_', not {name!r}")
    return name


def reading_words(words: str) -> str:
    """A line of output that has a number after some words, for what was not run yet."""
    return f"{words.strip()} 1"


def declaration_text(answers: Answers, out: Path) -> str:
    """The text of the declaration.

    Files of the working folder that the command names are found from the declaration's folder.

    Args:
        answers: what was said.
        out: folder in which the declaration will be.
    """
    command = [
        text if number == 0 or text in answers.written else _beside(text, out)
        for number, text in enumerate(answers.command)
    ]
    if os.sep in command[0]:
        command[0] = _beside(command[0], out)
    for knob in answers.knobs:
        place = next(i for i, text in enumerate(command) if i and knob.part in text)
        command[place] = command[place].replace(knob.part, f"{{{{ {knob.name} }}}}", 1)
    stage: dict[str, Any] = {"run": command}
    if answers.exit_code:
        stage["good_exit_codes"] = [answers.exit_code]
    lines = [
        f"# Next: archgym check {answers.name}.yaml",
        f"description: {answers.name}",
        "parameters:",
        *(f"  {knob.name}: {_flow(knob.entry)}" for knob in answers.knobs),
        "stages:",
        "  run:",
        *(f"    {key}: {_flow(value)}" for key, value in stage.items()),
        "    time_limit_s: 3600",
        "metrics:",
    ]
    for one in answers.metrics:
        goal = answers.goals.get(one.name)
        entry = {
            **one.reading,
            **({"unit": one.unit} if one.unit else {}),
            **({"goal": goal} if goal == "maximize" else {}),
        }
        seen = f"  # {one.value}" if one.value else ""
        lines.append(f"  {one.name}: {_flow(entry)}{seen}")
    first = next(iter(answers.goals))
    lines.append(f"objective: {answers.goals[first]} {first}")
    return "\n".join(lines) + "\n"


def _beside(text: str, out: Path) -> str:
    """An argument that is a file, as the declaration finds it; also one such as ``--in=FILE``."""
    before, equals, last = text.rpartition("=")
    path = Path(last)
    if not last or path.is_absolute() or not path.exists():
        return text
    return f"{before}{equals}{{{{ here }}}}/{os.path.relpath(path, out)}"


def _scalar(text: str) -> Any:
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        if math.isfinite(value):
            return value
    return text


def _flow(value: Any) -> str:
    return yaml.safe_dump(
        value, default_flow_style=True, width=10_000, sort_keys=False, allow_unicode=True
    ).strip()
