"""Texts in the output of a stage that say how the design ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from archgym.declared.plan import Failure
from archgym.declared.readings.extract import found_at
from archgym.simulators.external import ProgramOutput

__all__ = ["failure_in", "failure_line"]

_SHOWN: Final = 300


def failure_in(failures: Sequence[Failure], stage: str, output: ProgramOutput) -> Failure | None:
    """The first failure whose text is in the output of a stage.

    Raises:
        SimulationError: if a pattern takes too long.
    """
    for failure in failures:
        if failure.entry.stage in (None, stage):
            for text in (output.stdout, output.stderr):
                if _place(failure, stage, text) is not None:
                    return failure
    return None


def failure_line(failure: Failure, stage: str, output: ProgramOutput) -> str:
    """The line of the output that a failure is in.

    Raises:
        SimulationError: if a pattern takes too long.
    """
    for text in (output.stdout, output.stderr):
        place = _place(failure, stage, text)
        if place is not None:
            begin = text.rfind("\n", 0, place) + 1
            end = text.find("\n", place)
            return text[begin : end if end >= 0 else None].strip()[:_SHOWN]
    return ""


def _place(failure: Failure, stage: str, text: str) -> int | None:
    if failure.entry.text is not None:
        place = text.find(failure.entry.text)
        return place if place >= 0 else None
    return found_at(failure.pattern, text, f"the output of stage {stage}")
