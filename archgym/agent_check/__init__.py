"""Checks that hold for every agent, also a stranger's.

Each ``check_*`` function looks at one property of one agent. It returns a line on what was
looked at, or raises :class:`~archgym.check.CheckFailed` (or whatever the agent itself raises)
with what is wrong. Agents from elsewhere are held to them in a test of one's own:

.. code-block:: python

    import pytest
    from archgym.agent_check import check_agent, check_names

    @pytest.mark.parametrize("check", check_names())
    def test_my_agent_conforms(check):
        (result,) = check_agent("my_package:MyAgent", only=[check])
        assert result.passed, result.detail
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from archgym.agent import Agent
from archgym.agent_check import asking, searches
from archgym.agent_check.families import FAMILIES, Family
from archgym.agent_check.subject import NotApplicableError, Subject, subject_of, trajectories
from archgym.check import CheckFailed, CheckResult
from archgym.errors import AgentUnsuitableError, UnknownNameError

__all__ = ["FAMILIES", "Family", "check_agent", "check_names", "trajectories"]


def check_names() -> list[str]:
    """Names of all checks, in the order in which they are made."""
    return list(_checks())


def check_agent(
    target: str | type[Agent], *, only: Sequence[str] = (), **hyperparameters: Any
) -> list[CheckResult]:
    """Runs every check on an agent and reports; raises nothing, whatever the agent does.

    An agent may refuse an environment when it is constructed, by an
    :class:`~archgym.errors.AgentUnsuitableError`; the check of that environment then passes,
    and the detail says so. It must accept one at least.

    >>> from archgym.agent_check import check_agent
    >>> [r.name for r in check_agent("random", only=["search mixed", "seeds"]) if r.passed]
    ['search mixed', 'seeds']

    Args:
        target: a registered name, ``module:Class``, or a class.
        only: names of checks (:func:`check_names`); all, if there are none.
        **hyperparameters: with which it is checked; small ones make it quick.

    Raises:
        UnknownNameError: if there is no such check.
    """
    checks = _checks()
    for name in only:
        if name not in checks:
            raise UnknownNameError("check of agents", name, checks)
    try:
        subject = subject_of(target, hyperparameters)
    except Exception as error:
        return [CheckResult("can be loaded", False, f"{type(error).__name__}: {error}")]
    return [_run(name, partial(checks[name], subject)) for name in only or checks]


def _checks() -> dict[str, Callable[[Subject], str]]:
    def words(check: Callable[..., str]) -> str:
        return check.__name__.removeprefix("check_").replace("_", " ")

    checks: dict[str, Callable[[Subject], str]] = {
        f"{words(check)} {family.name}": partial(_on, check, family)
        for family in FAMILIES
        for check in searches.ON_EACH
    }
    return {**checks, **{words(check): check for check in (*asking.ONCE, *searches.ONCE)}}


def _on(check: Callable[[Subject, Family], str], family: Family, subject: Subject) -> str:
    return check(subject, family)


def _run(name: str, check: Callable[[], str]) -> CheckResult:
    try:
        return CheckResult(name, True, check())
    except NotApplicableError as reason:
        return CheckResult(name, True, f"does not apply: {reason}")
    except AgentUnsuitableError as refusal:
        return CheckResult(name, True, f"refused: {refusal}")
    except CheckFailed as failure:
        return CheckResult(name, False, str(failure))
    except Exception as error:
        return CheckResult(name, False, f"{type(error).__name__}: {error}")
