"""The journals that this process has open: one for each dataset."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from archgym.data.journal.writing import Journal

_journals: dict[Path, Journal] = {}
_keepers: list[object] = []
_lock = threading.RLock()
"""Held while a trial begins or a journal is closed: each thread may have an environment."""


@contextlib.contextmanager
def journals_kept_open() -> Iterator[None]:
    """In the block this process writes all trials of a dataset to one journal.

    At its end, journals in which every trial is over are closed.
    """
    keeper = object()
    _keepers.append(keeper)
    try:
        yield
    finally:
        _keepers.remove(keeper)
        for journal in list(_journals.values()):
            rest(journal)


def begin_trial(directory: Path, trial: dict[str, Any]) -> tuple[Journal, int]:
    """Announces a trial in this process's journal of a dataset.

    Args:
        directory: the dataset's folder.
        trial: its description.

    Returns:
        The journal, and the number that the trial's rows carry in it.

    Raises:
        DatasetError: if that cannot be written.
    """
    key = directory.resolve()
    with _lock:
        journal = _journals.get(key)
        removed = journal is not None and journal.look()
        if journal is not None and removed and journal.idle:
            journal.close()
        if journal is None or journal.closed or removed:
            journal = _journals[key] = Journal(directory)
        return journal, journal.begin(trial)


def rest(journal: Journal) -> None:
    """Closes a journal if every trial in it is over, unless journals are kept open for more."""
    with _lock:
        if journal.idle and not _keepers:
            journal.close()


def close_journals(directory: Path) -> None:
    """Closes this process's journal in a dataset, if it has one."""
    with _lock:
        journal = _journals.pop(directory.resolve(), None)
        if journal is not None:
            journal.close()


def _abandon_all() -> None:
    """After a fork: each process writes a separate journal."""
    global _lock
    _lock = threading.RLock()  # a thread of the parent may have held it
    while _journals:
        _journals.popitem()[1].abandon()


os.register_at_fork(after_in_child=_abandon_all)
