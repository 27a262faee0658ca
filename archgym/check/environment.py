"""Runs the checks of an environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from archgym.check.interfaces import INTERFACES
from archgym.check.properties import PROPERTIES, Maker
from archgym.check.result import CheckResult, run
from archgym.environment import Environment
from archgym.errors import InvalidValueError
from archgym.registry import environment_class, make

__all__ = ["check_environment"]


def check_environment(
    target: str | type[Environment] | Environment, **kwargs: Any
) -> list[CheckResult]:
    """Runs every check and reports; raises nothing, whatever the environment does.

    >>> from archgym.check import check_environment
    >>> [result.name for result in check_environment("Nowhere-v0") if not result.passed]
    ['can_be_made']

    Args:
        target: a registered name, ``module:Class``, a class, or an environment (which is used as
            it is; its current trial ends).
        **kwargs: arguments of the environment, if it has yet to be made.
    """
    made = run("can_be_made", lambda: _describe(_maker(target, kwargs)()))
    if not made.passed:
        return [made]
    make_env = _maker(target, kwargs)
    checks: tuple[Callable[[Maker], str], ...] = (*PROPERTIES, *INTERFACES)
    return [
        made,
        *(run(check.__name__.removeprefix("check_"), partial(check, make_env)) for check in checks),
    ]


def _maker(target: str | type[Environment] | Environment, kwargs: Mapping[str, Any]) -> Maker:
    if isinstance(target, Environment):
        if kwargs:
            raise InvalidValueError(f"{target!r} is made already: {sorted(kwargs)} come too late")
        return lambda: target
    if isinstance(target, str):
        environment_class(target)
        return lambda: make(target, **kwargs)
    if not (isinstance(target, type) and issubclass(target, Environment)):
        raise InvalidValueError(f"{target!r} is not a subclass of archgym.Environment")
    return lambda: target(**kwargs)


def _describe(env: Environment) -> str:
    goals = ", ".join(env.objective.names)
    return f"{env.name}: {env.design_space!r}, {len(env.metrics)} metrics, goals: {goals}"
