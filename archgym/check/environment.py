"""Runs the checks of an environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from archgym.check import environment_checks as properties
from archgym.check import interface_checks as interfaces
from archgym.check.environment_checks import Maker
from archgym.check.result import CheckResult, checks_of, chosen_names, run, run_all
from archgym.environment.arguments import constructor_arguments, own_arguments, unnamed_argument
from archgym.environment.environment import Environment
from archgym.errors import InvalidValueError
from archgym.registry import environment_class, make

_FIRST = "can_be_made"


def check_environment(
    target: str | type[Environment] | Environment,
    *,
    only: Sequence[str] = (),
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
        only: names of checks (:func:`environment_check_names`); all, if there are none. The
            result that it cannot be made comes whatever they are.
        on_result: called with each result as soon as it is there.
        **kwargs: arguments of the environment, if it has yet to be made.

    Raises:
        UnknownNameError: if there is no such check.
    """
    names = chosen_names(only, environment_check_names(), "environments")
    made = run(_FIRST, lambda: _describe(_maker(target, kwargs)()))
    results = [made] if _FIRST in names or not made.passed else []
    if results and on_result is not None:
        on_result(made)
    if not made.passed:
        return results
    make_env, checks = _maker(target, kwargs), _checks()
    named = {name: partial(checks[name], make_env) for name in names if name != _FIRST}
    return results + run_all(named, on_result, checks_of(interfaces))


def environment_check_names() -> list[str]:
    """Names of all checks, in the order in which they are made."""
    return [_FIRST, *_checks()]


def _checks() -> dict[str, Callable[[Maker], str]]:
    return {**checks_of(properties), **checks_of(interfaces)}


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
    if type(env).settings is Environment.settings:
        for name in own_arguments(type(env), Environment):
            raise unnamed_argument(type(env), name, f"with another value of {name}")
    env.simulate_baseline()
    goals = ", ".join(env.objective.names)
    return f"{env.name}: {env.design_space!r}, {len(env.metrics)} metrics, goals: {goals}"
