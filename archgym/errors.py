"""Every exception that archgym raises on purpose.

All derive from :class:`ArchgymError`; the command line turns them into one message and exit code 2.
"""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Collection, Iterable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

from archgym.reading.folders import strange_entry
from archgym.reading.suggestions import did_you_mean

_LONGEST_SHOWN = 200
"""Characters of an unknown name that a message shows."""
_MAX_SEED = (1 << 63) - 1


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
        reason: why there is none here, of a name that exists elsewhere.
    """

    def __init__(
        self,
        kind: str,
        name: object,
        allowed: Iterable[str],
        where: str = "",
        reason: str = "",
    ) -> None:
        place, shown = f"{where}: " if where else "", repr(name)
        if len(shown) > _LONGEST_SHOWN:
            shown = f"{shown[:_LONGEST_SHOWN]}... ({len(shown):,} characters)"
        what = f"no {kind} {shown} here: {reason}" if reason else f"unknown {kind} {shown}"
        hint = did_you_mean("" if reason else str(name), allowed)
        super().__init__(f"{place}{what}. {hint}")

    def __reduce__(self) -> tuple[Any, ...]:
        """The message alone: what is allowed is in it."""
        return UnknownNameError.__new__, (UnknownNameError, *self.args)


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


class StoppedEarly(ArchgymError):
    """Ends the simulation of a design that is clearly worse; becomes status ``stopped``.

    Args:
        reason: at which progress, and why.
        record: ``progress`` in (0, 1), ``so_far`` (metrics by progress) and ``predicted`` (metrics
            of the whole run), as plain values.
    """

    def __init__(self, reason: str, record: Mapping[str, Any]) -> None:
        super().__init__(reason)
        self.record = dict(record)

    def __reduce__(self) -> tuple[Any, ...]:
        """Both arguments."""
        return StoppedEarly, (str(self), self.record)


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


def check_integer(name: str, value: object, least: int) -> int:
    """The value as a plain integer; one of NumPy's is taken too.

    Raises:
        InvalidValueError: if it is no integer, or too small; with the name and what is allowed.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise InvalidValueError(f"{name} must be an integer of at least {least}, not {value!r:.80}")
    return int(value)


def check_seed(seed: object) -> int:
    """The seed as a plain integer, if it is one that datasets can hold.

    Raises:
        InvalidValueError: if it is no integer from 0 to below 2^63.
    """
    plain = check_integer("seed", seed, 0)
    if plain > _MAX_SEED:
        raise InvalidValueError(f"seed must be below 2^63, not {plain}")
    return plain


def check_choice(kind: str, name: object, allowed: Collection[str]) -> None:
    """Refuses a name that is not among the allowed ones.

    Raises:
        UnknownNameError: with what was named and the nearest allowed name.
    """
    if name not in allowed:
        raise UnknownNameError(kind, name, allowed)


def check_received(folder: Path, kind: type[ArchgymError] = DatasetError) -> None:
    """Refuses a folder in which something leads elsewhere: a symbolic link, a pipe, a device.

    Whoever sent the folder could have a file outside it read, overwritten or deleted. A folder
    whose name is not in UTF-8 is refused too: the library of Parquet files cannot use it.

    Args:
        folder: that archgym reads from or writes to; the user named it, so it may be a link.
        kind: of the error.

    Raises:
        ArchgymError: of that kind, with the entry.
    """
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise kind(f"{str(folder)!r} cannot be used: its name is not in UTF-8") from None
    if found := strange_entry(folder):
        raise kind(
            f"{found}, and nothing in such a folder may lead out of it: replace it by what it "
            "stands for, or remove it"
        )
