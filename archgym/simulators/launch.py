"""Starts a program with limits that hold from its first instruction on.

Limits that are set from outside after the start come too late for what a program starts at once.
Where the system has them, util-linux's ``prlimit`` and ``setpriv`` set the limits and then become
the program.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from archgym.errors import MissingDependencyError

__all__ = ["check_program", "with_limits"]


def with_limits(
    command: Sequence[str], *, file_bytes: int, memory_bytes: int | None = None
) -> list[str]:
    """The command that sets limits and then becomes a program.

    It also has the program killed when the process that started it dies.

    Args:
        command: the program and its arguments.
        file_bytes: size to which it may grow a file.
        memory_bytes: address space that each of its processes may have.
    """
    prlimit, setpriv = _tool("prlimit"), _tool("setpriv")
    before: list[str] = []
    if setpriv:
        before += [setpriv, "--pdeathsig", "KILL", "--"]
    if prlimit:
        before += [prlimit, f"--fsize={file_bytes}"]
        before += [] if memory_bytes is None else [f"--as={memory_bytes}"]
        before += ["--"]
    return [*before, *command]


def check_program(program: str, folder: Path, search: str | None = None) -> None:
    """Refuses a program that cannot be started.

    Args:
        program: name, found on PATH, or path, from the folder if it is relative.
        folder: where it is to run.
        search: PATH; this process's by default.

    Raises:
        MissingDependencyError: if there is none.
    """
    if os.sep not in program:
        if shutil.which(program, path=search) is None:
            raise MissingDependencyError(f"there is no program {program!r} on PATH")
        return
    path = folder / program
    if not path.is_file():
        raise MissingDependencyError(f"there is no program {program}")
    if not os.access(path, os.X_OK):
        raise MissingDependencyError(f"{program} is no executable file: chmod +x makes it one")


@cache
def _tool(name: str) -> str:
    return shutil.which(name) or ""
