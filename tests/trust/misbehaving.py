"""Simulators that misbehave, for tests of processes that simulate: those import this module."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.helpers import Adder

GOOD = {"total_ns": 1.0, "speed_rate": 1.0}


class Unpicklable(Exception):
    def __reduce__(self) -> Any:
        raise RuntimeError("not to be pickled")


def _raise(error: BaseException) -> Any:
    raise error


def _signal(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(60)


def _fork_and_stay() -> None:
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)


def _fork_and_return() -> None:
    """The child goes on as if it were the process itself."""
    os.fork()


def _fork_many() -> None:
    for _ in range(20):
        if os.fork() == 0:
            time.sleep(5)
            os._exit(0)


def _busy() -> None:
    while True:
        pass


def _print(size: int) -> None:
    sys.stdout.write("x" * size + "\n")
    sys.stderr.write("y" * size + "\n")
    os.write(1, b"\x00\xff" * 1000)


def _close_all() -> None:
    os.closerange(0, 64)


def _thread() -> None:
    threading.Thread(target=time.sleep, args=(60,)).start()


def _deaf() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(60)


ACTS: dict[str, Callable[[], Any]] = {
    "exits": lambda: sys.exit(3),
    "exits at once": lambda: os._exit(0),
    "exits with a status": lambda: os._exit(7),
    "aborts": os.abort,
    "kills itself": lambda: _signal(signal.SIGKILL),
    "terminates itself": lambda: _signal(signal.SIGTERM),
    "interrupts itself": lambda: _signal(signal.SIGINT),
    "stops itself": lambda: _signal(signal.SIGSTOP),
    "breaks a pipe": lambda: _signal(signal.SIGPIPE),
    "reads a null pointer": lambda: ctypes.string_at(0),
    "hangs": lambda: time.sleep(60),
    "is busy": _busy,
    "is deaf": _deaf,
    "leaves a child": _fork_and_stay,
    "returns twice": _fork_and_return,
    "leaves many children": _fork_many,
    "leaves a thread": _thread,
    "prints": lambda: _print(100),
    "prints megabytes": lambda: _print(3_000_000),
    "closes all files": _close_all,
    "closes stdout": lambda: os.close(1),
    "goes elsewhere": lambda: os.chdir("/"),
    "clears its environment": os.environ.clear,
    "waits for input": lambda: os.read(0, 1),
    "raises what cannot be pickled": lambda: _raise(Unpicklable()),
    "raises half a character": lambda: _raise(ValueError("\udcff")),
    "raises megabytes": lambda: _raise(ValueError("x" * 3_000_000)),
    "gives megabytes": lambda: {"total_ns": "x" * 3_000_000},
    "gives a million metrics": lambda: {str(i): 1.0 for i in range(1_000_000)},
    "gives a function": lambda: lambda: 1,
    "gives too large a number": lambda: {"total_ns": 10**400},
    "recurses": lambda: _recurse(),
}


def _recurse() -> Any:
    return _recurse()


class Misbehaving(Adder):
    """Does one of the acts where x is 3."""

    def __init__(self, act: str = "hangs", **arguments: Any) -> None:
        self.act = act
        super().__init__(**arguments)

    @property
    def settings(self) -> dict[str, Any]:
        return {"act": self.act}

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        if design["x"] == 3:
            found: dict[str, float] = ACTS[self.act]() or GOOD
            return found
        return super().simulate(design)
