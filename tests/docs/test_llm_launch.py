"""The guide from a plan to a launch names every parameter that a plan may have."""

from __future__ import annotations

from pathlib import Path

import pytest

from archgym.envs.llm.deployment.environment import LLMServing
from archgym.envs.llm.environment import LLMTraining

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "llm_launch.md"


@pytest.mark.parametrize("cls", [LLMTraining, LLMServing])
def test_every_parameter_has_its_option(cls: type[LLMTraining | LLMServing]) -> None:
    part = GUIDE.read_text("utf-8").split("\n## ")[1 + (cls is LLMServing)]
    cells = " ".join(line.split("|")[1] for line in part.splitlines() if line.startswith("| `"))
    shipped = {name for spec in cls.workloads() for name in cls(workload=spec).design_space.names}
    named = {name for name in shipped if not name.startswith("prefill_")}
    assert {name for name in named if f"`{name}`" not in cells} == set()
