"""Makes the environment again in which rows were recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from archgym.environment.environment import Environment
from archgym.environment.recorded import recorded_settings, refuse_paths
from archgym.errors import DatasetError
from archgym.registry import environment_class, environment_names, make


def make_recorded(
    environment: str,
    settings: Mapping[str, Any],
    spec: Any,
    workload: str | None,
    made_by: Mapping[str, str],
    *,
    chosen: str = "",
    read_files: bool = False,
    **arguments: Any,
) -> Environment:
    """Makes the environment again in which rows were recorded.

    Only registered environments are made: a file does not decide which code is imported.

    Args:
        environment: its name, as recorded.
        settings: as recorded.
        spec: of the workload, as recorded.
        workload: its label, as recorded.
        made_by: name and version of the simulator, as recorded.
        chosen: a name that the user gave in place of the recorded one.
        read_files: whether files that the record names are read, such as a trace.
        **arguments: of the environment, in place of those recorded.

    Raises:
        DatasetError: if the environment is not registered, or has no simulator of that name.
        InvalidValueError: if the record names a program, a place to write to or, without
            ``read_files``, a file.
        ArchgymError: if it cannot be made with these arguments.
    """
    name = chosen or environment
    if not chosen and name not in environment_names():
        raise DatasetError(
            f"{name} is not registered: name it with --environment {name} if you trust it; "
            "recorded data do not decide which programs are started"
        )
    if not arguments.get("simulator"):
        arguments["simulator"] = made_by["name"]
        if made_by["name"] not in ("embedded", *environment_class(name).simulators):
            raise DatasetError(
                f"it was recorded with simulator {made_by['name']!r} {made_by['version']}: "
                "name it with --simulator, as in --simulator tabular:PATH"
            )
    recorded = recorded_settings(environment_class(name), settings)
    recorded["workload"] = spec if spec is not None else (workload or None)
    if not read_files:
        left = {key: value for key, value in recorded.items() if key not in arguments}
        refuse_paths(left, "--read-files reads such files")
    return make(name, **{**recorded, **arguments})
