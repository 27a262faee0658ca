"""What is read agrees with the run's own summaries, which were made another way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archgym.data import Dataset
from archgym.errors import ArchgymError
from archgym.experiment.summary import TrialSummary, read_trials
from archgym.report import Study, read_study
from archgym.report.curves import budgets_to_reach, curves
from tests.report.studies import run

CASES: dict[str, dict[str, Any]] = {
    "one goal": {},
    "limits": {
        "environments": [
            {
                "id": "Conformance-v0",
                "space": "finite",
                "objective": {"minimize": "access_ns", "limits": ["energy_pj <= 20"]},
            }
        ]
    },
    "maximised": {
        "environments": [
            {"id": "Conformance-v0", "space": "finite", "objective": "maximize hit_rate"}
        ]
    },
    "several goals": {
        "environments": [
            {
                "id": "Conformance-v0",
                "space": "finite",
                "objective": {"minimize": ["access_ns", "energy_pj"]},
            }
        ],
        "agents": [{"name": "random"}, {"name": "nsga2"}],
    },
    "failures": {"environments": [{"id": "tests.helpers:Grumpy"}]},
    "fidelities": {
        "agents": [{"name": "hyperband"}, {"name": "random"}],
    },
}


def summaries(folder: Path) -> dict[str, TrialSummary]:
    return {
        one.trial_id: one
        for path in (folder / "datasets").iterdir()
        for one in read_trials(Dataset(path))
    }


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_the_summaries(case: str, tmp_path: Path) -> None:
    folder = run(tmp_path / "run", **CASES[case])
    study, known = read_study([folder]), summaries(folder)
    assert sorted(known) == sorted(i for problem in study.problems for i in problem.ids)
    for problem in study.problems:
        measures = problem.measures
        for number, trial_id in enumerate(problem.ids):
            mine, counts = known[trial_id], measures.counts[number]
            assert counts.sum() == mine.proposals
            assert counts[:4].sum() == mine.simulations
            assert counts[2] + counts[3] == mine.failed
            assert (counts[4], counts[5]) == (mine.illegal, mine.duplicates)
            assert measures.spent[number] == pytest.approx(mine.spent)
            if len(mine.curve):
                assert measures.best[number].tolist() == mine.curve[-1].tolist()
                for goal in range(mine.curve.shape[1]):
                    grid = np.linspace(1, len(mine.curve), len(mine.curve))
                    found = curves(problem, grid, goal=goal)[number]
                    assert found.tolist() == mine.curve[:, goal].tolist()
            if mine.hypervolume is not None:
                assert -problem.score[number] == pytest.approx(mine.hypervolume)
                fronts = {tuple(o.objectives) for o in mine.front}
                assert {tuple(v) for v in measures.front_values[number].tolist()} == fronts
            elif mine.best is not None and mine.best.feasible:
                chosen = problem.chosen[int(measures.best_row[number])]
                design = problem.space.design(chosen.codes.tolist())
                value = problem.score[number]
                assert value == mine.best.objectives[0]
                assert chosen.metrics == mine.best.metrics or design != mine.best.design


def test_regret_counts_from_the_exact_optimum(tmp_path: Path) -> None:
    table = {"simulator": "tabular:dram-archgym-sort", "objective": "minimize read_latency_mean_ns"}
    folder = run(tmp_path / "run", environments=[{"id": "DRAM-v0", **table}], budget=60)
    (problem,) = read_study([folder]).problems
    known = summaries(folder)
    assert problem.exact
    regrets = problem.regret(problem.measures.best_cost)
    assert regrets.tolist() == pytest.approx([known[i].regret for i in problem.ids])
    # When it came within 10 %, by the curve of the summary.
    reached = budgets_to_reach(problem, 0.1)
    least = min(
        float(known[i].best.objectives[0]) / (1 + known[i].regret)  # type: ignore[union-attr,operator]
        for i in problem.ids
    )
    for number, trial_id in enumerate(problem.ids):
        near = np.flatnonzero(known[trial_id].curve[:, 0] <= least * (1.1 + 1e-12))
        assert reached[number] == (near[0] + 1 if len(near) else np.inf)


def test_groups_by_hyperparameters_or_by_agent(tmp_path: Path) -> None:
    folder = run(tmp_path / "run", budget=6)
    study = read_study([folder])
    assert [one.name for one in study.searchers] == [
        "random",
        "ga population_size=4",
        "ga population_size=8",
    ]
    pooled = read_study([folder], by="agent")
    assert [one.name for one in pooled.searchers] == ["random", "ga"]
    assert pooled.pooled
    assert pooled.problems[0].searcher.tolist() == [0, 0, 1, 1, 1, 1]


def test_a_dataset_by_itself_is_reported_too(tmp_path: Path) -> None:
    folder = run(tmp_path / "run", budget=6)
    whole = read_study([folder])
    (dataset,) = (folder / "datasets").iterdir()
    alone = read_study([dataset])
    assert _scores(alone) == _scores(whole)
    assert len(alone.searchers) == len(whole.searchers)


def test_two_runs_are_kept_apart(tmp_path: Path) -> None:
    first = run(tmp_path / "one", budget=6)
    second = run(tmp_path / "two", budget=12)
    study = read_study([first, second], ["before", "after"], compare=True)
    assert study.compared == ("before", "after")
    (problem,) = study.problems
    names = [study.searchers[i].name for i in problem.searcher.tolist()]
    assert names[0] == "random (before)"
    assert names[-1] == "ga population_size=8 (after)"
    assert problem.measures.spent.tolist() == [6.0] * 6 + [12.0] * 6


def test_trials_that_failed_or_never_began_are_said(tmp_path: Path) -> None:
    agents = [{"name": "random"}, {"name": "tests.report.studies:Broken"}]
    folder = run(tmp_path / "run", agents=agents, budget=6)
    study = read_study([folder])
    assert len(study.failures) == 2
    assert study.n_trials + study.missing == 4


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArchgymError, match="holds neither a run nor a dataset"):
        read_study([tmp_path])


def _scores(study: Study) -> dict[str, float]:
    return {
        trial_id: float(score)
        for problem in study.problems
        for trial_id, score in zip(problem.ids, problem.score, strict=True)
    }
