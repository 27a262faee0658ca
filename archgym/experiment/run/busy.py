"""What simulates now, for how long, and how busy the workers were: for people."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from archgym.evaluation.evaluator import Evaluator

__all__ = ["Busy", "busy_line", "busy_rows", "clock_text"]

_MAX_LISTED = 8
"""Maximum number of designs in flight that are sent to a display."""


@dataclass(frozen=True)
class Busy:
    """The workers of a trial.

    Attributes:
        slots: simulations that may run at a time.
        running: simulations that run.
        waiting: designs that wait for a worker.
        oldest: of those that run longest: name of the worker, and when it began, seconds since
            the epoch.
        share: mean share of the workers that were busy since the trial began, or went on.
    """

    slots: int
    running: int
    waiting: int
    oldest: tuple[tuple[str, float], ...]
    share: float

    @staticmethod
    def of(core: Evaluator) -> Busy | None:
        """The workers of a trial; ``None`` if its designs are simulated in its own process.

        Args:
            core: of the trial.
        """
        if not core.queued:
            return None
        flights, now, slots = core.in_flight, core.now, core.slots
        running = [(one.worker, one.started) for one in flights if one.started is not None]
        here = time.time() - now  # 0, unless the clock is simulated
        oldest = sorted(((w, s + here) for w, s in running), key=lambda one: one[1])[:_MAX_LISTED]
        spent = core.live_s + sum(now - started for _, started in running)
        began = now if core.live_since is None else core.live_since
        share = spent / max(1e-9, (now - began) * max(1, slots))
        waiting = len(flights) - len(running)
        return Busy(slots, len(running), waiting, tuple(oldest), min(1.0, share))

    @staticmethod
    def from_json(data: Mapping[str, Any] | None) -> Busy | None:
        """The inverse of ``dataclasses.asdict``, through JSON."""
        if data is None:
            return None
        return Busy(**{**data, "oldest": tuple((str(w), float(s)) for w, s in data["oldest"])})


def busy_line(found: Iterable[Busy]) -> str:
    """How many workers of all trials are busy; empty if there are none."""
    held = list(found)
    slots, running = sum(one.slots for one in held), sum(one.running for one in held)
    if not slots:
        return "no worker is there" if held else ""
    share = sum(one.share * one.slots for one in held) / slots
    waiting = sum(one.waiting for one in held)
    text = f"{running} of {slots} workers busy, {share:.0%} of the time so far"
    return f"{text}, {waiting} designs waiting" if waiting else text


def busy_rows(found: Iterable[Busy]) -> list[tuple[str, str]]:
    """The simulations that run longest: worker, and for how long."""
    oldest = sorted((one for busy in found for one in busy.oldest), key=lambda one: one[1])
    now = time.time()
    return [(worker, clock_text(now - began)) for worker, began in oldest[:_MAX_LISTED]]


def clock_text(seconds: float) -> str:
    """A time as minutes and seconds, or with hours."""
    minutes, rest = divmod(round(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
