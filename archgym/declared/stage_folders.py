"""Folders of stages that are run once for equal values: found again by their content.

The folders are shared by all processes of a user. A lock makes a second process wait for the first
one; the lock of a process that was killed is free, and a folder without the file that says it is
complete is begun anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from archgym.errors import InvalidValueError, SimulationError
from archgym.simulators.external import ProgramOutput, stopped

__all__ = ["StageFolders", "default_folder"]

_POLL_S: Final = 0.02
_UNUSED_S: Final = 30 * 86400.0
"""Folders that were not used for so long are deleted, s."""
_COMPLETE: Final = "complete.json"
_WORK: Final = "work"


def default_folder() -> Path:
    """Where folders of stages are: below ``XDG_CACHE_HOME``, or ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return Path(base or Path.home() / ".cache") / "archgym" / "stages"


class StageFolders:
    """Keeps the folders of stages, by the hash of all that they depend on.

    Args:
        folder: that holds them; made if it is not there.

    Attributes:
        path: the folder.

    Raises:
        InvalidValueError: if it cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = self.path = folder.absolute()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidValueError(
                f"the folder of stages {folder} cannot be made: {error.strerror}"
            ) from None
        self._delete_unused()

    def obtain(
        self, key: str, build: Callable[[Path], ProgramOutput]
    ) -> tuple[Path, ProgramOutput]:
        """The folder of a key, with what the program printed when it was made.

        Args:
            key: hash of all that the stage depends on.
            build: runs the stage in an empty folder; an error of it leaves no folder.
        """
        own = self._folder / key
        if (known := self._known(own)) is not None:
            return own / _WORK, known
        with self._locked(key):
            if (known := self._known(own)) is not None:  # another process has made it meanwhile
                return own / _WORK, known
            shutil.rmtree(own, ignore_errors=True)
            (own / _WORK).mkdir(parents=True)
            try:
                output = build(own / _WORK)
            except BaseException:
                shutil.rmtree(own, ignore_errors=True)
                raise
            self._complete(own, output)
        return own / _WORK, output

    def mark_used(self, own: Path, *, make: bool = False) -> None:
        """Notes that a folder in it is used now, so that it is not deleted for a while.

        Args:
            own: the folder.
            make: whether it is a new one.

        Raises:
            OSError: if it is not there.
        """
        if make:
            (own / _COMPLETE).touch()
        os.utime(own / _COMPLETE)

    def _known(self, own: Path) -> ProgramOutput | None:
        try:
            said = json.loads((own / _COMPLETE).read_text(encoding="utf-8"))
            os.utime(own / _COMPLETE)
            return ProgramOutput(
                str(said["stdout"]), str(said["stderr"]), float(said["seconds"]), int(said["code"])
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _complete(self, own: Path, output: ProgramOutput) -> None:
        said = {
            "stdout": output.stdout,
            "stderr": output.stderr,
            "seconds": output.seconds,
            "code": output.exit_code,
        }
        temporary = own / f"{_COMPLETE}.{os.getpid()}"
        temporary.write_text(json.dumps(said), encoding="utf-8")
        temporary.replace(own / _COMPLETE)

    @contextlib.contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        with open(self._folder / f"{key}.lock", "a", encoding="utf-8") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if stopped():
                        raise SimulationError(
                            "it was stopped while it waited for a stage"
                        ) from None
                    time.sleep(_POLL_S)
            yield

    def _delete_unused(self) -> None:
        """Deletes what was not used for a long time, and locks without a folder of that age."""
        oldest = time.time() - _UNUSED_S
        for entry in list(self._folder.iterdir()):
            mark = entry if entry.suffix == ".lock" else entry / _COMPLETE
            with contextlib.suppress(OSError):
                if (mark if mark.exists() else entry).stat().st_mtime < oldest:
                    if entry.is_dir() and not entry.is_symlink():
                        shutil.rmtree(entry, ignore_errors=True)
                    else:
                        entry.unlink()
