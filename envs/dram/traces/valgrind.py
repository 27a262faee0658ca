"""The memory accesses of a running program, from valgrind's tool lackey, as a stream of arrays.

Nothing is stored: valgrind writes its text into a pipe, which is parsed while the program runs.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from archgym.envs.dram.traces.cache_model import INSTRUCTION_FETCH, LOAD, MODIFY, STORE
from archgym.errors import MissingDependencyError, TraceError
from archgym.simulators.compilation import compiled_once

__all__ = ["Accesses", "find_valgrind", "run_under_lackey", "valgrind_version"]

_READ_BYTES = 1 << 20
_KEPT_MESSAGES = 5
_LATEST_LINES = 64  # a chunk; what lackey counts at the end takes 30
_F_SETPIPE_SZ = 1031  # Linux fcntl
_OPTIONS = (
    "--command-line-only=yes",  # no .valgrindrc, no VALGRIND_OPTS
    "--child-silent-after-fork=yes",
    "--vgdb=no",  # no pipes for a debugger, which would stay in /tmp if valgrind is killed
    "--tool=lackey",
    "--trace-mem=yes",
)
_TROUBLE = re.compile(
    r"^valgrind:|FATAL|terminating|unhandled|unrecognised|not within mapped|cannot execute",
    re.IGNORECASE,
)
_PROCESS = re.compile(r"^==\d+== *")


@dataclass(frozen=True)
class Accesses:
    """A chunk of accesses in program order.

    Attributes:
        kind: a kind of :mod:`archgym.envs.dram.traces.cache_model`, shape (n,).
        address: first byte, virtual address of the process, shape (n,).
        size: bytes, shape (n,).
    """

    kind: NDArray[np.uint8]
    address: NDArray[np.int64]
    size: NDArray[np.int32]


def find_valgrind() -> str:
    """The path of valgrind.

    Raises:
        MissingDependencyError: if it is not installed.
    """
    path = shutil.which("valgrind")
    if path is None:
        raise MissingDependencyError(
            "recording a program needs the program 'valgrind', which is not on the PATH: install "
            "the package of that name (Debian, Ubuntu: apt-get install valgrind)"
        )
    return path


def valgrind_version() -> str:
    """For example ``"3.19.0"``."""
    shown = subprocess.run(
        [find_valgrind(), "--version"], capture_output=True, text=True, check=False, timeout=60
    ).stdout
    found = re.search(r"\d+(\.\d+)+", shown)
    return found[0] if found else "unknown"


def run_under_lackey(
    command: Sequence[str],
    *,
    timeout_s: float,
    folder: Path | None = None,
    stdin: Path | None = None,
    environment: Mapping[str, str] | None = None,
    started: Callable[[int], None] | None = None,
) -> Iterator[Accesses]:
    """Run a program and yield its accesses; closing the iterator ends the program.

    The program gets no terminal: its output is thrown away, its errors are kept for the message.
    Only the process itself is followed, not its children; threads run one at a time.

    Args:
        command: program and arguments; no shell is involved.
        timeout_s: time limit on the whole run, s of wall time.
        folder: working folder.
        stdin: file that the program reads as its standard input; nothing if None.
        environment: all its environment variables; those of this process if None.
        started: called with the number of the process when it runs. The process is then never
            far ahead of what was yielded: 64 KiB of lackey's text, some thousand accesses.

    Raises:
        MissingDependencyError: if valgrind is not installed.
        TraceError: if the program does not exist, fails, or does not end in time.
    """
    valgrind = find_valgrind()
    _check_program(command, folder, None if environment is None else environment.get("PATH"))
    with tempfile.TemporaryFile() as errors, _input(stdin) as source:
        read_end, write_end = os.pipe()
        if started is None:
            _widen(write_end)
        try:
            process = subprocess.Popen(
                [valgrind, *_OPTIONS, f"--log-fd={write_end}", *command],
                stdin=source,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=[write_end],
                cwd=folder,
                env=None if environment is None else dict(environment),
                start_new_session=True,
            )
        except OSError as error:
            os.close(read_end)
            raise TraceError(f"cannot start {command[0]!r}: {error}") from error
        except BaseException:  # an interruption
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        messages: list[str] = []
        try:
            _refuse_core_dumps(process)
            if started is not None:
                started(process.pid)
            deadline = time.monotonic() + timeout_s
            yield from _chunks(read_end, deadline, messages)
            status = process.wait(max(0.0, deadline - time.monotonic()))
        except (TimeoutError, subprocess.TimeoutExpired):
            raise TraceError(
                f"{command[0]!r} did not end within timeout_s={timeout_s:g} s under valgrind "
                "(about 100 times slower than alone): raise it, or record fewer requests"
            ) from None
        finally:
            os.close(read_end)
            _end(process)
        if status != 0:
            raise TraceError(
                f"{command[0]!r} failed under valgrind {_status(status)}: {_tail(errors, messages)}"
            )


def _check_program(command: Sequence[str], folder: Path | None, path: str | None) -> None:
    if isinstance(command, str) or not command or not all(isinstance(w, str) for w in command):
        raise TraceError(
            f"command={command!r} must be a list of a program and its arguments, "
            "such as ['sort', 'input.txt']"
        )
    program = command[0]
    where = os.path.join(folder or "", program) if os.sep in program else program
    if program.startswith("-") or shutil.which(where, path=path) is None:
        here = os.path.join(folder or "", program)
        found = os.path.isfile(here) and os.access(here, os.X_OK)
        hint = f"; the one in this folder is './{program}'" if found else ""
        raise TraceError(f"the program {program!r} does not exist or cannot be executed{hint}")
    if folder is not None and not Path(folder).is_dir():
        raise TraceError(f"folder={str(folder)!r} does not exist")


def _input(stdin: Path | None) -> IO[bytes]:
    try:
        return open(stdin if stdin is not None else os.devnull, "rb")
    except OSError as error:
        raise TraceError(f"stdin={str(stdin)!r} cannot be read: {error}") from error


def _widen(pipe: int) -> None:
    """Give a pipe the largest buffer that Linux allows without privileges; elsewhere do nothing."""
    try:
        import fcntl

        fcntl.fcntl(pipe, _F_SETPIPE_SZ, _READ_BYTES)
    except (ImportError, OSError):
        return


def _chunks(pipe: int, deadline: float, messages: list[str]) -> Iterator[Accesses]:
    """Parse the pipe until it ends; lines that report trouble go to ``messages``."""
    rest = b""
    maximum = _READ_BYTES // 4  # an access takes at least 6 bytes of text
    kind = np.empty(maximum, np.uint8)
    address = np.empty(maximum, np.int64)
    size = np.empty(maximum, np.int32)
    other = np.empty((_LATEST_LINES, 2), np.int64)
    while True:
        data = _read(pipe, deadline, _READ_BYTES - len(rest))
        text = rest + data if data else rest + b"\n"
        used, count, others = _parse(np.frombuffer(text, np.uint8), kind, address, size, other)
        for begin, end in other[: min(others, _LATEST_LINES)]:
            line = text[begin:end].decode("utf-8", "replace")
            if _TROUBLE.search(line) and len(messages) < _KEPT_MESSAGES:
                messages.append(_PROCESS.sub("", line))
        rest = text[used:]
        if len(rest) >= _READ_BYTES:
            raise TraceError("valgrind wrote a line that does not end; is it lackey that runs?")
        if count:
            yield Accesses(kind[:count].copy(), address[:count].copy(), size[:count].copy())
        if not data:
            return


def _read(pipe: int, deadline: float, at_most: int) -> bytes:
    """What the pipe holds, at least one byte; empty at its end."""
    left = deadline - time.monotonic()
    # A program that always has something to say must not escape the limit.
    if left <= 0 or not select.select([pipe], [], [], left)[0]:
        raise TimeoutError
    return os.read(pipe, at_most)


def _refuse_core_dumps(process: subprocess.Popen[Any]) -> None:
    """A program that crashes leaves no ``vgcore`` file behind, on Linux."""
    try:
        import resource

        hard = resource.prlimit(process.pid, resource.RLIMIT_CORE)[1]
        resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, hard))
    except (ImportError, AttributeError, OSError):
        return


def _end(process: subprocess.Popen[Any]) -> None:
    """End the program and what it started, if it still runs, and wait for it."""
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGKILL)  # our own group: it was not waited for yet
    process.wait()


def _status(status: int) -> str:
    return f"with exit status {status}" if status > 0 else f"by signal {-status}"


def _tail(errors: IO[bytes], messages: list[str]) -> str:
    """The last lines printed by the program, else by valgrind."""
    errors.seek(0)
    words = errors.read().decode("utf-8", "replace").strip()
    if not words:
        words = "; ".join(messages)
    return words[-600:] or "it printed nothing"


@compiled_once()
def _parse(text: Any, kind: Any, address: Any, size: Any, other: Any) -> Any:  # noqa: C901
    """Parse whole lines of lackey's output: ``I  04016b80,3``, `` L 1ffefffe70,8``, S and M alike.

    Returns the bytes used, the number of accesses, and the number of lines of another kind, whose
    first and last byte go to ``other`` (the latest ones, in a ring).
    """
    n = 0
    others = 0
    begin = 0
    for end in range(len(text)):
        if text[end] != 10:
            continue
        mark = text[begin] if text[begin] == 73 else text[begin + 1]
        what = -1
        if end - begin >= 6 and text[begin + 2] == 32 and (text[begin] == 73 or text[begin] == 32):
            if mark == 73:  # I
                what = INSTRUCTION_FETCH
            elif mark == 76:  # L
                what = LOAD
            elif mark == 83:  # S
                what = STORE
            elif mark == 77:  # M
                what = MODIFY
        place = begin + 3
        value = np.int64(0)
        while what >= 0 and text[place] != 44:
            digit = text[place]
            if 48 <= digit <= 57:
                value = (value << 4) | np.int64(digit - 48)
            elif 97 <= digit <= 102:
                value = (value << 4) | np.int64(digit - 87)
            else:
                what = -1
            place += 1
        length = np.int64(0)
        for at in range(place + 1, end):
            length = length * 10 + np.int64(text[at]) - 48
        if what >= 0 and 0 < length <= 4096:
            kind[n] = what
            address[n] = value & 0x3FFFFFFFFFFFFFFF
            size[n] = length
            n += 1
        elif end > begin:
            other[others % len(other), 0] = begin
            other[others % len(other), 1] = end
            others += 1
        begin = end + 1
    return begin, n, others
