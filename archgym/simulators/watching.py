"""Ends programs whose archgym process is gone, however it ended.

A shell beside this process, in a session apart, is told the process group of each program through a
pipe. Once nobody can write to the pipe any more, it kills the groups that are left.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator
from typing import Final

__all__ = ["watched"]

_SCRIPT: Final = """
trap '' HUP INT QUIT TERM
groups=' '
while read -r sign group; do
  case $sign in
    +) groups="$groups$group " ;;
    -) case $groups in
         *" $group "*) groups="${groups%% $group *} ${groups#* $group }" ;;
       esac ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
"""
_WAIT_S: Final = 2.0


@contextlib.contextmanager
def watched(group: int) -> Iterator[None]:
    """In the block, a program is killed if this process ends.

    Args:
        group: its process group.
    """
    _tell(f"+ {group}\n")
    try:
        yield
    finally:
        _tell(f"- {group}\n")


class _Watcher:
    """The shell, and the only open end of its pipe."""

    def __init__(self) -> None:
        readable, self.pipe = os.pipe()
        try:
            self.process = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT],
                cwd="/",
                env={},  # it outlives many programs, and keeps nobody's variables
                stdin=readable,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            os.close(self.pipe)
            raise
        finally:
            os.close(readable)


_lock = threading.Lock()
_watchers: list[_Watcher] = []


def _tell(line: str) -> None:
    """Writes a line to the watcher; begins one if there is none, or it was killed."""
    with _lock, contextlib.suppress(OSError):  # programs run as well without it
        if _watchers and _watchers[0].process.poll() is not None:
            os.close(_watchers.pop().pipe)
        if not _watchers:
            _watchers.append(_Watcher())
        os.write(_watchers[0].pipe, line.encode())


def _end() -> None:
    while _watchers:
        watcher = _watchers.pop()
        os.close(watcher.pipe)
        with contextlib.suppress(subprocess.TimeoutExpired):
            watcher.process.wait(_WAIT_S)


def _forget() -> None:
    """After a fork: the parent's watcher is to see its end, and the child has one of its own."""
    global _lock
    _lock = threading.Lock()  # a thread of the parent may have held it
    while _watchers:
        watcher = _watchers.pop()
        os.close(watcher.pipe)
        watcher.process.returncode = 0  # not a child of this process


atexit.register(_end)
os.register_at_fork(after_in_child=_forget)
