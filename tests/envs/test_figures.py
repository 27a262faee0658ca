"""What a simulator says of a design stays as it is while the version of its environment does.

``python -m tests.envs.test_figures`` writes the file of figures anew, where versions were raised.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import archgym
from archgym.registry import environment_class, environment_names

PATH = Path(__file__).with_name("figures.json")
N_DESIGNS = 3
MAX_WORKLOADS = 12


def spread(names: Iterable[str]) -> list[str]:
    """At most so many of the names."""
    every = [*names]
    return every[:: -(-len(every) // MAX_WORKLOADS)] if every else [""]


FIGURES: dict[str, Any] = json.loads(PATH.read_text()) if PATH.exists() else {}
"""By environment the version, and by workload designs with their metrics."""
# Taken before any test runs: tests of other modules register environments of their own.
CASES = [
    (name, workload)
    for name in environment_names()
    for workload in spread(environment_class(name).workloads())
]
"""Environments with some of their named workloads, or with the default one."""


def made(name: str, workload: str) -> Any:
    return archgym.make(name, workload=workload) if workload else archgym.make(name)


def figures_of(env: Any, designs: list[dict[str, Any]]) -> list[dict[str, float | None]]:
    """The metrics of each design with seven digits: other processors round differently."""
    found = [env.evaluate(design).metrics for design in designs]
    return [{k: None if v is None else float(f"{v:.7g}") for k, v in one.items()} for one in found]


@pytest.mark.parametrize(("name", "workload"), CASES)
def test_other_figures_have_another_version(name: str, workload: str) -> None:
    version = environment_class(name).version
    kept = FIGURES.get(name, {})
    known = kept.get("version") == version and workload in kept["workloads"]
    assert known, f"{name} {workload} is new: python -m tests.envs.test_figures notes its figures"
    designs, before = kept["workloads"][workload]
    now = figures_of(made(name, workload), designs)
    raised = f"of version {version} of {name}: raise it, for recorded rows say something else"
    for design, old, new in zip(designs, before, now, strict=True):
        assert old.keys() == new.keys(), f"{design} has other metrics than those {raised}"
        for metric, value in old.items():
            same = pytest.approx(value, rel=1e-5, abs=1e-9) if value is not None else None
            assert new[metric] == same, (
                f"{metric} of {design} is {new[metric]}, {value} in figures {raised}"
            )


def main() -> None:
    found: dict[str, Any] = {}
    for name, workload in CASES:
        env = made(name, workload)
        kept = found.setdefault(name, {"version": env.version, "workloads": {}})
        sample = env.design_space.sample(N_DESIGNS, np.random.default_rng(0))
        designs = [json.loads(json.dumps(dict(design))) for design in sample]
        kept["workloads"][workload] = [designs, figures_of(env, designs)]
        sys.stderr.write(f"{name} {workload}\n")
    PATH.write_text(json.dumps(found, indent=None, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
