"""Folders of runs that stay: what was run and printed, beside the files of the run."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from archgym.reading.files import read_text
from archgym.simulators.external import ProgramOutput

__all__ = ["COMMANDS", "KeptRun", "kept_run", "save_run"]

COMMANDS: Final = "commands.txt"
_READ_LIMIT_BYTES: Final = 1 << 22
_FILE: Final = "# file "
_STAGE: Final = re.compile(r"# stage (\w+): ")


@dataclass(frozen=True)
class KeptRun:
    """What ``commands.txt`` says of a run.

    Attributes:
        files: paths of what was written before the program began, inside the folder.
        stages: names of those that were run, in their order.
    """

    files: frozenset[str]
    stages: tuple[str, ...]


def save_run(
    folder: Path,
    files: Iterable[str],
    ran: Sequence[str],
    printed: Mapping[str, ProgramOutput],
) -> None:
    """Adds to the folder of a run what was run, and what each stage printed.

    The outputs are ``STAGE.stdout`` and ``STAGE.stderr``, or ``archgym.STAGE.stdout`` where the
    program has left a file of that name.

    Args:
        folder: of the run.
        files: paths of what was written before the program began, inside the folder.
        ran: the commands, each with a line ``# stage NAME: ...`` above it.
        printed: outputs by stage.
    """
    with contextlib.suppress(OSError):
        lines = [*(f"{_FILE}{path}" for path in files), *ran]
        (folder / COMMANDS).write_text("\n".join(lines) + "\n", "utf-8")
        for stage, output in printed.items():
            for ending, text in (("stdout", output.stdout), ("stderr", output.stderr)):
                path = folder / f"{stage}.{ending}"
                path = path.with_name(f"archgym.{path.name}") if os.path.lexists(path) else path
                path.write_text(text, "utf-8")


def kept_run(folder: Path) -> KeptRun | None:
    """The run that a folder was kept of; ``None`` if it is a folder of something else."""
    try:
        lines = read_text(folder / COMMANDS, _READ_LIMIT_BYTES).splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    stages = tuple(dict.fromkeys(found[1] for line in lines if (found := _STAGE.match(line))))
    files = frozenset(line.removeprefix(_FILE) for line in lines if line.startswith(_FILE))
    return KeptRun(files, stages) if stages else None
