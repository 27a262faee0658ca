"""How a command ends that is asked to end before it is done."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any

import typer

from archgym.cli.output import echo

__all__ = ["interruptible"]

_ENDS = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def interruptible(lines: Callable[[], list[str]] = list) -> Iterator[None]:
    """Ends a command in good order at Ctrl-C, SIGTERM and SIGHUP alike.

    What runs sees a KeyboardInterrupt and tidies up, undisturbed by further signals of the same
    kind. A signal that is ignored, as under nohup, stays ignored.

    Args:
        lines: gives the lines that are then printed on stderr.

    Raises:
        typer.Exit: with 128 and the number of the signal, as shells count.
    """
    ends = [end for end in _ENDS if signal.getsignal(end) is not signal.SIG_IGN]

    ended_by = [int(signal.SIGINT)]

    def end(number: int, _: Any) -> None:
        for one in ends:
            signal.signal(one, signal.SIG_IGN)
        ended_by.append(number)  # what the exception holds is lost on its way through libraries
        raise KeyboardInterrupt

    before = [signal.signal(one, end) for one in ends]
    try:
        yield
    except KeyboardInterrupt:
        for line in lines():
            echo(line, err=True)
        raise typer.Exit(128 + ended_by[-1]) from None
    finally:
        for one, handler in zip(ends, before, strict=True):
            signal.signal(one, handler)
