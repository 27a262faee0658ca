"""Files of JSON lines that one process appends to and another one follows.

They are made for network file systems, on which locks are not reliable, listings of folders may be
old, and clocks of machines differ. Each file has one writer and exists before anybody looks for
it. A reader opens it anew each time, because NFS asks the server for a file's size when it is
opened (close-to-open consistency), and remembers how far it has read. Times of files are never
compared with a clock, only with what they were before.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["MAX_LINE_BYTES", "LineReader", "append_line", "beat", "read_object", "write_object"]

MAX_LINE_BYTES = 1 << 20
_MAX_BYTES = 1 << 22  # read at once
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class LineReader:
    """Follows a file that another process appends to.

    Args:
        path: the file; a link is not followed.

    Attributes:
        changes: how often the file was found changed, in size or time, since the first look.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.changes = 0
        self._seen: tuple[int, int] | None = None
        self._read_up_to = 0

    def read(self) -> list[dict[str, Any]]:
        """New whole lines that are JSON objects; others are passed over.

        Raises:
            FileNotFoundError: if the file is not there.
            OSError: if it cannot be read, or is no plain file.
        """
        file = os.open(self.path, _READ)
        try:
            state = os.fstat(file)
            if not stat.S_ISREG(state.st_mode):
                raise OSError(errno.EINVAL, "no plain file", str(self.path))
            seen = (state.st_size, state.st_mtime_ns)
            if seen != self._seen:
                self.changes += self._seen is not None
                self._seen = seen
            if state.st_size <= self._read_up_to:
                return []
            data = os.pread(file, _MAX_BYTES, self._read_up_to)
        finally:
            os.close(file)
        whole = data[: data.rfind(b"\n") + 1]
        if not whole and len(data) == _MAX_BYTES:
            whole = data  # a line that is too long: its pieces are passed over
        self._read_up_to += len(whole)
        return [line for text in whole.splitlines() if (line := _object(text)) is not None]


def append_line(path: Path, line: Mapping[str, Any], *, durable: bool = False) -> None:
    """Appends a line to a file that is there, whole or not at all.

    Args:
        path: the file; this process is the only one that appends to it.
        line: what is written, as JSON.
        durable: whether to wait until the line survives a loss of power.

    Raises:
        FileNotFoundError: if the file is not there.
        OSError: if the line cannot be written.
    """
    data = (json.dumps(line, separators=(",", ":")) + "\n").encode()
    file = os.open(path, _APPEND)
    try:
        before = os.fstat(file).st_size
        try:
            if os.write(file, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(file, before)
            raise
        if durable:
            os.fsync(file)
    finally:
        os.close(file)


def beat(path: Path) -> None:
    """Shows that the writer of a file is alive: its time changes, by the file system's clock.

    Raises:
        OSError: if the file is not there.
    """
    os.utime(path, follow_symlinks=False)


def write_object(path: Path, data: Mapping[str, Any]) -> None:
    """Writes a small JSON file under a temporary name, then renames it.

    Raises:
        OSError: if it cannot be written.
    """
    temporary = path.with_name(f".tmp-{os.getpid()}-{path.name}")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(data, file, separators=(",", ":"))
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def read_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in a small file; ``None`` if the file is not there or holds something else.

    A link is not followed.
    """
    try:
        file = os.open(path, _READ)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        return _object(os.read(file, _MAX_BYTES))
    except OSError:
        return None
    finally:
        os.close(file)


def _object(text: bytes) -> dict[str, Any] | None:
    if len(text) > _MAX_BYTES:
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
