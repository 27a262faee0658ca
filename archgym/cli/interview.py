"""The questions of ``archgym new env NAME --command``."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import typer

from archgym.declared.proposals.interview import (
    Answers,
    Knob,
    check_name,
    declaration_text,
    knob_of,
    reading_words,
)
from archgym.declared.proposals.propose import Proposal, file_size, proposals
from archgym.errors import ArchgymError, InvalidValueError, check_choice
from archgym.simulators.external import private_folder, run_program
from archgym.simulators.launch import check_program

__all__ = ["interviewed"]

_TIME_LIMIT_S = 3600.0
_SHOWN = 40
Answer = TypeVar("Answer")


def interviewed(name: str, out: Path) -> str:
    """The text of a declaration, from the answers of somebody at a terminal.

    Args:
        name: of the file.
        out: folder in which it will be.

    Raises:
        InvalidValueError: if there is no terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidValueError(
            "--command without a folder asks questions, and there is no terminal to ask on: give "
            f"the folder of a finished run, as in archgym new env {name} --command FOLDER"
        )
    answers = Answers(name, _asked("Program and arguments, as you type them", _command))
    answers.knobs = _knobs(answers.command)
    answers.metrics = _metrics(answers)
    names = [one.name for one in answers.metrics]
    goal = _asked(f"Which one is optimised ({', '.join(names[:_SHOWN])})", _one_of(names), names[0])
    direction = _asked("minimize or maximize it", _one_of(["minimize", "maximize"]), "minimize")
    answers.goals = {goal: direction}
    return declaration_text(answers, out)


def _asked(question: str, read: Callable[[str], Answer], default: str | None = None) -> Answer:
    """An answer that can be read; asks again where it cannot."""
    while True:
        try:
            return read(typer.prompt(question, default=default, show_default=bool(default)))
        except ArchgymError as error:
            typer.echo(f"  {error}")


def _command(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InvalidValueError(f"the quotes do not match: {error}") from None
    check_program(words[0] if words else "", Path.cwd())
    return words


def _knobs(command: Sequence[str]) -> list[Knob]:
    found: list[Knob] = []
    typer.echo("Which parts of the command are varied? An example is the 4 of --ways=4.")
    while True:
        part = typer.prompt("Part of the command (empty: no more)", default="", show_default=False)
        if part and not any(part in text for text in command[1:]):
            typer.echo(f"  {part!r} does not stand in the arguments {shlex.join(command[1:])}")
        elif part:
            name = _asked("  Its name", check_name)
            read = partial(_knob, name, part, command)
            found.append(_asked("  Its values, as 1 2 4 or 1..16 or lru fifo", read))
        elif found:
            return found
        else:
            typer.echo(
                "  at least one part is varied; if all that varies is in a file that the program "
                "reads, end this with Ctrl-C and give the folder of a finished run: "
                "archgym new env NAME --command FOLDER"
            )


def _knob(name: str, part: str, command: Sequence[str], values: str) -> Knob:
    return knob_of(name, part, values, command)


def _metrics(answers: Answers) -> list[Proposal]:
    """Numbers to read; what else the run shows in which they are seen goes to the answers."""
    command = answers.command
    where = typer.prompt(
        "Where the numbers appear: stdout, stderr or a file that it writes (empty: look for them)",
        default="",
        show_default=False,
    )
    if typer.confirm(f"Run {shlex.join(command)} once now, to look for them?", default=False):
        found = _run(answers, where)
        if found:
            return _chosen(found)
    return [_asked("Words before a number in the output, as 'total cycles:'", _worded(where))]


def _run(answers: Answers, where: str) -> list[Proposal]:
    command = answers.command
    before = {text: _state(text) for text in command[1:]}
    with private_folder() as folder:
        program = os.path.abspath(command[0]) if os.sep in command[0] else command[0]
        words = [program, *(_absolute(text) for text in command[1:])]
        try:
            output = run_program(words, folder, time_limit_s=_TIME_LIMIT_S, good_exit_codes=None)
        except (ArchgymError, TimeoutError) as error:
            typer.echo(f"  {error}")
            return []
        answers.exit_code = max(0, output.exit_code)
        answers.written = [text for text, was in before.items() if was and _state(text) != was]
        made = {one.name: one.stat().st_size for one in folder.iterdir() if one.is_file()}
        made |= {_last(text): os.stat(_last(text)).st_size for text in answers.written}
        typer.echo(f"  it took {output.seconds:.3g} s and ended with exit code {output.exit_code}")
        for name in ("stdout", "stderr"):
            (folder / name).write_text(getattr(output, name), encoding="utf-8")
        found: list[Proposal] = []
        with contextlib.suppress(InvalidValueError):  # no number at all
            found = proposals(folder)
    sizes = [(name, made[name]) for name in sorted(made) if not Path(name).is_absolute()]
    found += [file_size(name, size) for name, size in sizes]
    found.append(Proposal("time_s", "s", {"seconds": "run"}, f"{output.seconds:.3g}"))
    own = [one for one in found if one.reading.get("from", "stdout") == where]
    if where and not own:
        typer.echo(f"  {where} has no number after a name or a word")
    return own or found


def _chosen(found: list[Proposal]) -> list[Proposal]:
    for number, one in enumerate(found[:_SHOWN], 1):
        typer.echo(f"  {number:3}  {one.name} = {one.value} {one.unit}".rstrip())

    def read(text: str) -> list[Proposal]:
        words = text.replace(",", " ").split()
        allowed = [str(number) for number in range(1, min(len(found), _SHOWN) + 1)]
        for word in words:
            check_choice("number", word, allowed)
        return [found[int(word) - 1] for word in dict.fromkeys(words)] or found

    return _asked("Which are metrics (numbers as 1 3; all if empty)", read, "")


def _worded(where: str) -> Callable[[str], Proposal]:
    def read(words: str) -> Proposal:
        with private_folder() as folder:
            (folder / (where or "stdout")).write_text(reading_words(words), encoding="utf-8")
            found = proposals(folder)[0]
        return Proposal(found.name, found.unit, found.reading, "")

    return read


def _one_of(allowed: Sequence[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        check_choice("answer", text, allowed)
        return text

    return read


def _last(text: str) -> str:
    """The file that an argument names, also one such as ``--out=FILE``."""
    return text.rpartition("=")[2]


def _state(text: str) -> tuple[int, int] | None:
    """When a file that an argument names was changed, and its size; ``None`` if there is none."""
    try:
        about = os.stat(_last(text) or ".")
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size


def _absolute(text: str) -> str:
    """An argument that is a file of the working folder, for a program that runs elsewhere."""
    before, equals, last = text.rpartition("=")
    return f"{before}{equals}{os.path.abspath(last)}" if last and Path(last).exists() else text
