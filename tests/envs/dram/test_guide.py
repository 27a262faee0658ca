"""The guide to the environment explains the designs that it finds."""

from __future__ import annotations

import re
from pathlib import Path

from archgym.envs.dram.controller.config import CHOICES, ControllerConfig
from archgym.envs.dram.device.data_sheets import device_names
from archgym.envs.dram.device.memory import load_memory
from archgym.envs.dram.space import design_space
from archgym.space import Categorical


def test_every_value_is_explained() -> None:
    guide = Path(__file__).parents[3] / "docs" / "guides" / "dram.md"
    section = guide.read_text("utf-8").split("## What a design is")[1].split("\n## ")[0]
    explained = set(re.findall(r"`(\w+)`", section))
    for device in device_names():
        space = design_space("default", load_memory({"device": device, "channels": 2}))
        choices = [p for p in space.declared if isinstance(p, Categorical)]  # excluded values too
        assert len(choices) > 8
        for parameter in choices:
            missing = {parameter.name, *parameter.levels} - explained
            assert not missing, f"explain them in {guide.name}, 'What a design is': {missing}"


def test_settings_say_what_their_values_do() -> None:
    told = set(re.findall(r"``(\w+)``", ControllerConfig.__doc__ or ""))
    for name in ("page_policy", "scheduler", "scheduler_buffer", "refresh_policy", "arbiter"):
        missing = set(CHOICES[name]) - told
        assert not missing, f"explain values of {name} in ControllerConfig's docstring: {missing}"
