"""What an assistant chooses of an environment, checked: names and numbers, and nothing of files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from archgym.assistant.workplace import Workplace
from archgym.environment.arguments import own_arguments
from archgym.environment.environment import Environment
from archgym.environment.recorded import refuse_paths
from archgym.errors import InvalidValueError, UnknownNameError, check_choice
from archgym.simulators.tabular import PREFIX, shipped_tables

__all__ = ["chosen_arguments", "simulators_of"]

_INSTEAD = "an assistant names no files"


def chosen_arguments(
    workplace: Workplace,
    cls: type[Environment],
    *,
    workload: str | None,
    objective: str | Mapping[str, Any] | None,
    space: str | None,
    fixed: Mapping[str, Any] | None,
    simulator: str | None,
    settings: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Keyword arguments of an environment's constructor.

    Args:
        workplace: says what is allowed.
        cls: class of the environment.
        workload: one of its workloads by name.
        objective: as in an experiment.
        space: name of one of its design spaces.
        fixed: parameters held at a value.
        simulator: one of :func:`simulators_of`.
        settings: arguments of its own: names and numbers.

    Raises:
        UnknownNameError, InvalidValueError: for what is not there, or names a file.
    """
    given: dict[str, Any] = {}
    if workload is not None:
        check_choice("workload", workload, list(cls.workloads()))
        given["workload"] = workload
    if objective is not None:
        given["objective"] = objective if isinstance(objective, str) else dict(objective)
    if space is not None:
        check_choice("space", space, list(cls.spaces()))
        given["space"] = space
    if fixed:
        given["fixed"] = dict(fixed)
    if simulator is not None and simulator != "embedded":
        check_choice("simulator", simulator, simulators_of(workplace, cls))
        given["simulator"] = simulator
    own = own_arguments(cls, Environment)
    for name, value in (settings or {}).items():
        if name not in own:
            raise UnknownNameError("setting", name, own)
        if not isinstance(value, str | int | float | bool):
            raise InvalidValueError(f"setting {name!r} is a name or a number, not {value!r:.80}")
    refuse_paths(settings or {}, _INSTEAD)
    return {**given, **(settings or {})}


def simulators_of(workplace: Workplace, cls: type[Environment]) -> list[str]:
    """Simulators of an environment that may be chosen: those of this machine only if allowed."""
    from archgym.simulators.tabular import read_header

    tables = [
        PREFIX + name
        for name, path in shipped_tables().items()
        if workplace.environments.get(read_header(path).environment) is not None
        and workplace.environment(read_header(path).environment)[1] is cls
    ]
    return ["embedded", *tables, *(cls.simulators if workplace.limits.programs else ())]
