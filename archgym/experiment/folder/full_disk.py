"""A full disk stops the whole run; every other error stops one trial."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

from archgym.errors import ExperimentError

__all__ = ["NoRoomError", "explain_full_disk", "stop_if_full"]

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class NoRoomError(ExperimentError):
    """The disk is full: nothing can be recorded, so the run stops until there is room."""


def stop_if_full(error: BaseException | None, path: Path) -> None:
    """Tells a full disk from everything else that can go wrong with one trial.

    Args:
        error: what was raised.
        path: the folder of the run.

    Raises:
        NoRoomError: if a full disk caused the error.
    """
    first = error
    while error is not None:
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            raise NoRoomError(
                f"there is no room to write in {path} ({error.strerror}): what was evaluated is "
                "kept; make room and go on with --resume"
            ) from first
        error = error.__cause__ or error.__context__


@contextlib.contextmanager
def explain_full_disk(path: Path) -> Iterator[None]:
    """Replaces an error that a full disk caused by one that says how to go on.

    Args:
        path: the folder of the run.

    Raises:
        NoRoomError: in place of such an error.
    """
    try:
        yield
    except NoRoomError:
        raise
    except Exception as error:
        stop_if_full(error, path)
        raise
