"""Results of checks, and how a check is run."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from archgym.errors import UnknownNameError

_PACKAGE = Path(__file__).parents[1]
_INSTALLED = ("stdlib", "platstdlib", "purelib", "platlib")


@dataclass(frozen=True)
class CheckResult:
    """What one check found.

    Attributes:
        name: which check.
        passed: whether the property holds.
        detail: what was looked at, or what is wrong.
        required: whether searches, comparisons and datasets rely on it; the others are polish,
            which users of a published environment or agent expect.
    """

    name: str
    passed: bool
    detail: str
    required: bool = True


class CheckFailed(Exception):
    """A property that does not hold; the message tells where."""


class UnpolishedError(CheckFailed):
    """A fault within a required check on which no comparison relies: it counts as polish."""


class NotApplicableError(Exception):
    """A check that does not concern what is checked; the message says why."""


def expect(holds: bool, problem: str) -> None:
    """Raises :class:`CheckFailed` where a property does not hold."""
    if not holds:
        raise CheckFailed(problem)


def checks_of(module: ModuleType) -> dict[str, Callable[..., str]]:
    """The ``check_*`` functions that a module defines, by the rest of their names, in order."""
    return {
        name.removeprefix("check_"): value
        for name, value in vars(module).items()
        if name.startswith("check_") and value.__module__ == module.__name__
    }


def chosen_names(only: Sequence[str], names: Sequence[str], kind: str) -> list[str]:
    """The checks to run: those in ``only``, in the order of ``names``; all if it is empty.

    The first words of names, as ``search`` of ``search dram``, stand for all of them.

    Raises:
        UnknownNameError: for one that there is not.
    """

    def meant(name: str, given: str) -> bool:
        return name == given or (given not in names and name.startswith(f"{given} "))

    for given in only:
        if not any(meant(name, given) for name in names):
            raise UnknownNameError(f"check of {kind}", given, names)
    return [name for name in names if not only or any(meant(name, given) for given in only)]


def run_all(
    checks: Mapping[str, Callable[[], str]],
    on_result: Callable[[CheckResult], None] | None,
    polish: Collection[str] = (),
) -> list[CheckResult]:
    """The results of checks by name, each handed to ``on_result`` as soon as it is there.

    Args:
        checks: by name.
        on_result: called with each result.
        polish: names of those that are not required; nor is one that only lacks polish.
    """
    results = []
    for name, check in checks.items():
        result = run(name, check)
        results.append(replace(result, required=result.required and name not in polish))
        if on_result is not None:
            on_result(results[-1])
    return results


def run(name: str, check: Callable[[], str]) -> CheckResult:
    """The result of a check, which returns a line on what it looked at; raises nothing."""
    try:
        return CheckResult(name, True, check())
    except NotApplicableError as reason:
        return CheckResult(name, True, f"does not apply: {reason}")
    except UnpolishedError as fault:
        return CheckResult(name, False, str(fault), required=False)
    except CheckFailed as failure:
        return CheckResult(name, False, str(failure))
    except Exception as error:
        return CheckResult(name, False, f"{type(error).__name__}: {error}{_place(error)}")


def _place(error: Exception) -> str:
    """Where the code that is checked raised an error; empty if only other code took part.

    Other code is archgym itself, Python's library, and installed packages.
    """
    others = [_PACKAGE, *(Path(sysconfig.get_path(name)) for name in _INSTALLED)]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_file() and not any(path.is_relative_to(folder) for folder in others):
            return f" ({path.name}:{frame.lineno}, in {frame.name})"
    return ""
