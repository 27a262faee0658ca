"""Containers in which commands of a declaration run: Docker, Podman and Apptainer.

Folders have the same path inside as outside, files belong to the user who started archgym, and
there is no network unless the declaration asks for it. Images are never downloaded here, with one
exception: Apptainer itself downloads an image of a registry, which has no file on this machine.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from archgym.declared.places.place import Call, Launch
from archgym.errors import (
    ArchgymError,
    MissingDependencyError,
)
from archgym.simulators.external import ProgramOutput, last_lines, private_folder, run_program
from archgym.simulators.launch import with_limits

__all__ = ["Container", "ask"]

_ASK_LIMIT_S: Final = 60.0
_NOT_THERE: Final = (126, 127, 255)
_NOT_THERE_TEXTS: Final = (
    'exec: "{}"',  # runc
    "stat {}: no such file",  # runc, of a path
    "executable file `{}` not found",  # crun
    "exec {} failed",  # Docker's first process
    '"{}": executable file not found',  # Apptainer
)
_APPTAINER: Final = "APPTAINERENV_"


@dataclass(frozen=True)
class Container:
    """An image, and how one engine runs commands in it.

    Attributes:
        engine: ``docker``, ``podman`` or ``apptainer``.
        image: as the engine calls it.
        identity: the image with its digest, where one can ask for it.
        network: whether commands see the network.
        mounts: paths that are there inside, too, and cannot be written.
        options: further ones for the engine.
        user: user and group of processes inside, as ``1000:1000``.
    """

    engine: str
    image: str
    identity: str
    network: bool
    mounts: tuple[Path, ...]
    options: tuple[str, ...]
    user: str

    @property
    def title(self) -> str:
        """The image and the engine."""
        return f"image {self.image} of {self.engine}"

    def launch(self, call: Call) -> Launch:
        """How a call is started in the container."""
        if self.engine == "apptainer":
            return self._apptainer(call)
        memory, ulimit = call.memory_bytes, call.file_bytes
        command = [
            *(self.engine, "run", "--rm", "--pull=never"),
            *(f"--name={self._name(call)}", "--label=archgym"),
            *(() if self.network else ("--network=none",)),
            *(f"--user={self.user}", "--security-opt=label=disable"),
            *self._options_of_engine(call),
            *(f"--ulimit=fsize={ulimit}:{ulimit}", "--ulimit=core=0:0"),
            *(() if memory is None else (f"--memory={memory}b", f"--memory-swap={memory}b")),
            *(f"--mount={_mount('bind', path, '', writable)}" for path, writable in self._at(call)),
            f"--workdir={call.folder}",
            *(f"--env={name}={value}" for name, value in self._variables(call).items()),
            *self.options,
            *(f"--entrypoint={call.command[0]}", self.image, *call.command[1:]),
        ]
        return Launch(command)

    def check_ended(self, call: Call, output: ProgramOutput) -> None:
        """Tells a program that is not in the image from one that failed.

        Raises:
            MissingDependencyError: if it is not there, or the engine could not begin.
        """
        program = call.command[0]
        said = (text.format(program) for text in _NOT_THERE_TEXTS)
        if output.exit_code in _NOT_THERE and any(text in output.stderr for text in said):
            raise MissingDependencyError(
                f"there is no program {program!r} in the image {self.image}"
            )
        own = (f"{self.engine}:", "Error")
        by_engine = any(line.startswith(own) for line in output.stderr.splitlines()[-20:])
        if self.engine != "apptainer" and output.exit_code == 125 and by_engine:
            raise MissingDependencyError(
                f"{self.engine} could not begin: {last_lines(output.stderr) or 'it says nothing'}"
            )

    def stop(self, call: Call) -> None:
        """Kills and removes the container of a call; processes of Apptainer are our own."""
        if self.engine == "apptainer":
            return
        at_once = ("--time=0", "--ignore") if self.engine == "podman" else ()
        with contextlib.suppress(ArchgymError, TimeoutError):
            ask(self.engine, "rm", "--force", "--volumes", *at_once, self._name(call))

    # -- parts -----------------------------------------------------------------------------------

    def _name(self, call: Call) -> str:
        return f"archgym-{call.mark}"

    def _variables(self, call: Call) -> dict[str, str]:
        return {"HOME": "/tmp", **call.variables}  # noqa: S108 - of the container

    def _options_of_engine(self, call: Call) -> tuple[str, ...]:
        """Docker brings a first process; Podman ends a container also if archgym was killed."""
        if self.engine == "docker":
            return ("--init",)
        limit = f"--timeout={math.ceil(call.time_limit_s) + 5}"
        return (limit,) if os.getuid() == 0 else (limit, "--userns=keep-id")

    def _at(self, call: Call) -> list[tuple[Path, bool]]:
        """Paths that are mounted, parents first, and whether they can be written."""
        found = dict.fromkeys((*self.mounts, *call.readable), False)
        found |= dict.fromkeys((*call.writable, call.folder), True)
        return sorted(found.items())

    def _apptainer(self, call: Call) -> Launch:
        """Its limits of file size and its environment are inherited, its memory set inside."""
        inside = list(call.command)
        if call.memory_bytes is not None:
            limit = f'ulimit -v {call.memory_bytes // 1024} && exec "$@"'
            inside = ["sh", "-c", limit, "sh", *inside]
        command = [
            *("apptainer", "--quiet", "exec", "--containall", "--no-home"),
            *(() if self.network else ("--net", "--network=none")),
            *(
                part
                for path, writable in self._at(call)
                for part in ("--mount", _mount("bind", path, "ro", writable))
            ),
            f"--pwd={call.folder}",
            *self.options,
            *(self.image, *inside),
        ]
        variables = {f"{_APPTAINER}{k}": value for k, value in self._variables(call).items()}
        del variables[f"{_APPTAINER}HOME"]  # which it refuses
        mark = {name: value for name, value in call.variables.items() if name not in call.env}
        return Launch(
            with_limits(command, file_bytes=call.file_bytes),
            {**mark, **variables},
            call.file_bytes,
        )


def ask(engine: str, *arguments: str) -> ProgramOutput:
    """What an engine answers, whatever its exit code is.

    Raises:
        MissingDependencyError: if it does not answer.
    """
    try:
        with private_folder() as folder:
            return run_program(
                (engine, *arguments), folder, time_limit_s=_ASK_LIMIT_S, good_exit_codes=None
            )
    except TimeoutError as error:
        raise MissingDependencyError(f"{engine} does not answer: {error}") from None


def _mount(kind: str, path: Path, read_only: str, writable: bool) -> str:
    """A mount at the same path inside, in the notation of all three engines."""
    fields: Sequence[str] = [f"type={kind}", f"source={path}", f"destination={path}"]
    if not writable:
        fields = [*fields, read_only or "readonly"]
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(fields)
    return text.getvalue()
