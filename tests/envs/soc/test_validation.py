"""Agreement with recorded systems of FARSI, and tables that are wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import archgym
from archgym.envs.soc.environment import SoCEnvironment
from archgym.envs.soc.validation.reference import read_reference, shipped_references
from archgym.errors import InvalidValueError

BARS = {"latency_ms": 0.05, "power_mw": 0.03, "energy_mj": 0.03, "area_mm2": 0.03}


@pytest.mark.parametrize("number", range(3))
def test_recorded_systems_of_farsi(number: int) -> None:
    reference = shipped_references()[number]
    env = archgym.make("SoC-v0", **reference.settings[0])
    outcomes = env.evaluate_batch([row.design for row in reference.rows])
    assert len(outcomes) == 130
    for name, bar in BARS.items():
        ours = np.array([outcome.metrics[name] for outcome in outcomes])
        theirs = np.array([row.metrics[name] for row in reference.rows])
        assert np.median(np.abs(ours / theirs - 1)) <= bar
        assert np.corrcoef(ours.argsort().argsort(), theirs.argsort().argsort())[0, 1] >= 0.97


def test_accounting_changes_power_and_not_latency() -> None:
    reference = shipped_references()[0]
    setting = {**reference.settings[0], "accounting": "plain"}
    env = archgym.make("SoC-v0", **setting)
    assert isinstance(env, SoCEnvironment)
    ours = env.evaluate_batch([row.design for row in reference.rows[:100]])
    latency = [
        abs(o.metrics["latency_ms"] / r.metrics["latency_ms"] - 1)  # type: ignore[operator]
        for o, r in zip(ours, reference.rows[:100], strict=True)
    ]
    power = [
        abs(o.metrics["power_mw"] / r.metrics["power_mw"] - 1)  # type: ignore[operator]
        for o, r in zip(ours, reference.rows[:100], strict=True)
    ]
    assert np.median(latency) < 1e-6
    assert np.mean(power) > 0.01


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("design,latency_ms\n1,2\n", "must have the column graph"),
        ("graph,latency_ms\nadio,2\n", "audio"),
        ("graph,input_memory,latency_ms\ncava,7,2\n", "input_memory"),
    ],
)
def test_bad_tables_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidValueError, match=message):
        read_reference(path, None)
