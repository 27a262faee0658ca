"""Reading the form of an experiment file: a mapping becomes its models, or one clear error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pydantic
from pydantic import BaseModel

from archgym.errors import InvalidValueError, UnknownNameError
from archgym.experiment.spec.schema import AgentEntry, EnvironmentEntry, Experiment, Resources
from archgym.experiment.spec.simulation import SimulationSettings
from archgym.reading.pydantic_messages import allowed_text
from archgym.reading.suggestions import did_you_mean

__all__ = ["read_experiment", "read_simulation"]

_KINDS = {str: "a text", list: "a list", int: "a number", float: "a number", type(None): "empty"}
"""What a file may hold in place of an experiment; not shown, as it may be any file."""
_OF_OBJECTIVE = ("str", "dict[str,any]")
"""Places that pydantic adds for a union of types, of which the objective is the only one."""


def read_experiment(data: Any) -> Experiment:
    """The experiment that a mapping describes.

    Raises:
        UnknownNameError: for a key that does not exist.
        InvalidValueError: for a value that is missing or not possible; the message names its place.
    """
    if not isinstance(data, Mapping):
        raise InvalidValueError(
            f"an experiment is a mapping with the keys {', '.join(Experiment.model_fields)}, "
            f"not {_KINDS.get(type(data), 'a value')}"
        )
    try:
        return Experiment.model_validate(dict(data))
    except pydantic.ValidationError as error:
        # Misspelt keys first: a missing key is often the misspelt one.
        problems = sorted(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
        raise _explain(problems[0]) from None


def read_simulation(data: Mapping[str, Any]) -> SimulationSettings:
    """The ``simulation`` of an experiment, from a mapping.

    Raises:
        UnknownNameError, InvalidValueError: as :func:`read_experiment`.
    """
    try:
        return SimulationSettings.model_validate(dict(data))
    except pydantic.ValidationError as error:
        problem = error.errors()[0]
        raise _explain({**problem, "loc": ("simulation", *problem["loc"])}) from None


def _explain(problem: Any) -> Exception:
    """One sentence of ours for one problem that pydantic found."""
    location, kind = problem["loc"], problem["type"]
    where = _path(location)
    if kind == "extra_forbidden":
        allowed = _model_at(location[:-1]).model_fields
        key, place = location[-1], _path(location[:-1])
        hint = did_you_mean(str(key), allowed)
        if location[0] == "environments" and hint.startswith("Allowed"):
            return InvalidValueError(
                f"{place}: unknown key {key!r}. {hint} Arguments of the environment itself go "
                "under 'arguments', as in arguments: {memory: DDR3-1600}."
            )
        return UnknownNameError("key", key, allowed, place)
    if kind == "missing":
        doc = _model_at(location[:-1]).model_fields[str(location[-1])].description
        return InvalidValueError(f"{where} is missing" + (f" ({doc})" if doc else ""))
    if kind == "model_type":
        allowed_here = _mapping_text(_model_at(location), problem["input"])
    elif kind == "string_pattern_mismatch":
        allowed_here = "allowed are letters, digits, '.', '_' and '-', a letter or digit first"
    elif location[-1] in _OF_OBJECTIVE:
        where = _path(location[:-1])
        allowed_here = "allowed is 'minimize METRIC', 'maximize METRIC' or a mapping"
    else:
        allowed_here = allowed_text(problem)
    return InvalidValueError(f"{where} cannot be {_short(problem['input'])}: {allowed_here}")


def _mapping_text(model: type[BaseModel], given: Any) -> str:
    fields = model.model_fields
    first = next(iter(fields))
    instead = f"; write {{{first}: {given}}}" if isinstance(given, str) else ""
    return f"allowed is a mapping with the keys {', '.join(fields)}{instead}"


def _model_at(location: tuple[int | str, ...]) -> type[BaseModel]:
    names = [part for part in location if isinstance(part, str)]
    models: dict[str, type[BaseModel]] = {
        "environments": EnvironmentEntry,
        "agents": AgentEntry,
        "resources": Resources,
        "simulation": SimulationSettings,
    }
    return models[names[0]] if names else Experiment


def _path(location: tuple[int | str, ...]) -> str:
    """A place in the file, as in ``agents[0].name``."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
