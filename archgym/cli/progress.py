"""Progress of commands that take a while, on stderr."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from archgym.cli.output import console, echo

__all__ = ["clocked", "shown_progress"]

_LINE_EVERY_S = 10.0


def clocked() -> Callable[[str], None]:
    """A function that writes a line with the minutes and seconds since now before it."""
    began = time.perf_counter()

    def write(text: str) -> None:
        minutes, seconds = divmod(int(time.perf_counter() - began), 60)
        echo(f"{minutes}:{seconds:02d} {text}", err=True)

    return write


@contextlib.contextmanager
def shown_progress(quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Shows a bar on a terminal, and a line now and then in a log.

    Gives the function to call with the number of designs done and in all; ``None`` if ``quiet``.
    """
    if quiet:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn

    screen = console(stderr=True)
    columns = (BarColumn(), TextColumn("{task.description}"))
    shown = screen.is_terminal
    with Progress(*columns, console=screen, transient=True, disable=not shown) as bar:
        task = bar.add_task("compiling and evaluating", total=None)
        began: list[tuple[float, int]] = []
        next_line = 0.0

        def update(done: int, total: int) -> None:
            nonlocal next_line
            now = time.monotonic()
            if not began:
                began.append((now, done))
            text = _pace(done, total, now - began[0][0], done - began[0][1])
            bar.update(task, completed=done, total=total, description=text)
            if not shown and (now >= next_line or done >= total):
                next_line = now + _LINE_EVERY_S
                echo(text, err=True)

        yield update


def _pace(done: int, total: int, seconds: float, fresh: int) -> str:
    """Designs done, their rate, and the time left."""
    text = f"{done:,} of {total:,} designs"
    if not fresh or not seconds or done >= total:
        return text
    rate = fresh / seconds
    minutes, left = divmod(round((total - done) / rate), 60)
    hours, minutes = divmod(minutes, 60)
    duration = f"{hours} h {minutes} min" if hours else f"{minutes} min {left} s"
    return f"{text}, {rate:,.0f} a second, {duration} left"
