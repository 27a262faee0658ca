"""Whether the process that wrote a journal is over, was of this machine, and ended well."""

from __future__ import annotations

import fcntl
import os
import re
import socket
from pathlib import Path

from archgym.reading.files import LINE_LIMIT_BYTES, opened

_BEGINNING = re.compile(rb'(\[|\[\d+(,[ -~]*)?|\{|\{"[ -~]*)')
"""The beginning of a line: text of ASCII characters."""
_NAME = re.compile(r"[0-9a-f]{16}-\d+-\d+-.+\.jsonl")
"""The name of a journal: when it was begun, by which process, its number in it, the machine."""


def ends_oddly(path: Path) -> bool:
    """Whether what follows the last line of a journal is not the beginning of another one.

    A power cut may leave such a beginning; anything else was not written by archgym. False while a
    process appends to it.
    """
    if is_locked(path):
        return False
    with opened(path) as file:
        end = file.seek(0, os.SEEK_END)
        tail, step = b"", 1 << 16
        while end and b"\n" not in tail:
            if len(tail) > LINE_LIMIT_BYTES:
                return True
            start = file.seek(max(end - step, 0))
            tail = file.read(end - start) + tail
            end, step = start, 2 * step
    rest = tail.rpartition(b"\n")[2]
    return bool(rest) and not _BEGINNING.fullmatch(rest)


def is_locked(path: Path) -> bool:
    """Whether a living process still appends to a journal."""
    with opened(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        return False


def is_of_this_machine(path: Path) -> bool:
    """Whether a journal was begun by a process of this machine, as its name says."""
    return bool(_NAME.fullmatch(path.name)) and path.stem.split("-", 3)[3] == socket.gethostname()
