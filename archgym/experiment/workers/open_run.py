"""Tells workers that a run goes on, and when it is over."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from archgym.errors import ExperimentError
from archgym.experiment.folder.run_folder import RunFolder
from archgym.experiment.workers.queue_folder import queue_folders, write_run_file

__all__ = ["open_to_workers"]


@contextlib.contextmanager
def open_to_workers(folder: RunFolder, run_id: str) -> Iterator[None]:
    """In the block, workers are wanted. They end after it, unless it was left by an exception.

    Args:
        folder: of the run.
        run_id: id of the run.

    Raises:
        ExperimentError: if that cannot be written.
    """
    try:
        write_run_file(folder.path, folder.shard, run_id, "running")
    except OSError as error:
        raise ExperimentError(f"cannot write to {folder.path}: {error.strerror}") from error
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            write_run_file(folder.path, folder.shard, run_id, "stopped")
        raise
    with contextlib.suppress(OSError):
        write_run_file(folder.path, folder.shard, run_id, "ended")
    for queue in queue_folders(folder.path):
        info = queue.info()
        if info is not None and info.shard == folder.shard:
            queue.remove()
