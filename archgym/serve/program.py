"""A program that is started for a session, with its standard input and output as the other end."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["Started", "program_streams"]

_GRACE_S: Final = 5.0


@dataclass
class Started:
    """A program that runs.

    Attributes:
        requests: descriptor that its standard output is read from.
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
    started = Started(process.stdout.fileno(), process.stdin.fileno())
    try:
        yield started
        process.stdin.close()
        process.stdout.close()  # so that what it still writes there cannot block it
        process.wait()
    except BaseException:
        process.terminate()
        raise
    finally:
        process.stdin.close()
        try:
            code = process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        started.code = code if code >= 0 else 128 - code
