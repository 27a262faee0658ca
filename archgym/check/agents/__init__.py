"""Checks of agents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from archgym.agent import Agent
from archgym.check.agents import asking, searches
from archgym.check.agents.families import FAMILIES, Family
from archgym.check.agents.subject import Subject, subject_of, trajectories
from archgym.check.result import CheckResult, chosen_names, run_all
from archgym.errors import AgentUnsuitableError

__all__ = ["FAMILIES", "agent_check_names", "check_agent", "trajectories"]


def agent_check_names() -> list[str]:
    """Names of all checks, in the order in which they are made."""
    return list(_checks())


def check_agent(
    target: str | type[Agent],
    *,
    only: Sequence[str] = (),
    on_result: Callable[[CheckResult], None] | None = None,
    **hyperparameters: Any,
) -> list[CheckResult]:
    """Runs every check on an agent and reports; raises nothing, whatever the agent does.

    An agent may refuse an environment when it is constructed, by an
    :class:`~archgym.errors.AgentUnsuitableError`; the check of that environment then passes,
    and the detail says so. It must accept one at least.

    >>> from archgym.check import check_agent
    >>> [r.name for r in check_agent("random", only=["search mixed", "seeds"]) if r.passed]
    ['search mixed', 'seeds']

    Args:
        target: a registered name, ``module:Class``, or a class.
        only: names of checks (:func:`agent_check_names`); all, if there are none.
        on_result: called with each result as soon as it is there.
        **hyperparameters: with which it is checked; small ones make it quick.

    Raises:
        UnknownNameError: if there is no such check.
    """
    checks = _checks()
    names = chosen_names(only, list(checks), "agents")
    try:
        subject = subject_of(target, hyperparameters)
    except Exception as error:
        problem = CheckResult("can be loaded", False, f"{type(error).__name__}: {error}")
        if on_result is not None:
            on_result(problem)
        return [problem]
    chosen = {name: partial(_or_refusal, checks[name], subject) for name in names}
    polish = [_words(check) for check in (*asking.ONCE, *searches.POLISH)]
    return run_all(chosen, on_result, polish)


def _checks() -> dict[str, Callable[[Subject], str]]:
    checks: dict[str, Callable[[Subject], str]] = {
        f"{_words(check)} {family.name}": partial(_on, check, family)
        for family in FAMILIES
        for check in searches.ON_EACH
    }
    return {**checks, **{_words(check): check for check in (*asking.ONCE, *searches.ONCE)}}


def _words(check: Callable[..., str]) -> str:
    return check.__name__.removeprefix("check_").replace("_", " ")


def _on(check: Callable[[Subject, Family], str], family: Family, subject: Subject) -> str:
    return check(subject, family)


def _or_refusal(check: Callable[[Subject], str], subject: Subject) -> str:
    """The line that a check returns; an agent may refuse what does not suit it."""
    try:
        return check(subject)
    except AgentUnsuitableError as refusal:
        return f"refused: {refusal}"
