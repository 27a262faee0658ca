"""Checks that hold for every environment and every agent, also a stranger's.

``archgym check`` runs them. Each ``check_*`` function looks at one property. It returns a line that
says what was looked at, or raises :class:`CheckFailed` (or the error of the checked object) with
the problem. A package with agents or environments can run them in its tests:

.. code-block:: python

    import pytest
    from archgym.check import agent_check_names, check_agent

    @pytest.mark.parametrize("check", agent_check_names())
    def test_my_agent_conforms(check):
        (result,) = check_agent("my_package:MyAgent", only=[check])
        assert result.passed, result.detail
"""

from __future__ import annotations

import contextlib
from typing import Any

from archgym.check.agents import agent_check_names, check_agent
from archgym.check.environment import check_environment, environment_check_names
from archgym.check.program import check_program, program_check_names
from archgym.check.result import CheckFailed, CheckResult
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.registry import (
    agent_class,
    agent_names,
    environment_class,
    environment_names,
    is_declaration,
    is_tuning_file,
)

__all__ = [
    "CheckFailed",
    "CheckResult",
    "agent_check_names",
    "check",
    "check_agent",
    "check_environment",
    "check_program",
    "environment_check_names",
    "program_check_names",
]


def check(target: str, **arguments: Any) -> list[CheckResult]:
    """Checks whatever a name stands for.

    Args:
        target: registered name, or ``module:Class``, of an environment or of an agent, or the path
            of a YAML file that declares an environment.
        **arguments: of :func:`check_environment`, :func:`check_agent` or :func:`check_program`.

    Raises:
        UnknownNameError: if there is neither an environment nor an agent of that name.
    """
    if is_declaration(target):
        return check_program(target, **arguments)
    if not is_tuning_file(target) and _is_agent(target):
        return check_agent(target, **arguments)
    environment_class(target)
    return check_environment(target, **arguments)


def _is_agent(target: str) -> bool:
    known = [*environment_names(), *agent_names()]
    if ":" not in target:
        if target not in known and not target.startswith("archgym/"):
            raise UnknownNameError("environment or agent", target, known)
        return target in agent_names() and target not in environment_names()
    for found, is_agent in ((environment_class, False), (agent_class, True)):
        with contextlib.suppress(InvalidValueError):
            found(target)
            return is_agent
    raise InvalidValueError(
        f"{target!r} is neither an environment nor an agent: derive from archgym.Environment "
        "or archgym.agent.Sampler"
    )
