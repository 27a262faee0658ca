"""Batches, shards, and the studies that ship: every trial runs exactly once."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from archgym.data import Dataset
from archgym.errors import ExperimentError, InvalidValueError, UnknownNameError
from archgym.experiment import RunOptions, expand, load_experiment, run_experiment
from archgym.experiment.results.files import CURVE_SCHEMA, TRIAL_SCHEMA
from archgym.experiment.run.trial_batches import make_batches, shard_of
from archgym.registry import environment_names
from tests.experiment.experiments import (
    HELPERS,
    archgym,
    assert_equal_runs,
    small,
    write_log,
    written,
)

QUIET = RunOptions(local=True, quiet=True)


@pytest.mark.parametrize(("seeds", "workers"), [(1, 1), (7, 2), (40, 2), (40, 64)])
def test_batches_hold_every_trial_once_and_one_environment_each(seeds: int, workers: int) -> None:
    environments = [{"id": "Conformance-v0", "space": "finite"}, {"id": f"{HELPERS}:Slow"}]
    trials = expand(small(seeds=seeds, environments=environments))
    batches = make_batches(trials, workers)
    dealt = [trial.trial_id for batch in batches for trial in batch.trials]
    assert sorted(dealt) == sorted(trial.trial_id for trial in trials)
    assert len({batch.name for batch in batches}) == len(batches)
    for batch in batches:
        assert len({trial.environment for trial in batch.trials}) == 1
    if seeds == 40:  # the same mix of agents in each, and work for everybody
        assert len(batches) >= min(len(trials), 12 * workers)
        sizes = [len(batch.trials) for batch in batches]
        assert max(sizes) - min(sizes) <= 1


def test_many_trials_share_a_journal_and_a_file(tmp_path: Path) -> None:
    result = run_experiment(small(seeds=20, budget=5), tmp_path / "run", QUIET)
    assert len(result.summaries) == 40
    (dataset,) = (tmp_path / "run" / "datasets").iterdir()
    assert len(list((dataset / "evaluations").iterdir())) == 1
    assert Dataset(dataset).evaluations().num_rows == sum(
        summary.proposals for summary in result.summaries.values()
    )


def test_shards_make_up_the_whole(tmp_path: Path) -> None:
    experiment = small(seeds=3)
    for number in (2, 1):
        options = RunOptions(local=True, quiet=True, shard=(number, 2))
        part = run_experiment(experiment, tmp_path / "parts", options)
        if number == 2:
            assert part.totals.states == {"finished": 3, "not_run": 3}
    with pytest.raises(ExperimentError, match="--resume"):
        run_experiment(experiment, tmp_path / "parts", options)
    with pytest.raises(ExperimentError, match=r"--shard cannot be 1/3: .* into 2 shards"):
        run_experiment(
            experiment, tmp_path / "parts", RunOptions(local=True, quiet=True, shard=(1, 3))
        )
    run_experiment(experiment, tmp_path / "whole", QUIET)
    assert_equal_runs(tmp_path / "whole", tmp_path / "parts")
    trials = expand(experiment)
    assert sorted(t.trial_id for i in (1, 2) for t in shard_of(trials, i, 2)) == sorted(
        t.trial_id for t in trials
    )


def test_a_shard_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="shard cannot be 3/2"):
        run_experiment(small(), tmp_path, RunOptions(local=True, shard=(3, 2)))
    code, _, err = archgym("run", written(tmp_path), "--local", "--shard", "two")
    assert code == 2
    assert "the third of 16 parts is 3/16" in err


def test_an_entry_may_name_itself_and_choose_its_agents() -> None:
    environments = [
        {"id": "Conformance-v0", "space": "finite", "name": "easy", "agents": ["ga"]},
        {"id": "Conformance-v0", "space": "finite", "objective": "minimize energy_pj"},
    ]
    trials = expand(small(environments=environments, seeds=1))
    found = [(trial.setting, trial.agent) for trial in trials]
    assert found == [("easy", "ga"), ("Conformance-v0", "random"), ("Conformance-v0", "ga")]
    with pytest.raises(UnknownNameError, match=r"environments\[0\].agents: .*'random'"):
        expand(small(environments=[{"id": "Conformance-v0", "agents": ["rnadom"]}]))


def test_the_tables_of_results(tmp_path: Path) -> None:
    result = run_experiment(small(seeds=4), tmp_path / "run", QUIET)
    folder = tmp_path / "run" / "results"
    trials = pq.read_table(folder / "trials.parquet")
    assert trials.schema.equals(TRIAL_SCHEMA)
    rows = {row["trial_id"]: row for row in trials.to_pylist()}
    assert list(rows) == list(result.summaries)
    curves = pq.read_table(folder / "curves.parquet")
    assert curves.schema.equals(CURVE_SCHEMA)
    for curve in curves.to_pylist():
        row, summary = rows[curve["trial_id"]], result.summaries[curve["trial_id"]]
        assert curve["value"][-1] == row["best"][0] == summary.curve[-1, 0]
        assert curve["spent"][-1] == row["spent"] == 12
        assert all(np.diff(curve["value"][:-1]) < 0)
    for row in rows.values():
        parts = row["agent_s"] + row["simulation_s"] + row["framework_s"]
        assert math.isclose(parts, row["wall_s"], rel_tol=1e-6)
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["trials"] == {"total": 8, "finished": 8}
    assert summary["settings"]["Conformance-v0"]["goals"][0]["name"] == "access_ns"
    (row,) = pq.read_table(folder / "significance.parquet").to_pylist()
    assert (row["agent_a"], row["agent_b"], row["n_a"], row["n_b"]) == ("random", "ga", 4, 4)
    ends = sorted(one["best"][0] for one in rows.values() if one["agent"] == "random")
    assert math.isclose(row["median_a"], (ends[1] + ends[2]) / 2)


def test_scores_of_different_problems_have_no_common_median(tmp_path: Path) -> None:
    goals = ("minimize access_ns", "minimize energy_pj", "maximize hit_rate")
    problems = [{"id": "Conformance-v0", "objective": goal, "name": goal[9:]} for goal in goals]
    run_experiment(small(environments=problems), tmp_path / "run", QUIET)
    rows = pq.read_table(tmp_path / "run" / "results" / "significance.parquet").to_pylist()
    *each, over = rows
    assert [row["test"] for row in rows] == ["Mann-Whitney U"] * 3 + ["Wilcoxon signed-rank"]
    assert all(math.isfinite(row["median_a"] + row["median_b"]) for row in each)
    assert (over["median_a"], over["median_b"], over["n_a"], over["units_b"]) == (None, None, 3, 3)
    assert math.isclose(over["a12"], sum(row["a12"] for row in each) / 3)


def test_the_time_of_a_trial_that_went_on_in_another_process_is_not_known(tmp_path: Path) -> None:
    """Its last process took less than agent and simulator did in all; no share is above 1."""
    folder = tmp_path / "run"
    run_experiment(small(seeds=2), folder, QUIET)
    (log,) = (folder / "log").glob("*.jsonl")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    ended = [line for line in lines if line.get("wall_s")]
    ended[0]["wall_s"] = 1e-7
    write_log(log, lines)
    run_experiment(small(seeds=2), folder, RunOptions(local=True, quiet=True, resume=True))
    rows = pq.read_table(folder / "results" / "trials.parquet").to_pylist()
    unknown = {row["trial_id"] for row in rows if row["wall_s"] is None}
    assert unknown == {ended[0]["trial_id"]}
    assert all((row["framework_s"] is None) == (row["trial_id"] in unknown) for row in rows)
    split = json.loads((folder / "results" / "summary.json").read_text())["split"]
    assert split["agent_s"] + split["simulation_s"] <= split["wall_s"]


def test_the_lottery_is_what_it_says() -> None:
    experiment = load_experiment("lottery")
    trials = expand(experiment)
    hard = [trial for trial in trials if not trial.setting.endswith("-easy")]
    assert len(hard) >= 21_600
    assert (experiment.designs or 0) >= 100
    assert len({trial.setting for trial in hard}) == 12
    assert len({trial.arguments["simulator"] for trial in hard}) == 4
    assert len({json.dumps(trial.arguments["objective"]) for trial in hard}) == 3
    assert len({trial.agent for trial in trials}) >= 5
    bayesian = sum(trial.agent == "bayesian" for trial in trials)
    assert bayesian / len(trials) >= 15 / 689
    for trial in trials:
        if trial.hyperparameters.get("surrogate") == "gp":
            assert trial.hyperparameters["forest_above"] == 50
    for entry in experiment.environments:
        assert entry.name.endswith("-easy") or (entry.least_random_draws or 0) >= 1000


@pytest.mark.parametrize("name", ["tpe", "accelerator", "nas", "cpu"])
def test_the_lotteries_of_other_environments_have_its_form(name: str) -> None:
    experiment = load_experiment(f"lottery-{name}")
    trials = expand(experiment)
    assert len({trial.environment for trial in trials}) == 1
    assert len({trial.setting for trial in trials}) == 3
    assert len({trial.agent for trial in trials} - {"random"}) >= 5
    assert len({trial.agent_label for trial in trials}) > 30
    assert sum(trial.agent == "bayesian" for trial in trials) / len(trials) >= 15 / 689
    assert (experiment.designs or 0) >= 100
    assert len(experiment.seed_list) >= 8
    assert all((entry.least_random_draws or 0) >= 1000 for entry in experiment.environments)


def test_a_problem_that_is_too_easy_is_refused(tmp_path: Path) -> None:
    entry = {"id": "DRAM-v0", "simulator": "tabular:dram-archgym-sort", "least_random_draws": 1000}
    easy = small(environments=[{**entry, "objective": "minimize power_mw"}])
    with pytest.raises(ExperimentError, match=r"DRAM-v0 is too easy: .* after 4[0-9] draws"):
        run_experiment(easy, tmp_path / "run", QUIET)
    unknown = small(environments=[{"id": "Conformance-v0", "least_random_draws": 10}])
    with pytest.raises(ExperimentError, match="its optimum is not known"):
        run_experiment(unknown, tmp_path / "run", QUIET)
    assert not (tmp_path / "run").exists()


@pytest.mark.full
def test_a_strangers_agent_runs_on_the_suite(tmp_path: Path) -> None:
    settings = ["budget=20", "seeds=2", f"agents=[{{name: random}}, {{name: '{HELPERS}:Diary'}}]"]
    result = run_experiment(load_experiment("suite", settings), tmp_path / "run", QUIET)
    environments = {trial.environment for trial in result.trials}
    assert environments == set(environment_names()) - {"Conformance-v0"}
    assert not result.failures
    assert all(summary.regret is not None for summary in result.summaries.values())
    rows = pq.read_table(tmp_path / "run" / "results" / "lottery.parquet").to_pylist()
    assert {row["agent"] for row in rows} == {"random", f"{HELPERS}:Diary"}
