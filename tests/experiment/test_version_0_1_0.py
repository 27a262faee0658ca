"""Runs and datasets that archgym 0.1.0 wrote are read, learned from, and gone on with.

``version_0_1_0`` holds two runs of one experiment by commit 2a242216: ``finished``, without its
picture and tables of results, and ``interrupted``, whose process was ended in its second trial.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import archgym
from archgym.data import Dataset, equal_trajectories
from archgym.experiment import RunOptions, load_experiment, run_experiment
from archgym.experiment.results.status import read_status
from tests.experiment.experiments import archgym as command

RUNS = Path(__file__).parent / "version_0_1_0"
DATASET = Path("datasets") / "Conformance-v0"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RUNS, tmp_path / "runs"))


def test_status_knows_which_trials_ended(runs: Path) -> None:
    states = {"finished": 2, "failed": 0, "running": 0, "waiting": 0}
    assert read_status(runs / "finished").trials == states
    status = read_status(runs / "interrupted")
    assert (status.state, status.simulations) == ("interrupted", 15)
    assert status.trials == {"finished": 1, "failed": 0, "running": 0, "waiting": 1}


def test_rows_of_a_journal_without_checksums_are_those_of_the_tables(runs: Path) -> None:
    whole = Dataset(runs / "finished" / DATASET).evaluations()
    assert whole.num_rows == 24
    code, out, err = command("dataset", "validate", runs / "interrupted" / DATASET)
    assert code == 0, out + err
    left = Dataset(runs / "interrupted" / DATASET).evaluations()
    assert equal_trajectories(left, whole.slice(0, 15))


def test_best_and_report_read_a_run(runs: Path) -> None:
    code, out, err = command("best", runs / "finished", "--json")
    assert code == 0, err
    values = json.loads(out)
    assert "2.38" in json.dumps(values)
    code, _, err = command("report", runs / "finished", "--out", runs / "page.html")
    assert code == 0, err
    assert "access_ns" in (runs / "page.html").read_text()


def test_a_search_learns_from_it(runs: Path) -> None:
    env = archgym.make("Conformance-v0", space="finite")
    agent = archgym.make_agent("gp", env.design_space, seed=1)
    result = agent.search(env, budget=5, history=runs / "finished")
    assert result.best is not None
    found = result.best.metrics["access_ns"]
    assert found is not None
    assert found <= 2.39  # the best of the run of random designs


def test_an_interrupted_run_goes_on_if_told_that_it_has_no_baseline(runs: Path) -> None:
    folder = runs / "interrupted"
    experiment = load_experiment(folder / "experiment.yaml")
    resume = RunOptions(local=True, quiet=True, resume=True)
    with pytest.raises(archgym.errors.ExperimentError, match="baseline_first was False there"):
        run_experiment(experiment, folder, resume)
    same = experiment.model_copy(update={"baseline_first": False})
    run_experiment(same, folder, resume)
    assert equal_trajectories(
        Dataset(folder / DATASET).evaluations(), Dataset(runs / "finished" / DATASET).evaluations()
    )
