"""The environment, with its real simulator, that a proxy stands in for."""

from __future__ import annotations

from typing import Any

from archgym.environment import Environment
from archgym.errors import DatasetError
from archgym.proxy.origin import Origin
from archgym.registry import constructor_arguments, environment_class, environment_names, make

__all__ = ["make_original"]


def make_original(origin: Origin, workload: int = 0, **arguments: Any) -> Environment:
    """The environment on one of the workloads, with its real simulator.

    Args:
        origin: of a proxy.
        workload: index into its workloads.
        **arguments: of the environment, in place of those recorded.

    Raises:
        DatasetError: if the environment is not registered: a file does not decide which code is
            imported.
    """
    if origin.environment not in environment_names():
        raise DatasetError(f"environment {origin.environment} is not registered")
    one = origin.workloads[workload]
    taken = constructor_arguments(environment_class(origin.environment))
    own = {key: value for key, value in origin.settings.items() if key in taken}
    spec = one.spec if one.spec is not None else (one.name or None)
    known = {**own, "workload": spec, "simulator": origin.simulator["name"]}
    return make(origin.environment, **{**known, **arguments})
