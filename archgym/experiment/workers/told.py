"""Signals that tell a worker to end."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["Told", "told_by_signals"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""What schedulers send before they take a machine away, and Ctrl-C."""


class Told:
    """Whether the process was told to end.

    Attributes:
        by: number of the signal; 0 while there was none.
        link: can be read as soon as there was one.
    """

    def __init__(self) -> None:
        self.by = 0
        self.link: Connection[Any, Any]
        self.link, self._end = multiprocessing.Pipe(duplex=False)

    @property
    def name(self) -> str:
        """Name of the signal, such as ``SIGTERM``."""
        return signal.Signals(self.by).name

    def tell(self, number: int, _: Any = None) -> None:
        """Handles a signal: only the first one counts."""
        if not self.by:
            self.by = number
            self._end.send_bytes(b"!")


@contextlib.contextmanager
def told_by_signals() -> Iterator[Told]:
    """In the block, a signal to end only says so; one that is ignored (nohup) stays ignored."""
    told = Told()
    heeded = [one for one in _SIGNALS if signal.getsignal(one) is not signal.SIG_IGN]
    before = [signal.signal(one, told.tell) for one in heeded]
    try:
        yield told
    finally:
        for one, handler in zip(heeded, before, strict=True):
            signal.signal(one, handler)
