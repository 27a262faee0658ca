"""The picture of a run says what it cannot show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archgym.charts.draw import Panel, draw_grid
from archgym.experiment import RunOptions, run_experiment
from archgym.experiment.results import picture
from tests.experiment.experiments import small


def _drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> tuple[Any, Any]:
    """A run of one agent with eight seeds: what its picture has of it, and its summaries."""
    seen: list[Panel] = []

    def draw(panels: Sequence[Panel], paths: Sequence[Path], *, dpi: int) -> None:
        seen.extend(panels)
        draw_grid(panels, paths, dpi=dpi)

    monkeypatch.setattr(picture, "draw_grid", draw)
    objective = {"minimize": "access_ns", "limits": [limit]}
    environment = {"id": "Conformance-v0", "space": "finite", "objective": objective}
    result = run_experiment(
        small(environments=[environment], agents=[{"name": "random"}], budget=4, seeds=8),
        tmp_path,
        RunOptions(local=True, quiet=True),
    )
    (panel,) = seen
    (series,) = panel.chart.series
    return series, list(result.summaries.values())


def test_trials_that_found_nothing_feasible_hide_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    series, summaries = _drawn(tmp_path, monkeypatch, "area_mm2 <= 0.05")
    last = np.array([one.curve[-1, 0] for one in summaries])
    found = last[np.isfinite(last)]
    assert 0 < len(found) < len(last), "the test needs both"
    assert series.name == f"random, {len(found)} of 8 trials"
    assert series.y[-1] == pytest.approx(found.mean())


def test_an_agent_that_found_nothing_feasible_is_in_the_legend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    series, _ = _drawn(tmp_path, monkeypatch, "area_mm2 <= 0")
    assert series.name == "random: nothing feasible"
    assert not len(series.x)
