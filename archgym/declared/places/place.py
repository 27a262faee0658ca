"""A place where commands run: this machine, or another one of the same form."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from archgym.simulators.external import ProgramOutput
from archgym.simulators.launch import check_program, with_limits
from archgym.simulators.leftovers import VARIABLE

__all__ = ["HOST", "Call", "Launch", "Place"]

_LOCALE: Final = {"LC_ALL": "C.UTF-8"}


@dataclass(frozen=True)
class Call:
    """One run of a command.

    Attributes:
        command: the program and its arguments.
        folder: where it runs, absolute.
        env: environment variables that the declaration sets.
        mark: value of an environment variable by which processes that it leaves are found.
        time_limit_s: after which it is killed, s.
        file_bytes: size to which it may grow a file.
        memory_bytes: that it may have; ``None`` for no limit.
        writable: folders besides its own that it may write.
        readable: folders and files that it may read.
    """

    command: Sequence[str]
    folder: Path
    env: Mapping[str, str]
    mark: str
    time_limit_s: float
    file_bytes: int
    memory_bytes: int | None
    writable: Sequence[Path] = ()
    readable: Sequence[Path] = ()

    @property
    def variables(self) -> dict[str, str]:
        """All environment variables that are set for the program."""
        return {**_LOCALE, **self.env, VARIABLE: self.mark}


@dataclass(frozen=True)
class Launch:
    """How a call is started.

    Attributes:
        command: what this process starts.
        environment: variables that are set for it.
        file_bytes: limit for what this process starts; ``None`` if another one keeps it.
        memory_bytes: likewise.
    """

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    file_bytes: int | None = None
    memory_bytes: int | None = None


class Place(Hashable, Protocol):
    """Somewhere commands run."""

    @property
    def identity(self) -> str:
        """What results depend on besides the program's version; empty on this machine."""

    @property
    def title(self) -> str:
        """What people call it; empty for this machine."""

    def launch(self, call: Call) -> Launch:
        """How a call is started here.

        Raises:
            MissingDependencyError: if the program is not there.
        """

    def check_ended(self, call: Call, output: ProgramOutput) -> None:
        """Looks at a call that has ended.

        Raises:
            MissingDependencyError: if the program turns out not to be there.
        """

    def stop(self, call: Call) -> None:
        """Ends what still runs of a call whose client was killed."""


class _Host:
    """This machine."""

    identity = ""
    title = ""

    def launch(self, call: Call) -> Launch:
        check_program(call.command[0], call.folder, call.env.get("PATH"))
        command = with_limits(
            call.command, file_bytes=call.file_bytes, memory_bytes=call.memory_bytes
        )
        return Launch(command, call.variables, call.file_bytes, call.memory_bytes)

    def check_ended(self, call: Call, output: ProgramOutput) -> None:
        """The program was there."""

    def stop(self, call: Call) -> None:
        """All of it was in the process group that was killed."""


HOST: Final[Place] = _Host()
"""This machine."""
