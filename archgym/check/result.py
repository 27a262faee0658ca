"""What a check finds, and how one is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["CheckFailed", "CheckResult", "NotApplicableError", "expect", "run", "run_all"]


@dataclass(frozen=True)
class CheckResult:
    """What one check found.

    Attributes:
        name: which check.
        passed: whether the property holds.
        detail: what was looked at, or what is wrong.
    """

    name: str
    passed: bool
    detail: str


class CheckFailed(Exception):
    """A property that does not hold; the message says where."""


class NotApplicableError(Exception):
    """A check that does not concern what is checked; the message says why."""


def expect(holds: bool, problem: str) -> None:
    """Raises :class:`CheckFailed` where a property does not hold."""
    if not holds:
        raise CheckFailed(problem)


def run_all(
    checks: Mapping[str, Callable[[], str]], on_result: Callable[[CheckResult], None] | None
) -> list[CheckResult]:
    """The results of checks by name, each handed to ``on_result`` as soon as it is there."""
    results = []
    for name, check in checks.items():
        results.append(run(name, check))
        if on_result is not None:
            on_result(results[-1])
    return results


def run(name: str, check: Callable[[], str]) -> CheckResult:
    """The result of a check, which returns a line on what it looked at; raises nothing."""
    try:
        return CheckResult(name, True, check())
    except NotApplicableError as reason:
        return CheckResult(name, True, f"does not apply: {reason}")
    except CheckFailed as failure:
        return CheckResult(name, False, str(failure))
    except Exception as error:
        return CheckResult(name, False, f"{type(error).__name__}: {error}")
