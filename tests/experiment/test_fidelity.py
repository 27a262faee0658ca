"""Runs in which agents simulate at several fidelities."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import archgym as core
from archgym.experiment import RunOptions, run_experiment
from archgym.experiment.results.tables import run_tables
from tests.experiment.experiments import archgym, assert_equal_runs, small, written

LOCAL = RunOptions(local=True, quiet=True)
AGENTS = [{"name": "hyperband"}, {"name": "random"}]


@pytest.mark.parametrize(
    "objective", ["minimize access_ns", {"minimize": ["access_ns", "area_mm2"]}]
)
def test_summaries_agree_with_the_searches(tmp_path: Path, objective: Any) -> None:
    environments = [{"id": "Conformance-v0", "objective": objective}]
    experiment = small(agents=AGENTS, environments=environments, budget=15)
    result = run_experiment(experiment, tmp_path / "run", LOCAL)
    assert not result.failures
    for trial in result.trials:
        env = core.make(trial.environment, **trial.arguments)
        directions = ["minimize"] * len(env.objective.goals)
        agent = core.make_agent(trial.agent, env.design_space, directions, seed=trial.seed)
        search, summary = agent.search(env, trial.budget), result.summaries[trial.trial_id]
        for name in ("simulations", "proposals", "duplicates", "illegal", "spent", "best_at"):
            assert getattr(summary, name) == getattr(search, name), name
        assert search.best is not None
        assert summary.best is not None
        assert summary.best.metrics == search.best.metrics
        assert [o.design for o in summary.front] == [o.design for o in search.front]
        assert len(summary.curve) == 15
        if len(directions) == 1:
            assert summary.curve[-1, 0] == search.best.objectives[0]
        several = trial.agent == "hyperband"
        assert (summary.simulations > summary.full_simulations) == several
        assert 14 < summary.spent <= 15
    data = json.loads((tmp_path / "run" / "results.json").read_text())
    assert [t["spent"] for t in data["trials"]] == [
        result.summaries[t.trial_id].spent for t in result.trials
    ]
    assert (tmp_path / "run" / "best_so_far.png").stat().st_size > 10_000
    console = Console(file=StringIO(), width=200)
    console.print(run_tables(result))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "spent" in text


def test_without_fidelities_nothing_is_said_of_them(tmp_path: Path) -> None:
    result = run_experiment(small(budget=5), tmp_path / "run", LOCAL)
    console = Console(file=StringIO(), width=200)
    console.print(run_tables(result))
    assert "spent" not in console.file.getvalue()  # type: ignore[attr-defined]
    for summary in result.summaries.values():
        assert summary.spent == summary.simulations == summary.full_simulations == 5


@pytest.mark.full
def test_the_command_line_runs_resumes_and_reports(tmp_path: Path) -> None:
    experiment = written(tmp_path, agents=AGENTS, budget=9)
    for out in ("one", "two"):
        code, _, err = archgym("run", experiment, "--local", "--quiet", "--out", tmp_path / out)
        assert code == 0, err
    code, _, err = archgym(
        "run", experiment, "--local", "--quiet", "--resume", "--out", tmp_path / "two"
    )
    assert code == 0, err
    assert_equal_runs(tmp_path / "one", tmp_path / "two")
    code, out, err = archgym("best", tmp_path / "one", "--json")
    assert code == 0, err
    (problem,) = json.loads(out)
    assert problem["simulations"] > problem["spent"]
    assert 32 < problem["spent"] <= 36
    code, out, err = archgym("best", tmp_path / "one")
    assert code == 0, err
    assert "of them full" in out
