"""Measures of trials agree with plain loops over the rows of their dataset."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from archgym.analysis.measures import COUNTS
from archgym.analysis.trials import read_trials
from archgym.data import find_datasets
from archgym.report import read_study
from tests.report.studies import run

Rows = list[dict[str, Any]]
TWO_GOALS = {"minimize": ["access_ns", "energy_pj"]}
CASES: dict[str, dict[str, Any]] = {
    "one goal": {},
    "two goals": {
        "environments": [{"id": "Conformance-v0", "space": "finite", "objective": TWO_GOALS}],
        "agents": [{"name": "random"}, {"name": "nsga2"}],
    },
    "failures": {"environments": [{"id": "tests.helpers:Grumpy"}]},
    "fidelities": {"agents": [{"name": "hyperband"}]},
}


def kind(row: dict[str, Any]) -> str:
    if row["status"] == "illegal":
        return "illegal"
    if row["cached"]:
        return "duplicate"
    if row["status"] != "ok":
        return str(row["status"])
    return "feasible" if row["feasible"] else "infeasible"


def area(points: list[list[float]]) -> float:
    """Share of the square up to twice the baseline that the points dominate."""
    corner = math.log(2)
    total, height = 0.0, corner
    for x, y in sorted(points):
        if x < corner and y < height:
            total += (corner - x) * (height - y)
            height = y
    return total / corner**2


@pytest.mark.parametrize("case", CASES)
def test_measures_agree_with_plain_loops(case: str, tmp_path: Path) -> None:
    folder = run(tmp_path / "run", **CASES[case])
    (dataset,) = find_datasets(folder)
    by_trial: dict[str, Rows] = {}
    for _, table in dataset.snapshot().blocks():
        for row in table.to_pylist():
            by_trial.setdefault(row["trial_id"], []).append(row)
    recorded = {row["trial_id"]: row for row in dataset.trials().to_pylist()}
    (problem,) = read_study([folder]).problems
    measures, names = problem.measures, [goal.name for goal in problem.objective.goals]
    for summary in read_trials(dataset):
        rows = sorted(by_trial[summary.trial_id], key=lambda row: int(row["step"]))
        number = problem.ids.index(summary.trial_id)
        declared = json.loads(recorded[summary.trial_id]["fidelities"] or "[]")
        cost_of = {one["value"]: one["cost"] for one in declared} or {1.0: 1.0}
        baseline = json.loads(recorded[summary.trial_id]["baseline"])
        spent, seconds, best = 0.0, 0.0, [math.inf] * len(names)
        points, steps = [], [list[Any]() for _ in names]
        for row in rows:
            seconds += row["simulation_s"] + row["agent_s"]
            if kind(row) in COUNTS[:5]:
                spent += cost_of[row["fidelity"]]
            if kind(row) == "feasible" and row["fidelity"] == 1:
                values = [row[f"metric.{name}"] for name in names]
                ratios = [row[f"metric.{name}"] / baseline[name] for name in names]
                points.append([math.log(ratio) for ratio in ratios])
                for goal, value in enumerate(values):
                    if value < best[goal]:
                        best[goal] = value
                        steps[goal].append((spent, seconds, value))
        kinds = [kind(row) for row in rows]
        assert measures.counts[number].tolist() == [kinds.count(name) for name in COUNTS]
        assert summary.proposals == len(rows)
        assert summary.failed == kinds.count("failed") + kinds.count("timeout")
        assert summary.spent == pytest.approx(spent)
        assert measures.best[number].tolist() == best
        for found, known in zip(summary.improvements, steps, strict=True):
            assert found[:, :3] == pytest.approx(np.array(known).reshape(-1, 3))
        if len(names) == 2:
            assert summary.hypervolume is not None
            assert summary.hypervolume == pytest.approx(area(points))
            assert problem.score[number] == -summary.hypervolume


def test_trials_without_rows_have_summaries(tmp_path: Path) -> None:
    folder = run(tmp_path / "run", budget=4)
    (dataset,) = find_datasets(folder)
    whole = read_trials(dataset)
    for path in (dataset.directory / "trials").iterdir():  # it lists the files of evaluations
        pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)
    for path in (dataset.directory / "evaluations").iterdir():
        path.unlink()
    empty = read_trials(find_datasets(folder)[0])
    assert [one.trial_id for one in empty] == [one.trial_id for one in whole]
    for one in empty:
        assert (one.proposals, one.spent, one.best, one.front) == (0, 0.0, None, [])
        assert one.curve.shape == (0, 1)
