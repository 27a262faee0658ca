"""A parameter may mix texts, numbers and booleans, as ``[1, 2, auto]`` in a YAML file does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import archgym
from archgym.data import Dataset
from archgym.data.designs import read_designs
from archgym.space import Categorical, DesignSpace


class Prefetcher(archgym.Environment):
    """Degrees of which one is a text."""

    design_space = DesignSpace([Categorical("degree", [1, True, "auto", 2.5])])
    metrics = (archgym.Metric("access_ns", "ns", "minimize", "mean access time"),)
    baseline: ClassVar[dict[str, Any]] = {"degree": 1}
    default_objective = "minimize access_ns"

    def simulate(self, design: Mapping[str, Any]) -> dict[str, float]:
        return {"access_ns": float(len(str(design["degree"])))}


def test_values_of_several_kinds_are_recorded_and_read_again(tmp_path: Path) -> None:
    values = ["auto", 1, True, 2.5]
    with Prefetcher(record=tmp_path / "designs") as env:
        for value in values:
            env.evaluate({"degree": value})
    dataset = Dataset(tmp_path / "designs")
    assert not dataset.unsealed_journals()
    read = read_designs(env.design_space, dataset.evaluations())
    assert [design["degree"] for design in read] == values
    chosen = archgym.data.load(tmp_path / "designs", "degree == 1").arrow(["metric.access_ns"])
    assert chosen["metric.access_ns"].to_pylist() == [1.0]
    assert (
        archgym.data.load(tmp_path / "designs", "degree in 1, auto").arrow(["step"]).num_rows == 2
    )
