"""Studies agree with the summaries of their trials."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from archgym.analysis.curves import budgets_to_reach, curves
from archgym.analysis.good_values import good_values
from archgym.analysis.trials import TrialSummary, read_trials
from archgym.data import Dataset
from archgym.errors import ArchgymError, UnknownNameError
from archgym.report import Study, read_study
from archgym.report.problem_tables import results_table
from archgym.report.search_charts import lottery
from archgym.report.space_charts import good_values_chart, parallel_coordinates
from archgym.report.study_tables import comparison_table, failures_table, overview_table
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
            assert counts[:5].sum() == mine.simulations
            assert counts[2] + counts[3] == mine.failed
            assert counts[4] == mine.stopped
            assert (counts[5], counts[6]) == (mine.illegal, mine.duplicates)
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


def test_an_agent_is_compared_with_itself_in_other_settings(tmp_path: Path) -> None:
    ga: dict[str, Any] = {"name": "ga"}
    both = [
        run(
            tmp_path / name,
            budget=20,
            agents=[
                {"name": "random"},
                {**ga, "hyperparameters": {"population_size": size}},
                *more,
            ],
        )
        for name, size, more in (("one", 4, []), ("two", 8, [{"name": "sobol"}]))
    ]
    table = comparison_table(read_study(both, ["before", "after"], compare=True))
    assert [row[1] for row in table.rows] == [
        "random",
        "ga population_size=4 (before) / ga population_size=8 (after)",
    ]
    assert table.rows[0][-1] == "the same results"
    assert "Only one of the two has sobol (after)" in table.note


def test_runs_without_a_common_problem_are_said_to_have_none(tmp_path: Path) -> None:
    both = [
        run(
            tmp_path / space,
            budget=6,
            environments=[{"id": "Conformance-v0", "space": space, "objective": objective}],
        )
        for space, objective in (
            ("finite", "minimize access_ns"),
            ("default", "minimize access_ns"),
        )
    ]
    study = read_study(both, ["before", "after"], compare=True)
    table = comparison_table(study)
    assert table.rows == []
    assert table.note.startswith("No agent of the one run has searched a problem of the other")


def test_designs_beyond_a_limit_are_not_drawn_as_good_ones(tmp_path: Path) -> None:
    objective = {"minimize": "access_ns", "limits": ["energy_pj <= 6"]}
    (problem,) = read_study(
        [run(tmp_path, environments=[{"id": "Conformance-v0", "objective": objective}])]
    ).problems
    costs, feasible = problem.measures.full_costs, problem.measures.full_feasible
    assert costs[~feasible].min() < costs[feasible].min()
    (chart,) = parallel_coordinates(problem, 1000)
    assert sorted(chart.series[0].y) == sorted(costs[feasible])
    assert f"of {feasible.sum()} simulated designs that keep all limits" in chart.note


def test_values_of_good_designs_are_those_of_feasible_ones(tmp_path: Path) -> None:
    objective = {"minimize": "access_ns", "limits": ["energy_pj <= 6"]}
    (problem,) = read_study(
        [run(tmp_path, environments=[{"id": "Conformance-v0", "objective": objective}])]
    ).problems
    kept = problem.measures.full_feasible[problem.picked]
    codes, costs = problem.picked_designs
    (chart,) = good_values_chart(problem)
    shares = {
        f"{value.parameter} = {value.value} (of all: {value.among_all:.0%})": value.among_best
        for value in good_values(problem.space.parameters, codes[kept], costs[kept])
    }
    assert [shares[name] for name in chart.categories] == list(chart.series[0].x)
    assert 0 < len(chart.categories) <= 15
    assert min(chart.series[0].x) > 0


def test_amounts_do_not_tell_reasons_apart(tmp_path: Path) -> None:
    limits = ["access_ns <= 0.3", "energy_pj <= 3"]
    entry = {"id": "Conformance-v0", "objective": {"minimize": "area_mm2", "limits": limits}}
    (problem,) = read_study([run(tmp_path / "run", environments=[entry], budget=30)]).problems
    reasons = {r for _, r in problem.measures.reasons if r.startswith("limit ")}
    expected = [f"limit {limit} exceeded" for limit in limits]
    assert reasons <= {*expected, ", ".join(expected)}
    assert ", ".join(expected) in reasons


def test_trials_that_failed_or_never_began_are_said(tmp_path: Path) -> None:
    agents = [{"name": "random"}, {"name": "tests.report.studies:Broken"}]
    folder = run(tmp_path / "run", agents=agents, budget=6)
    study = read_study([folder])
    assert len(study.failures) == 2
    assert study.n_trials + study.missing == 4


def test_problems_have_the_names_of_the_experiment(tmp_path: Path) -> None:
    entry = {"id": "Conformance-v0", "space": "finite"}
    named = [{**entry, "name": "quick"}, {**entry, "objective": "minimize energy_pj"}]
    study = read_study([run(tmp_path / "run", environments=named, budget=6)])
    assert [problem.name for problem in study.problems] == ["quick", "energy_pj"]


def test_a_change_is_that_of_the_value(tmp_path: Path) -> None:
    goals: list[dict[str, object]] = [{"minimize": "access_ns"}, {"maximize": "hit_rate"}]
    entries = [{"id": "Conformance-v0", "space": "finite", "objective": goal} for goal in goals]
    study = read_study([run(tmp_path / "run", environments=entries, budget=40)])
    for row, sign in zip(overview_table(study).rows, (-1, 1), strict=True):
        baseline, best = float(row[3]), float(row[4])
        assert float(row[5].rstrip("%")) == pytest.approx(100 * (best / baseline - 1), abs=0.1)
        assert (best - baseline) * sign > 0


def test_a_baseline_beyond_a_limit_is_said(tmp_path: Path) -> None:
    limit = {"minimize": "access_ns", "limits": ["energy_pj <= 3"]}
    entry = {"id": "Conformance-v0", "space": "finite", "objective": limit}
    study = read_study([run(tmp_path / "run", environments=[entry], budget=40)])
    (problem,) = study.problems
    energy = problem.baseline_metrics["energy_pj"]
    assert energy is not None
    assert energy > 3
    assert problem.baseline_breaks == [f"energy_pj <= 3 (it has {energy:,.5g} pJ)"]
    assert [level.dotted for level in lottery(study, problem).levels] == [True]
    row = overview_table(study).rows[0]
    assert row[3].endswith(", infeasible")
    assert row[5] == ""  # no change against what is not allowed


def test_failures_of_a_run_that_was_killed_come_from_its_logs(tmp_path: Path) -> None:
    agents = [{"name": "random"}, {"name": "tests.report.studies:Broken"}]
    folder = run(tmp_path / "run", agents=agents, budget=6)
    whole = read_study([folder])
    shutil.rmtree(folder / "results")
    (folder / "results.json").unlink()
    assert read_study([folder]).failures == whole.failures
    assert [reason for _, reason in whole.failures.values()] == ["RuntimeError: no idea"] * 2
    (table,) = failures_table(whole)
    assert table.rows[0][:3] == ["Broken", "RuntimeError: no idea", "2"]


def test_time_is_split_over_the_whole_trial(tmp_path: Path) -> None:
    folder = run(tmp_path / "run", budget=6)
    rows = pq.read_table(folder / "results" / "trials.parquet").to_pylist()
    known = {row["trial_id"]: row["framework_s"] for row in rows}
    (problem,) = read_study([folder]).problems
    found = dict(zip(problem.ids, problem.measures.framework_s.tolist(), strict=True))
    assert found == pytest.approx(known, rel=1e-3, abs=1e-5)


def test_the_unit_is_the_seed(tmp_path: Path) -> None:
    study = read_study([run(tmp_path / "run", budget=6, seeds=[3, 5])], by="agent")
    (problem,) = study.problems
    assert problem.units.tolist() == [3, 5, 3, 5, 3, 5]
    table = results_table(study, problem)
    assert {row[0]: row[1] for row in table.rows} == {"random": "2", "ga": "4 of 2 seeds"}
    assert "The unit of independence is the seed" in table.note
    alone = read_study([tmp_path / "run"], by="hyperparameters")
    assert "is the trial" in results_table(alone, alone.problems[0]).note


def test_a_missing_folder_names_those_that_may_be_meant(tmp_path: Path) -> None:
    run(tmp_path / "sqlite-latency", budget=6)
    with pytest.raises(ArchgymError, match=r"Did you mean '.*/sqlite-latency'\? There are: "):
        read_study([tmp_path / "sqlite-latncy"])
    with pytest.raises(ArchgymError, match="is not there"):
        read_study([tmp_path / "no" / "where"])


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArchgymError, match="holds neither a run nor a dataset"):
        read_study([tmp_path])


def _scores(study: Study) -> dict[str, float]:
    return {
        trial_id: float(score)
        for problem in study.problems
        for trial_id, score in zip(problem.ids, problem.score, strict=True)
    }


def test_a_report_of_some_agents_only(tmp_path: Path) -> None:
    folder = run(tmp_path / "run")
    whole, one = read_study([folder]), read_study([folder], agents=["ga"])
    assert {searcher.agent for searcher in whole.searchers} == {"random", "ga"}
    assert {searcher.agent for searcher in one.searchers} == {"ga"}
    assert all(trial.agent == "ga" for problem in one.problems for trial in problem.trials)
    with pytest.raises(UnknownNameError, match="Did you mean 'ga'"):
        read_study([folder], agents=["gaa"])
