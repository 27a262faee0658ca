"""The version of a declared environment: what its results are kept under."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from archgym.declared.places.place import Call, Place
from archgym.errors import InvalidValueError, MissingDependencyError, SimulationError
from archgym.simulators.external import (
    FILE_LIMIT_BYTES,
    ProgramOutput,
    ended_badly,
    private_folder,
    run_program,
)
from archgym.simulators.leftovers import new_mark

__all__ = ["program_version", "version_text"]

_LIMIT_S: Final = 60.0


@functools.cache
def program_version(command: tuple[str, ...], install: str, place: Place) -> str:
    """What a command prints, or the text of a command without a program.

    Args:
        command: the program and its arguments.
        install: how to get it.
        place: where it runs.

    Raises:
        InvalidValueError: if it fails.
        MissingDependencyError: if it is not there.
    """
    if not command:
        return ""
    if not command[0]:
        return " ".join(command[1:])
    try:
        output = _output(command, place)
    except (SimulationError, TimeoutError) as error:
        raise InvalidValueError(f"the version cannot be had: {error}") from None
    except MissingDependencyError as error:
        advice = f". {install.rstrip('. ')}." if install else ""
        raise MissingDependencyError(f"{error}{advice}") from None
    lines = (output.stdout or output.stderr).strip().splitlines()
    return "\n".join(lines)[:1000]


def version_text(content_sha256: str, images: Iterable[str], program: str) -> str:
    """The version that results are kept under: readable where the program says a short one.

    Args:
        content_sha256: of the declaration.
        images: of the containers in which its stages run; empty texts for this machine.
        program: what the program says of itself.
    """
    lines = (line.strip() for line in program.splitlines())
    first = next((line[:60] for line in lines if any(map(str.isalnum, line))), "")
    images = list(images)
    parts = [content_sha256, *(images if any(images) else ()), program]
    whole = hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]
    return f"{first} {whole}".strip()


def _output(command: tuple[str, ...], place: Place) -> ProgramOutput:
    name = Path(command[0]).name
    with private_folder() as folder:
        call = Call(command, folder, {}, new_mark(), _LIMIT_S, FILE_LIMIT_BYTES, None)
        launch = place.launch(call)
        try:
            output = run_program(
                launch.command,
                folder,
                time_limit_s=_LIMIT_S,
                environment=launch.environment,
                name=name,
                good_exit_codes=None,
            )
        except BaseException:
            place.stop(call)
            raise
    place.check_ended(call, output)
    if output.exit_code:
        raise ended_badly(name, output)
    return output
