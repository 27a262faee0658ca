"""A design problem as plain values: all that a program must know that searches or simulates it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import archgym
from archgym.environment.environment import Environment
from archgym.errors import SpaceTooLargeError
from archgym.evaluation.outcome import Outcome
from archgym.problem.metrics import Metric
from archgym.space import Boolean, DesignSpace, Parameter

__all__ = ["metric_json", "outcome_json", "parameter_json", "problem_json", "space_json"]

_BETTER = {"minimize": "smaller", "maximize": "larger"}


def problem_json(
    environment: Environment, baseline: Sequence[float] | None = None
) -> dict[str, Any]:
    """The environment: design space, metrics with units, objective, baseline, fidelities.

    Args:
        environment: of the session.
        baseline: metrics of its baseline design; ``None`` if they are not known yet.
    """
    simulator, objective = environment.simulator, environment.objective
    values = [math.nan] * len(environment.metrics) if baseline is None else baseline
    return {
        "archgym": archgym.__version__,
        "environment": environment.name,
        "description": " ".join((type(environment).__doc__ or "").strip().split("\n\n")[0].split()),
        "workload": environment.workload_name,
        "settings": dict(environment.settings),
        "simulator": {"name": simulator.name, "version": simulator.version},
        "space": space_json(environment.design_space),
        "metrics": [metric_json(metric) for metric in environment.metrics],
        "metrics_given": list(simulator.metric_names),
        "objective": objective.to_json(),
        "goals": [
            {"name": goal.name, "kind": goal.kind, "weight": goal.weight}
            for goal in objective.goals
        ],
        "limits": [
            {"metric": limit.metric, "op": limit.op, "value": limit.value}
            for limit in objective.limits
        ],
        "fidelities": [one.to_json() for one in environment.fidelities],
        "baseline": {
            "design": environment.baseline_design,
            "metrics": {
                metric.name: value if value == value else None
                for metric, value in zip(environment.metrics, values, strict=True)
            },
        },
        "not_modelled": list(type(environment).not_modelled),
    }


def space_json(space: DesignSpace) -> dict[str, Any]:
    """Parameters with their values, conditions and rules, and the widths of other forms."""
    try:
        designs: float | None = space.canonical_cardinality
    except SpaceTooLargeError:
        designs = None
    free = [space.parameters[position] for position in space.free]
    levels = None if any(one.continuous for one in free) else [n for p in free for n in p.choices]
    return {
        "parameters": [parameter_json(parameter, space) for parameter in space.parameters],
        "rules": [
            {"name": rule.name, "rule": str(rule.expression), "doc": rule.doc}
            for rule in space.rules
        ],
        "legal_designs": designs,
        "unit_axes": [axis for parameter in free for axis in parameter.axes],
        "level_counts": levels,
    }


def parameter_json(parameter: Parameter, space: DesignSpace) -> dict[str, Any]:
    """A parameter: its kind, its values or bounds, its unit, and when it acts."""
    data = parameter.to_json()
    return {
        "name": parameter.name,
        "kind": parameter.kind,
        **{k: v for k, v in data.items() if k in ("values", "items", "low", "high", "step", "log")},
        **({"values": [False, True]} if isinstance(parameter, Boolean) else {}),
        "unit": parameter.unit,
        "doc": parameter.doc,
        "acts_when": "" if parameter.when is None else str(parameter.when),
        **({"held_at": space.fixed[parameter.name]} if parameter.name in space.fixed else {}),
    }


def metric_json(metric: Metric) -> dict[str, Any]:
    """A metric: its unit, and whether smaller or larger values are better."""
    return {
        "name": metric.name,
        "unit": metric.unit,
        "better": _BETTER[metric.direction],
        "doc": metric.doc,
    }


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """The outcome of a design; goals are minimised, and null unless the status is ``ok``."""
    return {
        "status": outcome.status,
        "feasible": outcome.feasible,
        "reward": outcome.reward,
        "goals": list(outcome.objectives),
        "violations": list(outcome.violations),
        "metrics": outcome.metrics,
        "design": outcome.design,
        "reason": outcome.reason,
        "cached": outcome.cached,
        "fidelity": outcome.fidelity,
        "simulation_s": outcome.simulation_s,
    }
