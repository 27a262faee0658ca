"""Checks of agents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any

from archgym.agent import Agent
from archgym.check.agents import in_flight
from archgym.check.agents import proposal_checks as asking
from archgym.check.agents import search_checks as searches
from archgym.check.agents.agent_under_test import Subject, subject_of, trajectories
from archgym.check.agents.environments import FAMILIES
from archgym.check.result import CheckResult, checks_of, chosen_names, run_all
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
    return run_all(chosen, on_result, [*_named(asking), *searches.POLISH])


def _checks() -> dict[str, Callable[[Subject], str]]:
    once = {**_named(asking), **_named(searches), **_named(in_flight)}
    on_each = [(name, once.pop(name)) for name in searches.ON_EACH]
    checks = {
        f"{name} {family.name}": partial(check, family=family)
        for family in FAMILIES
        for name, check in on_each
    }
    return {**checks, **once}


def _named(module: ModuleType) -> dict[str, Callable[..., str]]:
    return {name.replace("_", " "): check for name, check in checks_of(module).items()}


def _or_refusal(check: Callable[[Subject], str], subject: Subject) -> str:
    """The line that a check returns; an agent may refuse what does not suit it."""
    try:
        return check(subject)
    except AgentUnsuitableError as refusal:
        return f"refused: {refusal}"
