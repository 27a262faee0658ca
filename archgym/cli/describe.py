"""Describes environments and agents as plain values, for ``archgym show`` and ``archgym docs``."""

from __future__ import annotations

import inspect
import itertools
import math
import re
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from archgym.environment.arguments import constructor_arguments
from archgym.environment.environment import Environment
from archgym.errors import InvalidValueError, SpaceTooLargeError, UnknownNameError
from archgym.problem.objective import Objective
from archgym.registry import (
    agent_class,
    agent_names,
    environment_class,
    environment_names,
    is_environment_file,
)
from archgym.space import DesignSpace

if TYPE_CHECKING:
    from archgym.agent import Agent

__all__ = [
    "BETTER",
    "agent_json",
    "count_text",
    "environment_json",
    "find",
    "first_line",
    "instance_json",
    "not_searched",
    "paragraphs",
    "shortened",
]

BETTER = {"minimize": "smaller", "maximize": "larger"}
"""Which values of a metric are better, by its direction."""
_SECTIONS = ("Args", "Attributes", "Raises", "Members", "Measured", "Limits", "References")
"""Sections of a docstring, which end its paragraphs."""


def find(name: str) -> Any:
    """Finds the class of an environment or of an agent, by name, ``module:Class`` or file.

    Raises:
        UnknownNameError: if there is none of that name.
        InvalidValueError: if the class is neither.
    """
    from archgym.agent import Agent

    if name in agent_names():
        return agent_class(name)
    if is_environment_file(name):
        return environment_class(name)
    if ":" not in name and name.removeprefix("archgym/") not in environment_names():
        raise UnknownNameError("environment or agent", name, [*environment_names(), *agent_names()])
    for look_up in (environment_class, agent_class):
        try:
            return look_up(name)
        except InvalidValueError:
            continue
    raise InvalidValueError(
        f"{name!r} is neither a subclass of {Environment.__module__}:Environment "
        f"nor of {Agent.__module__}:Agent"
    )


def environment_json(name: str, cls: type[Environment]) -> dict[str, Any]:
    """Everything about an environment, as plain values."""
    general, explained = inspect.signature(Environment.__init__).parameters, cls.argument_docs()
    return {
        "environment": name,
        "description": first_line(cls.__doc__),
        "version": cls.version,
        "spaces": {label: _space_json(space) for label, space in cls.spaces().items()},
        "metrics": [metric.to_json() for metric in cls.metrics],
        "default_objective": Objective.parse(cls.default_objective).to_json(),
        "baseline": dict(cls.baseline),
        "named_designs": cls.named_designs(),
        "workloads": cls.workloads(),
        "default_workload": cls.default_workload,
        "simulators": ["embedded", *cls.simulators],
        "fidelities": [fidelity.to_json() for fidelity in cls.fidelities],
        "arguments": {
            key: None if parameter.default is parameter.empty else str(parameter.default)
            for key, parameter in constructor_arguments(cls).items()
            if key in explained or key not in general
        },
        "argument_docs": explained,
        "not_modelled": list(cls.not_modelled),
        "caveats": list(cls.caveats),
    }


def instance_json(env: Environment) -> dict[str, Any]:
    """What the arguments of an environment decide, in the form of :func:`environment_json`."""
    label = env.workload_name or "default"
    return {
        "workload": env.workload_name,
        "workload_doc": env.workload_doc,
        "spaces": {label: _space_json(env.design_space)},
        "metrics": [metric.to_json() for metric in env.metrics],
        "default_objective": env.objective.to_json(),
        "baseline": dict(env.baseline_design),
        "fidelities": [fidelity.to_json() for fidelity in env.fidelities],
        "caveats": [*env.caveats, *env.warnings],
    }


def agent_json(name: str, cls: type[Agent]) -> dict[str, Any]:
    """Everything about an agent, as plain values."""
    schema = cls.Hyperparameters.model_json_schema()
    return {
        "agent": name,
        "description": paragraphs(cls.__doc__),
        "hyperparameters": [
            {"name": field, **_field_json(field, cls, schema["properties"][field])}
            for field in cls.Hyperparameters.model_fields
        ],
    }


def paragraphs(doc: str | None) -> str:
    """A docstring up to its sections, each paragraph on one line, without markup."""
    parts = inspect.cleandoc(doc or "").split("\n\n")
    ends = re.compile(rf"({'|'.join(_SECTIONS)}):|>>>")
    kept = itertools.takewhile(lambda part: not ends.match(part), parts)
    return _plain("\n\n".join(" ".join(part.split()) for part in kept))


def first_line(doc: str | None) -> str:
    """The first line of a docstring, without markup."""
    return _plain((doc or "").strip().partition("\n")[0].strip())


def count_text(number: float | None, unknown: str) -> str:
    """A number of designs as people read it; ``unknown`` where it cannot be counted."""
    if number is None:
        return unknown
    return "infinitely many" if math.isinf(number) else f"{int(number):,}"


def not_searched(space: Mapping[str, Any]) -> list[str]:
    """What an environment gives and what it leaves out of a design space, a line each.

    Args:
        space: as :func:`environment_json` describes it.
    """
    lines = []
    if space["fixed"]:
        held = " ".join(f"{name}={value}" for name, value in space["fixed"].items())
        lines.append(
            f"given, not searched: {held} (another one: fixed; search it: include: "
            f"[{', '.join(space['fixed'])}])"
        )
    for name, values in space["excluded"].items():
        listed = ", ".join(map(str, values))
        lines.append(f"excluded: {name}={listed} (offered with include: [{name}])")
    return lines


def shortened(rule: str, width: int) -> str:
    """A rule of a design space, cut where it is too long; ``--json`` has all of it."""
    return textwrap.shorten(rule, width, placeholder=" ...")


def _space_json(space: DesignSpace) -> dict[str, Any]:
    try:
        canonical: float | None = space.canonical_cardinality
    except SpaceTooLargeError:
        canonical = None
    fields = ("name", "kind", "range", "unit", "when", "group", "doc")
    return {
        "raw_cardinality": space.raw_cardinality,
        "canonical_cardinality": canonical,
        "fixed": dict(space.fixed),
        "excluded": {name: list(values) for name, values in space.excluded.items()},
        "parameters": [
            {field: getattr(p, field) for field in fields}
            | {"when": "" if p.when is None else str(p.when)}
            for p in space.parameters
        ],
        "rules": [
            {"name": rule.name, "rule": str(rule.expression), "doc": rule.doc}
            for rule in space.rules
        ],
    }


def _field_json(name: str, cls: type[Agent], schema: dict[str, Any]) -> dict[str, Any]:
    options = [schema, *schema.get("anyOf", [])]
    signs = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    values = next((o["enum"] for o in options if "enum" in o), None)
    bounds = [f"{signs[key]} {o[key]}" for o in options for key in signs if key in o]
    kinds = [str(o["type"]) for o in options if "type" in o]
    return {
        "type": " or ".join(dict.fromkeys(kinds)) or "choice",
        "default": cls.Hyperparameters.model_fields[name].default,
        "allowed": ", ".join(map(str, values or bounds)),
        "doc": schema.get("description", ""),
    }


def _plain(text: str) -> str:
    return re.sub(r":\w+:`[~!]?([^`]*)`|``([^`]*)``", lambda found: found[1] or found[2], text)
