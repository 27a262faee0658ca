"""Ends the processes that a program left behind, also those that left its process group.

A program that is started with a mark in its environment variables hands it on to whatever it
starts. A process that wipes its own variables and leaves the group is not found.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
import uuid
from pathlib import Path
from typing import Final

VARIABLE: Final = "ARCHGYM_PROGRAM"
_PROC: Final = Path("/proc")
_ROUNDS: Final = 20


def new_mark() -> str:
    """A mark that no other program has: the value of :data:`VARIABLE` for one."""
    return uuid.uuid4().hex


def newest_pid() -> int:
    """Number of the process that was started last on this machine; 0 if it is not known."""
    try:
        return int((_PROC / "loadavg").read_text().split()[-1])
    except (OSError, ValueError, IndexError):
        return 0


def end_leftovers(mark: str, since_pid: int = 0) -> int:
    """Kills every process with a mark, and what it starts meanwhile.

    Args:
        mark: that the program was started with.
        since_pid: :func:`newest_pid` before it was started, which saves time: lower numbers are
            looked at only where the system may have begun to count anew.

    Returns:
        How many processes were killed.
    """
    if not (_PROC / "self" / "environ").exists():
        return 0
    needle, killed = f"{VARIABLE}={mark}".encode(), set[int]()
    for _ in range(_ROUNDS):
        found = [pid for pid in _candidates(since_pid) if needle in _variables(pid)]
        if not found:
            break
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)  # it may take more than one look to be gone
        time.sleep(0.005)
    return len(killed)


def _candidates(since_pid: int) -> list[int]:
    pids = [int(name) for name in os.listdir(_PROC) if name.isdigit()]
    newer = [pid for pid in pids if pid > since_pid and pid != os.getpid()]
    began_anew = since_pid > 0.9 * _largest_pid()
    return [pid for pid in pids if pid != os.getpid()] if began_anew else newer


def _largest_pid() -> int:
    try:
        return int((_PROC / "sys/kernel/pid_max").read_text())
    except (OSError, ValueError):
        return 1 << 22


def _variables(pid: int) -> bytes:
    """Environment variables of a process; nothing if they cannot be read, as a zombie's."""
    try:
        with open(_PROC / str(pid) / "environ", "rb") as file:
            return file.read()
    except OSError:
        return b""
