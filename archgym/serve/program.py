"""A program that is started for a session, with its standard input and output as the other end."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["Started", "program_streams"]

_GRACE_S: Final = 5.0
_LOOK_MS: Final = 100
"""How often it is looked whether a program that writes nothing has ended, ms."""
_CHUNK_BYTES: Final = 1 << 20
"""At least what a pipe holds, so that one reading takes all that an ended program wrote."""


@dataclass
class Started:
    """A program that runs.

    Attributes:
        requests: descriptor that its standard output is read from; it ends with the program, also
            where a child of the program holds the output open.
        answers: descriptor that its standard input is written to.
        code: its exit code, once it has ended; 128 and the number of a signal, as shells count.
    """

    requests: int
    answers: int
    code: int = 0


@contextlib.contextmanager
def program_streams(command: Sequence[str]) -> Iterator[Started]:
    """Starts a program without a shell, for a block; at its end the program has ended.

    After the session the program goes on until it ends by itself, since it may have files to
    write; its input has ended. If an error or a signal ended the block, it is terminated.

    Args:
        command: the program and its arguments.

    Raises:
        OSError: if it cannot be started.
    """
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert process.stdin is not None
    assert process.stdout is not None
    requests, relayed = os.pipe()
    relay = threading.Thread(target=_relay, args=(process, relayed), name="relay", daemon=True)
    relay.start()
    started = Started(requests, process.stdin.fileno())
    reading = contextlib.ExitStack()
    reading.callback(os.close, requests)
    try:
        yield started
        process.stdin.close()
        reading.close()  # so that what it still writes there cannot block it
        process.wait()
    except BaseException:
        process.terminate()
        raise
    finally:
        process.stdin.close()
        reading.close()
        try:
            code = process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        started.code = code if code >= 0 else 128 - code


def _relay(process: subprocess.Popen[bytes], sink: int) -> None:
    """Passes on what a program writes, until it has ended or nobody reads; closes both ends."""
    assert process.stdout is not None
    source = process.stdout.fileno()
    waiting = select.poll()
    waiting.register(source, select.POLLIN)
    with process.stdout, contextlib.suppress(OSError), open(sink, "wb", buffering=0) as passed_on:
        while True:
            ended = process.poll() is not None
            if waiting.poll(0 if ended else _LOOK_MS):
                chunk = os.read(source, _CHUNK_BYTES)
                left = memoryview(chunk)
                while left:
                    left = left[passed_on.write(left) :]
                ended = ended or not chunk
            if ended:
                return
