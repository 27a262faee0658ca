"""The environment of a proxy, with the real simulator."""

from __future__ import annotations

from typing import Any

from archgym.environment.environment import Environment
from archgym.environment.recorded import recorded_settings, refuse_paths
from archgym.errors import DatasetError
from archgym.proxy.provenance import Origin
from archgym.registry import environment_class, environment_names, make
from archgym.validation.recorded import make_recorded


def make_original(origin: Origin, workload: int = 0, **arguments: Any) -> Environment:
    """The environment on one of the workloads, with its real simulator.

    Args:
        origin: of a proxy.
        workload: index into its workloads.
        **arguments: of the environment, in place of those recorded, and ``read_files``, see
            :func:`archgym.validation.recorded.make_recorded`.

    Raises:
        DatasetError: see :func:`archgym.validation.recorded.make_recorded`.
    """
    one = origin.workloads[workload]
    return make_recorded(
        *(origin.environment, origin.settings, one.spec, one.name, origin.simulator), **arguments
    )


def make_unseen(
    origin: Origin, spec: Any, *, read_files: bool = False, **arguments: Any
) -> Environment:
    """The environment on a workload that a proxy has not seen, with its built-in simulator.

    Only registered environments are made: a file does not decide which code is imported.

    Args:
        origin: of a proxy.
        spec: the workload, as the user wrote it.
        read_files: whether files that the proxy's file names are read, such as a device.
        **arguments: of the environment, in place of those recorded.

    Raises:
        DatasetError: if the environment is not registered.
        InvalidValueError: if a recorded argument names a file, without ``read_files``.
    """
    if origin.environment not in environment_names():
        raise DatasetError(f"{origin.environment} is not registered")
    recorded = recorded_settings(environment_class(origin.environment), origin.settings)
    if not read_files:
        refuse_paths(recorded, "--read-files reads such files")
    return make(origin.environment, **{**recorded, **arguments}, workload=spec)
