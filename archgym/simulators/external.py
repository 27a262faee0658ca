"""Running an external program: how it is found, in a private folder, with limits.

A simulator that calls a program writes its input files into a :func:`private_folder`, calls
:func:`run_program` there and reads what came out. Whatever goes wrong with one run becomes an
exception that fails that design only (see :class:`archgym.problem.simulator.Simulator`).
:func:`simulate_in_parallel` runs a batch on all cores.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Protocol

from archgym.errors import InvalidValueError, MissingDependencyError, SimulationError
from archgym.problem.simulator import SimulationResult, simulate_each
from archgym.simulators.watching import watched
from archgym.space import Designs

OUTPUT_LIMIT_BYTES = 16 * 2**20
"""Default limit of a program's output; a simulator prints some kilobytes."""
FILE_LIMIT_BYTES = 8 * 2**30
"""Size to which a program may grow one file by default."""
_UNUSABLE = (errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ENOTDIR)
_OF_THE_SHELL = ("PWD", "OLDPWD", "SHLVL", "_")
"""Environment variables that differ with the folder in which somebody began, and so may results."""
_POLL_S = 0.1
_SHORTEST_POLL_S, _POLL_SHARE = 0.01, 0.02
"""How often a program is looked at whose output is read while it runs: s, share of its time."""
_SHOWN_BYTES = _PIECE_BYTES = 65536
_stop_of_batch: ContextVar[threading.Event | None] = ContextVar("stop of batch", default=None)
"""Set in a thread of a batch: the event after which its programs are stopped."""


@dataclass(frozen=True)
class ProgramOutput:
    """The output of a program.

    Attributes:
        stdout: its standard output; bytes that are not UTF-8 are shown as replacement characters.
        stderr: its standard error, likewise.
        seconds: from its start to its end, s.
        exit_code: with which it ended; below 0 the signal that ended it.
    """

    stdout: str
    stderr: str
    seconds: float
    exit_code: int = 0


def find_program(name: str, variable: str, install: str = "") -> Path:
    """Path of an executable: the environment variable's value if set, else the first on PATH.

    Args:
        name: what the program is called on PATH.
        variable: environment variable with the path of the executable.
        install: a sentence on where to get it.

    Raises:
        MissingDependencyError: if there is none; says how to get it and what to set.
    """
    given = os.environ.get(variable, "")
    found = shutil.which(given or name)
    if found is not None:
        return Path(found).absolute()
    advice = f"{install.rstrip('. ')}. " if install else ""
    if given:
        raise MissingDependencyError(
            f"{variable} is {given!r}, which is no executable file. {advice}Set {variable} to the "
            f"path of the {name} executable, or unset it and put {name} on PATH."
        )
    raise MissingDependencyError(
        f"the program {name} is not on PATH. {advice}Put it on PATH or set {variable} to the path "
        "of the executable."
    )


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """A new empty folder that is gone, with what is in it, at the end of the ``with`` block."""
    with tempfile.TemporaryDirectory(prefix="archgym-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def run_program(
    command: Sequence[str | os.PathLike[str]],
    folder: Path,
    *,
    time_limit_s: float,
    environment: Mapping[str, str] | None = None,
    output_limit_bytes: int = OUTPUT_LIMIT_BYTES,
    file_limit_bytes: int = FILE_LIMIT_BYTES,
    memory_limit_bytes: int | None = None,
    name: str = "",
    good_exit_codes: Collection[int] | None = (0,),
    on_killed: Callable[[ProgramOutput], None] | None = None,
    on_output: Callable[[Sequence[bytes]], None] | None = None,
) -> ProgramOutput:
    """Run a program to its end, without a shell and without standard input.

    It runs in a new process group, all of which is killed afterwards, also if this process is
    killed meanwhile.

    Args:
        command: the executable and its arguments.
        folder: where it runs.
        time_limit_s: wall-clock time after which it is killed, s.
        environment: environment variables that are set for it besides those of this process, of
            which it does not see what a shell says of itself.
        output_limit_bytes: what it may print to each of its two outputs before it is killed.
        file_limit_bytes: size to which it may grow a file before it is killed (on Linux).
        memory_limit_bytes: address space that each of its processes may have (on Linux); ``None``
            for no limit.
        name: what messages call the program; by default the executable.
        good_exit_codes: exit codes of a success; ``None`` takes every ending, also by a signal.
        on_killed: takes what it had printed when it is killed for its time or its output.
        on_output: called with all that it has printed so far to its two outputs, again and again
            while it runs and once at its end; the program is killed if this raises an error.

    Raises:
        MissingDependencyError: if the executable cannot be started.
        SimulationError: if it ends with another exit code or by a signal, or prints more than the
            limit; holds the last lines that it printed.
        TimeoutError: if it took longer than the limit.
    """
    if not 0 < time_limit_s < float("inf"):
        raise InvalidValueError(f"time_limit_s is {time_limit_s!r}, it must be above 0 and finite")
    name = name or Path(command[0]).name
    inherited = {k: value for k, value in os.environ.items() if k not in _OF_THE_SHELL}
    start = time.monotonic()
    try:
        process = subprocess.Popen(
            [os.fspath(part) for part in command],
            cwd=folder,
            env={**inherited, "PWD": str(Path(folder).absolute()), **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        kind = MissingDependencyError if error.errno in _UNUSABLE else SimulationError
        raise kind(f"{command[0]} cannot be started: {error.strerror}") from error
    outputs = bytearray(), bytearray()
    try:
        with process, watched(process.pid):
            try:
                _limit(process.pid, file_limit_bytes, time_limit_s, memory_limit_bytes)
                end = start + time_limit_s
                _read(process, outputs, name, end, time_limit_s, output_limit_bytes, on_output)
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
    except (SimulationError, TimeoutError):
        if on_killed is not None:
            on_killed(_decoded(outputs, start, process.returncode))
        raise
    output = _decoded(outputs, start, process.returncode)
    if good_exit_codes is not None and process.returncode not in good_exit_codes:
        raise ended_badly(name, output)
    return output


def ended_badly(name: str, output: ProgramOutput) -> SimulationError:
    """The error for a program that ended with a bad exit code or by a signal."""
    shown = _ends(output.stderr) or _ends(output.stdout) or "it printed nothing"
    return SimulationError(f"{name} {_ending(output.exit_code)}: {shown}")


def last_lines(text: str, lines: int = 5, characters: int = 600) -> str:
    """The end of a program's output, for a message: the last lines that are not empty."""
    kept = [line.strip() for line in text.splitlines() if line.strip()][-lines:]
    return " | ".join(kept)[-characters:]


def _ends(text: str) -> str:
    """The last lines, after the first one: a usage hides the complaint above it."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    shown = last_lines(text)
    return shown if shown.startswith(first) else f"{first[:200]} | ... | {last_lines(text, 4, 400)}"


class _OneByOne(Protocol):
    def simulate_one(self, design: Mapping[str, object]) -> Mapping[str, float]: ...


def simulate_in_parallel(
    simulator: _OneByOne, designs: Designs, threads: int | None = None
) -> list[tuple[SimulationResult, float]]:
    """Calls ``simulator.simulate_one(design)`` for each design, several at a time.

    Args:
        simulator: its ``simulate_one`` spends its time in :func:`run_program`.
        designs: the designs.
        threads: how many at a time; default one for each core.

    Returns:
        For each design, in the designs' order whatever the number of threads, its metrics or
        why there are none, and its own seconds; as :func:`archgym.problem.simulator.simulate_each`.

    Raises:
        ArchgymError: what is wrong with more than one design, such as a missing program.
    """
    threads = min(threads or available_cores(), len(designs))
    adapter = SimpleNamespace(simulate=simulator.simulate_one)  # as simulate_each calls it
    if threads <= 1:
        return simulate_each(adapter, designs)
    pool, stop = stoppable_threads(threads)
    try:
        each = (designs[i : i + 1] for i in range(len(designs)))
        return [result for (result,) in pool.map(partial(simulate_each, adapter), each)]
    finally:
        # Does nothing after a normal end; after an error or Ctrl-C, ends what still runs.
        stop.set()
        pool.shutdown(cancel_futures=True)


def stoppable_threads(threads: int) -> tuple[ThreadPoolExecutor, threading.Event]:
    """Threads whose programs are ended when the event is set."""
    stop = threading.Event()
    return ThreadPoolExecutor(threads, "archgym-external", _stop_of_batch.set, (stop,)), stop


def stopped() -> bool:
    """Whether the batch of this thread is to end, for what waits for something else."""
    stop = _stop_of_batch.get()
    return stop is not None and stop.is_set()


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _read(
    process: subprocess.Popen[bytes],
    outputs: Sequence[bytearray],
    name: str,
    end: float,
    time_limit_s: float,
    limit: int,
    on_output: Callable[[Sequence[bytes]], None] | None,
) -> None:
    """Reads both outputs into ``outputs``, until the program ends."""
    start = time.monotonic()
    with selectors.DefaultSelector() as open_pipes:
        for pipe, output in zip((process.stdout, process.stderr), outputs, strict=True):
            assert pipe is not None
            open_pipes.register(pipe, selectors.EVENT_READ, output)
        while True:
            poll_s = _POLL_S
            if on_output is not None:
                so_far = time.monotonic() - start
                poll_s = min(_POLL_S, max(_SHORTEST_POLL_S, _POLL_SHARE * so_far))
            # Asked before the pipes are read, so that nothing printed before the end is missed.
            ended = process.poll() is not None
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"{name} did not finish within {time_limit_s:g} s")
            if stopped():
                raise SimulationError(f"{name} was stopped with the batch that it belongs to")
            _read_for(min(left, poll_s), open_pipes, limit)
            for output in outputs:
                if len(output) > limit:
                    shown = last_lines(output[-_SHOWN_BYTES:].decode("utf-8", errors="replace"))
                    raise SimulationError(f"{name} printed more than {limit} bytes: {shown}")
            if not open_pipes.get_map():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(min(max(end - time.monotonic(), 0), poll_s))
                    ended = True
            if on_output is not None:
                on_output([bytes(output) for output in outputs])
            if ended:  # a child of it may hold the pipes open
                return


def _read_for(seconds: float, open_pipes: selectors.BaseSelector, limit: int) -> None:
    """Reads pipes until they are closed, the time is over or one printed more than the limit.

    A program can print a gigabyte a second: what it printed is counted with every piece.
    """
    end = time.monotonic() + seconds
    while open_pipes.get_map() and (left := end - time.monotonic()) > 0:
        for key, _ in open_pipes.select(left):
            piece = os.read(key.fd, _PIECE_BYTES)
            if not piece:
                open_pipes.unregister(key.fileobj)
            key.data.extend(piece)
            if len(key.data) > limit:
                return


def _decoded(outputs: Sequence[bytearray], start: float, exit_code: int) -> ProgramOutput:
    stdout, stderr = (output.decode("utf-8", errors="replace") for output in outputs)
    return ProgramOutput(stdout, stderr, time.monotonic() - start, exit_code)


def _limit(pid: int, file_bytes: int, time_limit_s: float, memory_bytes: int | None) -> None:
    """Bounds files, processor time and memory, where the system can set that from outside.

    The time limit is kept by this process; the processor time ends a program that hangs after
    this process was killed.
    """
    import resource

    if not hasattr(resource, "prlimit"):
        return
    cpu_s = (math.ceil(time_limit_s) + 1) * available_cores()
    limits = [(resource.RLIMIT_FSIZE, file_bytes), (resource.RLIMIT_CPU, cpu_s)]
    if memory_bytes is not None:
        limits.append((resource.RLIMIT_AS, memory_bytes))
    for what, limit in limits:
        with contextlib.suppress(OSError, ValueError, OverflowError):
            resource.prlimit(pid, what, (limit, limit))


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
