"""Runs that learn from earlier ones: read once, kept in the run, the same for all of its trials."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image

import archgym as core
from archgym.analysis.trials import read_trials
from archgym.data import Dataset
from archgym.errors import ArchgymError, ExperimentError
from archgym.experiment import (
    RunOptions,
    RunResult,
    expand,
    load_experiment,
    run_experiment,
    shipped_experiments,
)
from archgym.experiment.results.status import read_status
from archgym.report import read_study
from archgym.report.content import problem_sections
from tests.cli.conftest import Called, call  # noqa: F401 - a fixture
from tests.experiment.experiments import (
    HELPERS,
    archgym,
    assert_equal_runs,
    mapping,
    slow,
    small,
    start,
)

LOCAL = RunOptions(local=True, quiet=True)
RESUME = RunOptions(local=True, quiet=True, resume=True)
OTHER_FOLDER = r"history\[0\] was .*earlier' there and is .*copy' now"
FINITE = {"id": "Conformance-v0", "space": "finite"}


def run(out: Path, options: RunOptions = LOCAL, **changes: Any) -> RunResult:
    return run_experiment(small(**changes), out, options)


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A run for another objective."""
    run(tmp_path / "earlier", environments=[{**FINITE, "objective": "minimize energy_pj"}])
    return tmp_path / "earlier"


def learned(folder: Path, dataset: str = "Conformance-v0") -> list[Any]:
    return [summary.history for summary in read_trials(Dataset(folder / "datasets" / dataset))]


def test_all_trials_learn_the_same_and_say_so(tmp_path: Path, earlier: Path) -> None:
    result = run(tmp_path / "run", history=[str(earlier)])
    told = learned(tmp_path / "run")
    assert len({one.sha256 for one in told}) == 1
    assert [(s.name, s.same) for s in told[0].sources] == [("Conformance-v0", True)]
    table = pq.read_table(tmp_path / "run" / "results" / "trials.parquet").to_pylist()
    assert {row["history_sources"] for row in table} == {1}
    assert {row["history_first"] for row in table} == {5}
    best = {name: summary.from_history for name, summary in result.summaries.items()}
    assert {row["trial_id"]: row["from_history"] for row in table} == best
    (status,) = read_status(tmp_path / "run").best
    assert status.from_history == result.summaries[status.trial_id].from_history


def test_searches_of_one_problem_with_and_without_history_share_a_panel(
    tmp_path: Path, earlier: Path
) -> None:
    widths = {}
    with_it = {**FINITE, "name": "learned", "history": str(earlier)}
    for name, settings in {
        "one": [FINITE],
        "both": [FINITE, with_it],
        "two": [FINITE, {**FINITE, "objective": "minimize energy_pj"}],
    }.items():
        run(tmp_path / name, environments=settings)
        with Image.open(tmp_path / name / "best_so_far.png") as picture:
            widths[name] = picture.width
    assert widths["one"] == widths["both"] < widths["two"]


def test_best_and_report_say_what_came_from_it(
    tmp_path: Path,
    earlier: Path,
    call: Callable[..., Called],  # noqa: F811
) -> None:
    run(tmp_path / "run", history=str(earlier), budget=5)  # no more than comes from history
    run(tmp_path / "plain", budget=5)
    for name, known in (("run", True), ("plain", False)):
        best = json.loads(call("best", tmp_path / name, "--json").out)[0]["best"]
        assert best["from_history"] is known
        shown = call("best", tmp_path / name).out
        assert ("history suggested 5 designs to begin with" in shown) is known
        assert ("designs of Conformance-v0" in shown) is known
        assert ("suggested by history" in call("status", tmp_path / name).out) is known
    study = read_study([tmp_path / "run"])
    (problem,) = study.problems
    tables = [t for s in problem_sections(study, problem, 50, 50) for t in s.tables]
    (table,) = [one for one in tables if "learned from" in one.title]
    assert [[*row[:2], *row[3:]] for row in table.rows] == [
        [name, "2 of 2", "5", "yes"] for name in ("random", "ga")
    ]


def test_best_and_report_say_of_what_no_use_was_made(
    tmp_path: Path,
    call: Callable[..., Called],  # noqa: F811
) -> None:
    """Four designs are too few to learn from for an agent with a model."""
    run(tmp_path / "few", agents=[{"name": "random"}], seeds=1, budget=4)
    agents = [{"name": "gp"}]
    run(tmp_path / "run", agents=agents, seeds=1, history=str(tmp_path / "few"), budget=5)
    shown = call("best", tmp_path / "run").out
    assert "no use made of Conformance-v0; history suggested 0 designs to begin with" in shown
    study = read_study([tmp_path / "run"])
    (problem,) = study.problems
    tables = [t for s in problem_sections(study, problem, 50, 50) for t in s.tables]
    (table,) = [one for one in tables if "learned from" in one.title]
    assert table.rows == [["gp", "1 of 1", "Conformance-v0 (4, not used)", "0", "no"]]


def test_an_entry_and_the_experiment_list_folders_alike(tmp_path: Path, earlier: Path) -> None:
    for name, history in (("one", str(earlier)), ("list", [str(earlier)])):
        run(tmp_path / name, environments=[{**FINITE, "history": history}])
    run(tmp_path / "all", history=str(earlier))
    first = learned(tmp_path / "one")
    assert learned(tmp_path / "list") == first == learned(tmp_path / "all")
    code, _, err = archgym(
        *("run", written(tmp_path), "--local", "--out", tmp_path / "option"),
        *("--history", earlier),
    )
    assert code == 0, err
    assert "history of Conformance-v0: 1 source" in err
    assert learned(tmp_path / "option") == first


def written(folder: Path) -> Path:
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(mapping()))
    return path


def test_what_the_folders_hold_later_changes_nothing(tmp_path: Path, earlier: Path) -> None:
    run(tmp_path / "whole", history=str(earlier), seeds=3)
    run(tmp_path / "part", history=str(earlier), seeds=2)
    env = core.make("Conformance-v0", space="finite", record=earlier / "datasets/Conformance-v0")
    env.evaluate({**env.baseline_design, "ways": 1, "size_kb": 64})
    env.close()
    run(tmp_path / "part", RESUME, history=str(earlier), seeds=3)
    assert_equal_runs(tmp_path / "whole", tmp_path / "part")
    run(tmp_path / "later", history=str(earlier), seeds=3)
    assert learned(tmp_path / "later")[0].sha256 != learned(tmp_path / "part")[0].sha256


@pytest.mark.full
def test_killed_it_goes_on_when_the_folder_is_gone(tmp_path: Path) -> None:
    experiment = slow(tmp_path, budget=60, agents=[{"name": "random"}, {"name": "ga"}], seeds=1)
    source, out = tmp_path / "source", tmp_path / "run"
    options = ("--local", "--history", source, "--quiet")
    objective = "environments.0.objective=minimize area_um2"
    assert archgym("run", experiment, "--local", "--out", source, "--set", objective)[0] == 0
    assert archgym("run", experiment, "--out", tmp_path / "whole", *options)[0] == 0
    process = start("run", experiment, "--out", out, *options)
    while process.poll() is None and not any(out.glob("datasets/*/journal/*")):
        time.sleep(0.01)
    time.sleep(0.1)
    process.kill()
    process.communicate()
    shutil.rmtree(source)
    code, _, err = archgym("run", experiment, "--out", out, "--resume", *options)
    assert code == 0, err
    assert_equal_runs(tmp_path / "whole", out)
    assert learned(out, "Slow") == learned(tmp_path / "whole", "Slow")


def test_a_run_goes_on_with_its_history_however_the_folder_is_written(
    tmp_path: Path, earlier: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(tmp_path / "run", history="earlier", budget=10)
    first = learned(tmp_path / "run")
    run(tmp_path / "run", RESUME, history=str(earlier), budget=12)
    run(tmp_path / "run", RESUME, budget=14)  # not named again
    shutil.rmtree(earlier)
    run(tmp_path / "run", RESUME, history="earlier", budget=16)
    assert learned(tmp_path / "run") == first


def test_of_several_differences_the_one_that_is_not_allowed_is_named(
    tmp_path: Path, earlier: Path
) -> None:
    run(tmp_path / "run", history=str(earlier), budget=10)
    shutil.copytree(earlier, tmp_path / "copy")
    with pytest.raises(ExperimentError, match=OTHER_FOLDER):
        run(tmp_path / "run", RESUME, history=str(tmp_path / "copy"), budget=12)


def test_other_history_is_another_experiment(tmp_path: Path, earlier: Path) -> None:
    run(tmp_path / "run", history=str(earlier))
    shutil.copytree(earlier, tmp_path / "copy")
    with pytest.raises(ExperimentError, match=OTHER_FOLDER):
        run(tmp_path / "run", RESUME, history=str(tmp_path / "copy"))
    run(tmp_path / "plain")
    with pytest.raises(ExperimentError, match="history was left out there and is"):
        run(tmp_path / "plain", RESUME, history=str(earlier))
    assert not (tmp_path / "plain" / "history").exists()


@pytest.mark.parametrize(
    "damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-9])]
)
def test_damage_of_what_is_kept(
    tmp_path: Path, earlier: Path, damage: Callable[[Path], None]
) -> None:
    run(tmp_path / "run", history=str(earlier))
    (kept,) = (tmp_path / "run" / "history").iterdir()
    damage(kept)
    with pytest.raises(ExperimentError, match="is damaged, so its run cannot go on: history/"):
        run(tmp_path / "run", RESUME, history=str(earlier), seeds=3)


@pytest.mark.parametrize(
    ("history", "says"),
    [
        (3, "history cannot be 3: allowed is the folder of a run or a dataset, or a list of them"),
        (["a", "a"], "a folder is listed twice"),
        ([""], "allowed is the folder of a run"),
    ],
)
def test_what_is_no_list_of_folders(history: Any, says: str) -> None:
    for changes in ({"history": history}, {"environments": [{**FINITE, "history": history}]}):
        with pytest.raises(ArchgymError, match=re.escape(says)):
            small(**changes)
    with pytest.raises(ArchgymError, match=r"unknown key 'histroy'.*Did you mean 'history'"):
        small(histroy="a")


def test_folders_that_cannot_be_used(tmp_path: Path, earlier: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    table = tmp_path / "designs.csv"
    table.write_text("ways,energy_pj\n1,2\n")
    environments = [{"id": f"{HELPERS}:Slow"}]
    cases: list[tuple[dict[str, Any], str]] = [
        ({"history": str(tmp_path / "erlier")}, "history: .*Did you mean .*earlier'"),
        ({"history": str(empty)}, "history: .*holds neither a run nor a dataset"),
        ({"history": str(table)}, r"history: .*designs.csv is a file, but no proxy: .*a table"),
        (
            {"history": str(earlier), "environments": environments},
            "history: nothing in .*earlier can be history of .*Slow: .*at least half are needed",
        ),
        (
            {"environments": [{**environments[0], "history": str(earlier)}]},
            r"environments\[0\].history: nothing in .*earlier can be",
        ),
    ]
    for changes, says in cases:
        with pytest.raises(ArchgymError, match=says):
            run(tmp_path / "run", **changes)
        assert not (tmp_path / "run").exists()


def test_a_run_does_not_learn_from_itself(tmp_path: Path) -> None:
    run(tmp_path / "run")
    for path in (tmp_path / "run", tmp_path / "run" / "datasets" / "Conformance-v0"):
        environments = [{**FINITE, "name": "other", "history": str(path)}]
        with pytest.raises(ExperimentError, match="is the output folder of this run"):
            run(tmp_path / "run", RESUME, environments=[FINITE, *environments])


def test_a_folder_for_all_environments_is_used_by_those_that_can(
    tmp_path: Path, earlier: Path
) -> None:
    environments = [FINITE, {"id": f"{HELPERS}:Slow", "arguments": {"seconds": 0.0}}]
    run(tmp_path / "run", history=str(earlier), environments=environments)
    assert all(learned(tmp_path / "run"))
    assert not any(learned(tmp_path / "run", "Slow"))


def test_reports_and_best_keep_searches_with_and_without_history_apart(
    tmp_path: Path,
    earlier: Path,
    call: Callable[..., Called],  # noqa: F811
) -> None:
    both = [FINITE | {"name": "from-nothing"}]
    both += [FINITE | {"name": "with-history", "history": str(earlier)}]
    run(tmp_path / "run", environments=both, agents=[{"name": "random"}])
    study = read_study([tmp_path / "run"])
    assert [problem.name for problem in study.problems] == ["from-nothing", "with-history"]
    accounts = [problem.history_accounts for problem in study.problems]
    assert accounts[0] == []
    assert ["designs of" in line for line in accounts[1]] == [True]
    shown = json.loads(call("best", tmp_path / "run", "--json").out)
    assert [one["trials"] for one in shown] == [2, 2]
    text = call("best", tmp_path / "run").out
    assert text.count("history suggested") == text.count("  read: ") == 1
    # Two runs that are compared search one problem, whatever they learned from.
    run(tmp_path / "plain", agents=[{"name": "random"}])
    run(tmp_path / "learned", agents=[{"name": "random"}], history=str(earlier))
    pair = [tmp_path / "plain", tmp_path / "learned"]
    assert len(read_study(pair, compare=True).problems) == 1
    assert len({problem.name for problem in read_study(pair).problems}) == 2


def test_settings_with_other_history_are_told_apart(tmp_path: Path, earlier: Path) -> None:
    environments = [FINITE, {**FINITE, "history": str(earlier)}]
    trials = expand(small(environments=environments))
    assert len({trial.setting for trial in trials}) == 2
    run(tmp_path / "run", environments=environments)
    assert sum(one is not None for one in learned(tmp_path / "run")) == 4


def test_with_several_workers_every_trial_learns_the_same(tmp_path: Path, earlier: Path) -> None:
    simulation = {"executor": "processes", "workers": 2}
    run(tmp_path / "run", history=str(earlier), simulation=simulation)
    run(tmp_path / "plain", history=str(earlier))
    assert learned(tmp_path / "run") == learned(tmp_path / "plain")


@pytest.mark.full
def test_with_workers_that_somebody_starts(tmp_path: Path, earlier: Path) -> None:
    simulation = {"executor": "workers", "lease_s": 5}
    path = tmp_path / "leased.yaml"
    path.write_text(yaml.safe_dump(mapping(history=str(earlier), simulation=simulation)))
    driver = start("run", path, "--local", "--out", tmp_path / "run")
    while driver.poll() is None and not (tmp_path / "run" / "trials.json").exists():
        time.sleep(0.02)
    worker = start("worker", tmp_path / "run")
    _, err = driver.communicate(timeout=120)
    worker.communicate(timeout=60)
    assert driver.returncode == 0, err
    run(tmp_path / "plain", history=str(earlier))
    assert learned(tmp_path / "run") == learned(tmp_path / "plain")


@pytest.mark.full
def test_through_ray_trials_are_those_of_a_local_run(tmp_path: Path, earlier: Path) -> None:
    path = tmp_path / "experiment.yaml"
    path.write_text(yaml.safe_dump(mapping(history=str(earlier))))
    for name, options in (("ray", ("--cpus", "2")), ("local", ("--local",))):
        code, _, err = archgym("run", path, "--out", tmp_path / name, "--quiet", *options)
        assert code == 0, err
    assert_equal_runs(tmp_path / "ray", tmp_path / "local")


def test_shipped_comparisons_begin_from_nothing() -> None:
    for name in set(shipped_experiments()) - {"quickstart"}:
        assert not any(trial.history for trial in expand(load_experiment(name)))
