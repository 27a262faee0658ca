"""Checks that hold for every environment and every agent, also a stranger's.

They are what ``archgym check`` runs. Each ``check_*`` function looks at one property. It returns a
line on what was looked at, or raises :class:`CheckFailed` (or whatever is checked raises itself)
with what is wrong. Agents from elsewhere are held to them in a test of one's own, environments
likewise:

.. code-block:: python

    import pytest
    from archgym.check import agent_check_names, check_agent

    @pytest.mark.parametrize("check", agent_check_names())
    def test_my_agent_conforms(check):
        (result,) = check_agent("my_package:MyAgent", only=[check])
        assert result.passed, result.detail
"""

from __future__ import annotations

from typing import Any

from archgym.check.agents import agent_check_names, check_agent
from archgym.check.environment import check_environment, environment_check_names
from archgym.check.result import CheckFailed, CheckResult
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.registry import agent_class, agent_names, environment_class, environment_names

__all__ = [
    "CheckFailed",
    "CheckResult",
    "agent_check_names",
    "check",
    "check_agent",
    "check_environment",
    "environment_check_names",
]


def check(target: str, **arguments: Any) -> list[CheckResult]:
    """Checks whatever a name stands for.

    Args:
        target: registered name, or ``module:Class``, of an environment or of an agent.
        **arguments: of :func:`check_environment` or :func:`check_agent`.

    Raises:
        UnknownNameError: if there is neither an environment nor an agent of that name.
    """
    if _is_agent(target):
        return check_agent(target, **arguments)
    environment_class(target)
    return check_environment(target, **arguments)


def _is_agent(target: str) -> bool:
    if target in environment_names():
        return False
    if ":" not in target:
        if target not in agent_names() and target.removeprefix("archgym/") == target:
            known = [*environment_names(), *agent_names()]
            raise UnknownNameError("environment or agent", target, known)
        return target in agent_names()
    try:
        environment_class(target)
    except InvalidValueError:
        pass
    else:
        return False
    try:
        agent_class(target)
    except InvalidValueError:
        raise InvalidValueError(
            f"{target!r} is neither an environment nor an agent: derive from archgym.Environment "
            "or archgym.agent.Sampler"
        ) from None
    return True
