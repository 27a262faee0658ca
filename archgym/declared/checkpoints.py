"""What a run at a fidelity leaves for a longer run of the same design to go on from.

Checkpoints are kept beside the folders of stages, under a hash of all that a run depends on but the
fidelity. One is copied to a new folder that gets its name at the end, so a process that is killed
leaves no half of one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from archgym.declared.stage_folders import StageFolders
from archgym.errors import SimulationError

__all__ = ["Checkpoints"]

_CONTENT: Final = "content"


class Checkpoints:
    """The checkpoints of one design on one workload.

    Args:
        folders: beside which they are kept.
        parts: all that a run depends on but the fidelity, as plain values.
        fidelities: values of all fidelities, ascending.
        fidelity: of the run.
    """

    def __init__(
        self,
        folders: StageFolders,
        parts: Sequence[Any],
        fidelities: Sequence[float],
        fidelity: float,
    ) -> None:
        self._folders, self._fidelity = folders, fidelity
        digest = hashlib.sha256(repr(list(parts)).encode()).hexdigest()[:32]
        self._name = f"checkpoint-{digest}"
        self._lower = [value for value in fidelities if value < fidelity]
        self._needed = fidelity < max(fidelities)

    def restore(self, path: str, folder: Path) -> float:
        """Copies the checkpoint of the longest shorter run to where the program looks for it.

        Args:
            path: of the checkpoint, inside the folder.
            folder: of the run.

        Returns:
            The fidelity that it is of; 0 if there is none.
        """
        for fidelity in reversed(self._lower):
            own = self._own(fidelity)
            target = folder / path
            try:
                self._folders.mark_used(own)
                target.parent.mkdir(parents=True, exist_ok=True)
                _copy(own / _CONTENT, target)
            except OSError:  # there is none, or it was deleted meanwhile
                _remove(target)
                continue
            return fidelity
        return 0.0

    def save(self, path: str, folder: Path) -> None:
        """Keeps the checkpoint that a run left, unless no longer run follows.

        Raises:
            SimulationError: if it left none.
        """
        own = self._own(self._fidelity)
        if not self._needed or own.exists():
            return
        source = folder / path
        if not os.path.lexists(source):
            raise SimulationError(f"it left no checkpoint {path!r}")
        new = Path(tempfile.mkdtemp(prefix=".checkpoint-", dir=self._folders.path))
        try:
            _copy(source, new / _CONTENT)
            self._folders.mark_used(new, make=True)
            new.chmod(0o755)
            new.rename(own)
        except OSError as error:
            shutil.rmtree(new, ignore_errors=True)
            if not own.exists():  # another process was not faster
                raise SimulationError(
                    f"the checkpoint cannot be kept in {self._folders.path}: {error.strerror}"
                ) from None

    def _own(self, fidelity: float) -> Path:
        return self._folders.path / f"{self._name}-{fidelity:g}"


def _copy(source: Path, target: Path) -> None:
    """Copies a file or a folder; links stay links."""
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
