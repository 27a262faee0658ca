"""Chooses the mapper that serves an objective."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from archgym.problem.objective import Objective

__all__ = ["mapper_for"]

_MAPPER_OF: Final[Mapping[str, str]] = {
    "latency_cycles": "latency",
    "latency_ns": "latency",
    "utilisation_rate": "latency",
    "energy_pj": "energy",
    "dram_bytes": "energy",
    "power_mw": "energy",
    "edp_js": "edp",
}
"""The mapper that gives the best value of a metric; the area of a chip does not depend on it."""


def mapper_for(objective: Objective | str | Mapping[str, Any]) -> str:
    """The mapper that serves what an objective minimises.

    It is the one of all its goals, or ``edp``, the product of latency and energy, where they
    differ.

    >>> mapper_for("minimize latency_cycles"), mapper_for("minimize edp_js")
    ('latency', 'edp')
    >>> mapper_for({"minimize": ["latency_ns", "area_um2"]})
    'latency'
    >>> mapper_for({"product": {"latency_ns": 1, "energy_pj": 1, "area_um2": 1}})
    'edp'
    """
    metrics = [name for goal in Objective.parse(objective).goals for name, _ in goal.terms]
    served = {_MAPPER_OF[name] for name in metrics if name in _MAPPER_OF}
    return served.pop() if len(served) == 1 else "edp"
