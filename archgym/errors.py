"""Every exception that archgym raises on purpose, and the wording of near misses.

All derive from :class:`ArchgymError`; the command line turns them into one message and exit code 2.
"""

from __future__ import annotations

import difflib
import math
import sysconfig
import traceback
from collections.abc import Iterable
from pathlib import Path

_MAX_BEGUN = 3


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """A sentence that suggests the nearest allowed spelling and lists what is allowed.

    >>> did_you_mean("rnadom", ["genetic", "random"])
    "Did you mean 'random'? Allowed: genetic, random."
    """
    names = list(dict.fromkeys(str(candidate) for candidate in allowed))
    if names and all(map(_is_number, names)):
        names.sort(key=float)
        if _is_number(name):
            nearest = min(names, key=lambda allowed: abs(float(allowed) - float(name)))
            return f"The nearest is {nearest}. Allowed: {_listing(names)}."
    else:
        names.sort()
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    begun = [candidate for candidate in names if _begins(candidate, str(name))]
    if begun and not set(near) & set(begun):
        near = begun[:_MAX_BEGUN]
    listing = f"Allowed: {_listing(names) or 'nothing'}."
    return f"Did you mean {' or '.join(map(repr, near))}? {listing}" if near else listing


def _begins(candidate: str, name: str) -> bool:
    """Whether a name may be short for a candidate; one letter is short for anything."""
    folded = name.casefold()
    return candidate.casefold() == folded or (
        len(folded) > 1 and candidate.casefold().startswith(folded)
    )


def _listing(names: list[str]) -> str:
    return ", ".join(names[:40]) + (", ..." if len(names) > 40 else "")


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def place_of(error: BaseException) -> str:
    """Where an error comes from in code that is neither archgym's nor installed.

    >>> place_of(ValueError("never raised"))
    ''

    Returns:
        Such as ``" (my_cache.py, line 12)"``: of the innermost such line; empty if there is none.
    """
    installed = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    elsewhere = (str(Path(__file__).parent), *installed, "<")
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if not frame.f_code.co_filename.startswith(elsewhere):
            return f" ({Path(frame.f_code.co_filename).name}, line {line})"
    return ""


class ArchgymError(Exception):
    """Base class of every error that archgym raises on purpose."""


class UnknownNameError(ArchgymError):
    """A name (environment, agent, workload, metric, parameter, key) that does not exist.

    Args:
        kind: what was named, for example ``"agent"``.
        name: the name as given.
        allowed: the names that exist.
        where: where it was found, for example ``"agents[0].name"``; empty if obvious.
    """

    def __init__(self, kind: str, name: object, allowed: Iterable[str], where: str = "") -> None:
        place = f"{where}: " if where else ""
        super().__init__(f"{place}unknown {kind} {name!r}. {did_you_mean(str(name), allowed)}")


class InvalidValueError(ArchgymError, ValueError):
    """A value outside what is allowed; the message names the field, the value and the range."""


class DesignError(InvalidValueError):
    """A design that cannot be read: a parameter missing, unknown or with a value out of range."""


class SpaceTooLargeError(ArchgymError):
    """An exact count or an enumeration that would take too long."""


class SimulationError(ArchgymError):
    """Raised by a simulator when one design fails; becomes an outcome with status ``failed``."""


class NotCoveredError(ArchgymError):
    """Raised by a simulator for a design that it does not model; becomes status ``illegal``."""


class BudgetExhausted(ArchgymError):
    """The evaluation budget is spent; agents end their search when they see it."""


class AgentUnsuitableError(ArchgymError):
    """An agent that cannot work on this design space or these objectives, with the reason."""


class DatasetError(ArchgymError):
    """A trajectory dataset that cannot be read, written or continued."""


class ReplayMismatchError(DatasetError):
    """A resumed search proposed another design than its log holds."""


class ExperimentError(ArchgymError):
    """An experiment file that is not valid, or an output folder that cannot be used."""


class ReportError(ArchgymError):
    """A report or a figure cannot be written."""


class TraceError(ArchgymError):
    """A memory trace that cannot be read, or an unusable cache or recording setting."""


class MissingDependencyError(ArchgymError):
    """A program or optional package that is missing; the message names what to install."""


def check_integer(name: str, value: object, least: int) -> None:
    """Refuses a value that is no integer, or too small.

    Raises:
        InvalidValueError: with the name, the least value and the value.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidValueError(f"{name} must be an integer of at least {least}, not {value!r}")
