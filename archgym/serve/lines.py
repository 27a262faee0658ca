"""Lines of bounded length through two descriptors, and standard streams that stay clean.

Whatever a simulator or a library prints goes to stderr: standard output carries the protocol only.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import sys
import threading
from collections.abc import Iterator
from typing import Final

__all__ = ["LINE_LIMIT_BYTES", "Channel", "ClientGone", "bounded_lines", "own_streams"]

LINE_LIMIT_BYTES: Final = 1 << 20
"""Longest line that is read, in bytes."""
_LINES_AHEAD: Final = 256
"""Lines that are read before they are looked at; then the writer waits."""
_CHUNK_BYTES: Final = 1 << 16


class ClientGone(Exception):
    """Nobody reads the answers any more."""


@contextlib.contextmanager
def own_streams() -> Iterator[tuple[int, int]]:
    """Takes standard input and output away from the rest of the process, for a block.

    Gives the descriptors from which requests are read and to which answers are written. Meanwhile
    standard input is empty, and what is written to standard output goes to standard error, also
    by programs that simulators start.
    """
    sys.stdout.flush()
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        yield requests, answers
    finally:
        sys.stdout.flush()
        os.dup2(requests, 0)
        os.dup2(answers, 1)
        for descriptor in (nothing, requests, answers):
            os.close(descriptor)


class Channel:
    """Lines in, lines out. A thread reads ahead, so that a request is known while designs run.

    Args:
        requests: descriptor that is read.
        answers: descriptor that is written.
    """

    def __init__(self, requests: int, answers: int) -> None:
        self._requests, self._answers = requests, answers
        self._lines: queue.Queue[bytes | None] = queue.Queue(_LINES_AHEAD)
        self._over = False
        self._lock = threading.Lock()
        threading.Thread(target=self._read, name="requests", daemon=True).start()

    @property
    def over(self) -> bool:
        """Whether the last line was taken."""
        return self._over

    def take(self, timeout_s: float | None) -> bytes | None:
        """The next line, without its end; one that is too long is cut to one byte too many.

        Args:
            timeout_s: how long to wait, s; 0 does not wait, ``None`` waits without a limit.

        Returns:
            ``None`` if there is none in that time, or none will come: see :attr:`over`.
        """
        if self._over:
            return None
        try:
            line = self._lines.get(timeout_s != 0, timeout_s)
        except queue.Empty:
            return None
        self._over = line is None
        return line

    def send(self, line: bytes) -> None:
        """Writes a line, and waits until the operating system has all of it.

        Raises:
            ClientGone: if nobody reads.
        """
        left = memoryview(line + b"\n")
        with self._lock:
            try:
                while left:
                    left = left[os.write(self._answers, left) :]
            except OSError as error:
                raise ClientGone from error

    @property
    def gone(self) -> bool:
        """Whether nobody reads the answers any more, as far as the operating system tells."""
        poll = select.poll()
        poll.register(self._answers, 0)
        return any(event & (select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))

    def _read(self) -> None:
        for line in bounded_lines(self._requests, LINE_LIMIT_BYTES):
            self._lines.put(line)
        self._lines.put(None)


def bounded_lines(descriptor: int, limit_bytes: int) -> Iterator[bytes]:
    """Lines as they come, without their ends; of one that is too long its beginning.

    Args:
        descriptor: that is read.
        limit_bytes: longest line; the beginning of a longer one has one byte more.
    """
    begun, too_long = bytearray(), False
    while True:
        try:
            chunk = os.read(descriptor, _CHUNK_BYTES)
        except OSError:
            chunk = b""
        if not chunk:
            if begun:
                yield bytes(begun)
            return
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            if not too_long:
                yield bytes(begun + part)[: limit_bytes + 1]
            begun, too_long = bytearray(), False
        if not too_long:
            begun += rest
            if len(begun) > limit_bytes:
                yield bytes(begun[: limit_bytes + 1])
                begun, too_long = bytearray(), True
