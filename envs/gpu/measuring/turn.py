"""One process at a time measures on a GPU: others would make its launches wait."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def lock_path(gpu: str) -> Path:
    """The file whose lock says who measures.

    Args:
        gpu: names the GPU on this machine, such as its UUID.
    """
    return Path(tempfile.gettempdir()) / f"archgym-gpu-{gpu}.lock"


@contextlib.contextmanager
def turn(gpu: str) -> Iterator[None]:
    """Waits until no other process that asks for its turn measures on a GPU, and keeps them out.

    Args:
        gpu: as for :func:`lock_path`.
    """
    with os.fdopen(os.open(lock_path(gpu), os.O_RDWR | os.O_CREAT, 0o666), "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # closing the file, or the end of the process, ends it
        yield
