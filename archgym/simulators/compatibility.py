"""Compatibility of a table or a proxy with an environment: what differs between the two."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from archgym.problem import DesignProblem, Metric
from archgym.space import DesignSpace


def differences(
    what: str,
    problem: DesignProblem,
    space: DesignSpace,
    settings: Mapping[str, Any],
    metrics: Sequence[Metric],
) -> list[str]:
    """The differences that make recorded results unusable for an environment, each in a few words.

    Workloads are not compared, nor options of the simulator that is replaced.

    Args:
        what: what holds them, ``table`` or ``proxy``.
        problem: the environment that is to be served, with its design space in place.
        space: design space of the results.
        settings: under which they were recorded, from JSON.
        metrics: of the results.
    """
    found = _of_spaces(what, space, problem.design_space)
    ours = json.loads(json.dumps(problem.settings))
    for name in dict.fromkeys([*settings, *ours]):
        if name != "simulator_options" and settings.get(name) != ours.get(name):
            found.append(f"the {what} is for {name}={settings.get(name)!r}, not {ours.get(name)!r}")
    own = {metric.name: metric for metric in problem.metrics}
    for metric in metrics:
        mine = own.get(metric.name)
        if mine is None:
            found.append(f"the {what} has metric {metric.name!r}, which the environment does not")
        elif (mine.unit, mine.direction) != (metric.unit, metric.direction):
            found.append(
                f"metric {metric.name!r} is in {metric.unit!r} ({metric.direction}) there and "
                f"in {mine.unit!r} ({mine.direction}) here"
            )
    return found


def _of_spaces(what: str, theirs: DesignSpace, ours: DesignSpace) -> list[str]:
    there, here = ({p.name: _plain(p.to_json()) for p in s.declared} for s in (theirs, ours))
    found = [f"the {what} lacks parameter {name!r}" for name in here if name not in there]
    found += [f"the {what} has a parameter {name!r} more" for name in there if name not in here]
    for name in here:
        if name in there and there[name] != here[name]:
            old, new = there[name], here[name]
            fields = [k for k in {**old, **new} if old.get(k) != new.get(k)]
            differing = ", ".join(
                f"{k} ({old.get(k)!r} there, {new.get(k)!r} here)" for k in fields
            )
            found.append(f"parameter {name!r} differs in {differing}")
    if not found and theirs.names != ours.names:
        found.append("the parameters are in another order")
    rules = [[_plain(rule) for rule in s.to_json()["rules"]] for s in (theirs, ours)]
    if rules[0] != rules[1]:
        found.append("the rules of the design spaces differ")
    for name, value in theirs.fixed.items():
        if name in ours.fixed and ours.fixed[name] != value:
            found.append(f"the {what} holds only {name}={value!r}, not {ours.fixed[name]!r}")
    return found


def _plain(data: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter or rule without its documentation."""
    return {key: value for key, value in data.items() if key not in ("doc", "group")}
