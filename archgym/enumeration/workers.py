"""Worker processes that simulate the chunks of an enumeration."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Connection, wait
from typing import Any

from archgym.enumeration.chunks import Chunks
from archgym.errors import ArchgymError, SimulationError
from archgym.reading.import_path import children_leave_out_working_folder, forget_in_child
from archgym.registry import make
from archgym.simulators.threads import one_numeric_thread_in_children

_Process = multiprocessing.process.BaseProcess


def simulate_in_processes(
    chunks: Chunks, missing: list[int], environment: str, arguments: Mapping[str, Any], workers: int
) -> Iterator[int]:
    """Simulates chunks in processes, each with its own environment.

    Args:
        chunks: of the enumeration.
        missing: which of them.
        environment: registered name, or ``module:Class``.
        arguments: of its constructor.
        workers: number of processes, not more than chunks.

    Returns:
        The index of each chunk when it is done.

    Raises:
        SimulationError: if a process ended.
        ArchgymError: if an environment cannot be made, or a simulator cannot run at all.
    """
    with _processes(workers, chunks, environment, dict(arguments)) as processes:
        left = missing[::-1]
        busy: dict[Connection, int] = {}
        while left or busy:
            for pipe in [pipe for pipe in processes if pipe not in busy][: len(left)]:
                busy[pipe] = left.pop()
                with contextlib.suppress(BrokenPipeError):  # _check_answer reports that it ended
                    pipe.send(busy[pipe])
            ready = wait(list(busy))
            for pipe in [pipe for pipe in busy if pipe in ready]:
                number = busy.pop(pipe)
                _check_answer(pipe, processes[pipe], chunks.positions(number))
                yield number


@contextlib.contextmanager
def _processes(workers: int, *job: Any) -> Iterator[dict[Connection, _Process]]:
    """Worker processes by the pipe to each; they end with this process, however it ends."""
    context = multiprocessing.get_context("spawn")  # threads and forks do not go together
    processes: dict[Connection, _Process] = {}
    try:
        # Each worker has a core, not all of them.
        with one_numeric_thread_in_children(), children_leave_out_working_folder():
            for _ in range(workers):
                ours, theirs = context.Pipe()
                processes[ours] = context.Process(target=_work, args=(theirs, *job), daemon=True)
                processes[ours].start()
                theirs.close()
        yield processes
    finally:
        for pipe, process in processes.items():
            pipe.close()
            process.terminate()
            process.join()


def _work(pipe: Connection, chunks: Chunks, environment: str, arguments: dict[str, Any]) -> None:
    """A worker process: simulates the chunks whose indices it receives until the pipe closes."""
    forget_in_child()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            made = make(environment, **arguments)
            while True:
                chunks.simulate(pipe.recv(), made)
                pipe.send("")
        except ArchgymError as error:
            pipe.send(str(error))


def _end_with_parent() -> None:
    """Ends this process in the middle of a chunk if its parent is gone, however that ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _check_answer(pipe: Connection, process: _Process, positions: range) -> None:
    """Receives the answer for a chunk: an error, or an empty text."""
    try:
        problem = pipe.recv()
    except (EOFError, ConnectionResetError):
        process.join()
        raise SimulationError(
            f"a worker process ended with exit code {process.exitcode} in designs {positions[0]} "
            f"to {positions[-1]}; what is done is kept, and the same command goes on with it"
        ) from None
    if problem:
        raise ArchgymError(problem)
