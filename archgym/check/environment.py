"""Runs the checks of an environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from archgym.check.interfaces import INTERFACES
from archgym.check.properties import PROPERTIES, Maker
from archgym.check.result import CheckResult, run_all
from archgym.environment import Environment
from archgym.errors import InvalidValueError
from archgym.registry import constructor_arguments, environment_class, make

__all__ = ["check_environment"]


def check_environment(
    target: str | type[Environment] | Environment,
    *,
    on_result: Callable[[CheckResult], None] | None = None,
    **kwargs: Any,
) -> list[CheckResult]:
    """Runs every check and reports; raises nothing, whatever the environment does.

    >>> from archgym.check import check_environment
    >>> [result.name for result in check_environment("Nowhere-v0") if not result.passed]
    ['can_be_made']

    Args:
        target: a registered name, ``module:Class``, a class, or an environment (which is used as
            it is; its current trial ends).
        on_result: called with each result as soon as it is there.
        **kwargs: arguments of the environment, if it has yet to be made.
    """
    first = {"can_be_made": lambda: _describe(_maker(target, kwargs)())}
    made = run_all(first, on_result)
    if not made[0].passed:
        return made
    make_env = _maker(target, kwargs)
    checks: tuple[Callable[[Maker], str], ...] = (*PROPERTIES, *INTERFACES)
    named = {check.__name__.removeprefix("check_"): partial(check, make_env) for check in checks}
    return made + run_all(named, on_result)


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
    allowed = constructor_arguments(type(env))
    lacking = [name for name in constructor_arguments(Environment) if name not in allowed]
    if lacking:
        raise InvalidValueError(
            f"the constructor of {type(env).__name__} does not take {', '.join(lacking)}: "
            "let it take **arguments and hand them to super().__init__(**arguments)"
        )
    goals = ", ".join(env.objective.names)
    return f"{env.name}: {env.design_space!r}, {len(env.metrics)} metrics, goals: {goals}"
