"""Charts of busy workers and of the best so far by elapsed time, against the rows of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from archgym.data import Dataset
from archgym.experiment import RunOptions, run_experiment
from archgym.report.content import problem_sections
from archgym.report.reading import read_study
from tests.experiment.experiments import HELPERS, small


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("busy") / "run"
    experiment = small(
        budget=24,
        seeds=1,
        environments=[{"id": f"{HELPERS}:Slow", "arguments": {"seconds": 0.05}}],
        agents=[{"name": "random"}],
        simulation={"workers": 3},
    )
    run_experiment(experiment, folder, RunOptions(local=True, quiet=True))
    return folder


def test_charts_show_what_the_rows_say(run: Path) -> None:
    study = read_study([run])
    (problem,) = study.problems
    charts = {
        chart.key: chart
        for section in problem_sections(study, problem, 128, 30)
        for chart in section.charts
    }
    assert "best_by_time" not in charts
    (path,) = (run / "datasets").iterdir()
    rows = [one for one in Dataset(path).evaluations().to_pylist() if one["worker"]]
    assert len(rows) == 24
    assert len({one["worker"] for one in rows}) == 3
    began = min(one["started"] for one in rows)
    spans = [
        ((one["started"] - began).total_seconds(), (one["timestamp"] - began).total_seconds())
        for one in rows
    ]
    whole = max(end for _, end in spans)
    mean = sum(end - begin for begin, end in spans) / whole
    busy = charts["utilisation"]
    (line,) = busy.series
    assert line.name == f"random, mean {mean:.2f}"
    (most,) = busy.levels
    assert most.value == 3
    steps = np.diff(line.x, prepend=0.0, append=whole)
    assert np.average(line.y, weights=steps[1:]) == pytest.approx(mean, rel=0.05)
    best = charts["best_by_wall_time"]
    assert best.title == "Best so far, by elapsed time"
    (curve,) = best.series
    values = [one["metric.time_ns"] for one in rows]
    assert np.nanmin(np.asarray(curve.y)) == pytest.approx(min(values))
    at = next(end for (_, end), v in zip(spans, values, strict=True) if v == min(values))
    first = next(x for x, y in zip(curve.x, curve.y, strict=True) if y == min(values))
    assert first == pytest.approx(at, rel=0.1)


def test_a_run_in_one_process_has_no_workers(tmp_path: Path) -> None:
    run_experiment(small(seeds=1), tmp_path / "run", RunOptions(local=True, quiet=True))
    study = read_study([tmp_path / "run"])
    keys = {
        chart.key
        for problem in study.problems
        for section in problem_sections(study, problem, 64, 30)
        for chart in section.charts
    }
    assert "best_by_time" in keys
    assert "utilisation" not in keys
