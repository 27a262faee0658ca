"""Tells whether an environment that another process made is the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from archgym.problem.description import ProblemDescription

__all__ = ["difference", "fingerprint"]


def fingerprint(problem: ProblemDescription) -> dict[str, str]:
    """What a worker's environment must have in common with the driver's, each as a short text.

    Args:
        problem: the environment's description.
    """
    space = json.dumps(problem.space.to_json(), sort_keys=True)
    return {
        "version": problem.version,
        "simulator": f"{problem.simulator['name']} {problem.simulator['version']}",
        "source of the simulator": problem.source_sha256[:16],
        "workload": f"{problem.workload_name} {problem.workload_sha256[:16]}".strip(),
        "metrics": ", ".join(problem.metrics_given),
        "design space": hashlib.sha256(space.encode()).hexdigest()[:16],
    }


def difference(ours: Mapping[str, str], expected: Mapping[str, str]) -> str:
    """The first difference between two fingerprints, as a sentence; empty if there is none.

    >>> difference({"simulator": "sim 1.2"}, {"simulator": "sim 1.1"})
    "simulator is 'sim 1.2' here and 'sim 1.1' where the search runs"
    """
    for name, value in expected.items():
        if ours.get(name) != value:
            return f"{name} is {ours.get(name)!r} here and {value!r} where the search runs"
    return ""
