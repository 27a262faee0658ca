from __future__ import annotations

import json
import os
import re
import signal
import time
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import archgym as core
from archgym.analysis.trials import read_trials
from archgym.data import Dataset
from archgym.errors import ArchgymError, ExperimentError
from archgym.evaluation.trial_info import TrialInfo
from archgym.experiment import RunOptions, RunResult, run_experiment
from archgym.experiment.folder.lock import locked, wait_for_workers, working
from archgym.experiment.folder.run_folder import RunFolder
from archgym.experiment.results.tables import run_tables
from archgym.experiment.run.progress import Counters, Progress
from archgym.experiment.spec.expand import expand
from archgym.registry import agent_class, agent_names
from tests.experiment.experiments import (
    HELPERS,
    archgym,
    assert_equal_runs,
    results,
    slow,
    small,
    start,
    written,
)

LOCAL = RunOptions(local=True, quiet=True)
RESUME = RunOptions(local=True, quiet=True, resume=True)


def run(out: Path, options: RunOptions = LOCAL, **changes: Any) -> RunResult:
    return run_experiment(small(**changes), out, options)


def test_says_who_left_budget_unspent(tmp_path: Path) -> None:
    agents = [{"name": "random"}, {"name": f"{HELPERS}:Tired"}]
    file = written(tmp_path, agents=agents)
    code, out, err = archgym("run", file, "--local", "--quiet", "--out", tmp_path / "run")
    assert code == 0, err
    (told,) = (line for line in out.splitlines() if line.startswith("early:"))
    trials = pq.read_table(tmp_path / "run" / "results" / "trials.parquet")
    (number,) = (spent for spent in trials["spent"].to_pylist() if spent < 12)  # the odd seed's
    assert told.endswith(f"Tired in 1 of 2 trials, after {number:g} simulations")
    whole = run(tmp_path / "whole")
    assert not whole.early


def test_commands_that_a_run_names_can_be_copied_where_its_folder_has_a_space(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "my run"
    objective = {"minimize": ["access_ns", "energy_pj"]}
    environment = {"id": "Conformance-v0", "space": "finite", "objective": objective}
    file = written(tmp_path, environments=[environment])
    code, out, err = archgym("run", file, "--local", "--out", folder)
    assert code == 0, err
    assert f"archgym report '{folder}' makes one page" in out
    assert f"archgym best '{folder}'" in " ".join(out.split())
    code, _, err = archgym("run", folder)
    assert code == 2
    command = f"archgym run '{folder}/experiment.yaml' --out '{folder}' --resume goes on with it"
    assert command in " ".join(err.split())


def test_leaves_datasets_results_and_a_picture(tmp_path: Path) -> None:
    result = run(tmp_path / "run")
    held = {path.name for path in (tmp_path / "run").iterdir() if not path.name.startswith(".")}
    assert held == {
        "experiment.yaml",
        "initial_designs.json",
        "checksums.json",
        "trials.json",
        "datasets",
        "results.json",
        "results",
        "log",
        "best_so_far.png",
    }
    guide = (Path(__file__).parents[2] / "docs/guides/reports.md").read_text()
    table = guide.split("## The files of a run")[1].split("\n## ")[0]
    for where, text in (("RunFolder", RunFolder.__doc__ or ""), ("docs/guides/reports.md", table)):
        missing = held - set(re.findall(r"[\w.]+", text))
        assert not missing, f"list them in {where}: {missing}"
    assert (tmp_path / "run" / "best_so_far.png").stat().st_size > 10_000
    dataset = Dataset(tmp_path / "run" / "datasets" / "Conformance-v0")
    assert dataset.trials()["state"].to_pylist() == ["finished"] * 4
    assert list((dataset.directory / "journal").iterdir()) == []
    data = json.loads((tmp_path / "run" / "results.json").read_text())
    assert data["runner"] == "local"
    assert data["versions"]["archgym"] == core.__version__
    assert [trial["trial_id"] for trial in data["trials"]] == [t.trial_id for t in result.trials]
    assert all(trial["simulations"] == 12 for trial in data["trials"])


def test_summaries_agree_with_the_searches_themselves(tmp_path: Path) -> None:
    objective = {"minimize": ["access_ns", "energy_pj"], "limits": ["area_mm2 <= 0.5"]}
    environments = [{"id": "Conformance-v0", "objective": objective}]
    result = run(tmp_path / "run", environments=environments, budget=60)
    for trial in result.trials:
        env = core.make(trial.environment, **trial.arguments)
        agent = core.make_agent(
            trial.agent,
            env.design_space,
            ["minimize"] * 2,
            seed=trial.seed,
            **trial.hyperparameters,
        )
        search = agent.search(env, trial.budget)
        summary = result.summaries[trial.trial_id]
        assert search.best is not None
        assert summary.best is not None
        assert summary.best.design == search.best.design
        assert summary.best.metrics == search.best.metrics
        assert summary.best.objectives == search.best.objectives
        assert summary.best_at == search.best_at
        assert [o.design for o in summary.front] == [o.design for o in search.front]
        counts = ("simulations", "proposals", "duplicates", "illegal")
        for name in counts:
            assert getattr(summary, name) == getattr(search, name), name
        assert len(summary.curve) == 60
        assert summary.hypervolume is not None
        assert summary.hypervolume > 0


def test_a_failing_trial_does_not_stop_the_rest(tmp_path: Path) -> None:
    agents = [{"name": f"{HELPERS}:Failing"}, {"name": "random"}]
    result = run(tmp_path / "run", agents=agents, seeds=3)
    assert list(result.failures.values()) == ["RuntimeError: odd seeds fail"]
    ((failed, _),) = result.failures.items()
    assert failed.endswith("Failing.s1")
    assert "runner_helpers.py" in (tmp_path / "run" / "errors" / f"{failed}.txt").read_text()
    states = {t["trial_id"]: (t["state"], t["error"]) for t in results(tmp_path / "run")["trials"]}
    assert states.pop(failed) == ("failed", "RuntimeError: odd seeds fail")
    assert set(states.values()) == {("finished", None)}
    # A resumed run tries it again, from what it had, and leaves no row twice.
    again = run(tmp_path / "run", RESUME, agents=agents, seeds=3)
    assert again.failures == result.failures
    assert Dataset(tmp_path / "run" / "datasets" / "Conformance-v0").logged_trial(failed)


def test_the_best_of_a_trial_that_failed_is_marked(tmp_path: Path) -> None:
    def shown(seeds: list[int]) -> str:
        agents = [{"name": f"{HELPERS}:Failing"}]
        found = run(tmp_path / f"run{seeds}", agents=agents, seeds=seeds)
        out = StringIO()
        Console(file=out, width=120).print(run_tables(found))
        return out.getvalue()

    failed, finished = shown([1]), shown([0])
    assert re.search(r" / [\d.]+\* ", failed)
    assert "*: of a trial that failed before its end" in " ".join(failed.split())
    assert "note: its trial failed before its end" in failed
    assert "*" not in finished
    assert "failed" not in finished


def test_several_environments_make_several_datasets(tmp_path: Path) -> None:
    environments = [
        {"id": "Conformance-v0"},
        {"id": f"{HELPERS}:Slow", "arguments": {"seconds": 0}},
    ]
    run(tmp_path / "run", environments=environments, seeds=1)
    names = sorted(path.name for path in (tmp_path / "run" / "datasets").iterdir())
    assert names == ["Conformance-v0", "Slow"]


FIRST = {"replacement": "fifo", "size_kb": 4, "ways": 3, "prefetch": False}


def first_designs(folder: Path, n: int) -> list[dict[str, Any]]:
    rows = Dataset(folder / "datasets" / "Conformance-v0").evaluations().slice(0, n).to_pylist()
    return [{name: row[f"param.{name}"] for name in FIRST} for row in rows]


def test_the_baseline_comes_first_and_then_initial_designs(tmp_path: Path) -> None:
    baseline = core.make("Conformance-v0").baseline_design
    environments = [{"id": "Conformance-v0", "space": "finite", "initial": [FIRST]}]
    run(tmp_path / "run", environments=environments, seeds=1, baseline_first=True)
    assert first_designs(tmp_path / "run", 2) == [{k: baseline[k] for k in FIRST}, FIRST]
    run(tmp_path / "cold", environments=environments, seeds=1)
    assert first_designs(tmp_path / "cold", 1) == [FIRST]


def test_initial_designs_from_a_file_and_from_earlier_runs(tmp_path: Path) -> None:
    table = tmp_path / "known.csv"
    table.write_text("note,param.ways,size_kb,replacement,prefetch\nx,3,4,fifo,false\n")
    files = [{"id": "Conformance-v0", "space": "finite", "initial": str(table)}]
    run(tmp_path / "csv", environments=files, seeds=1)
    assert first_designs(tmp_path / "csv", 1) == [FIRST]
    folders = [{"id": "Conformance-v0", "space": "finite", "initial": str(tmp_path / "csv")}]
    run(tmp_path / "warm", environments=folders, seeds=1, baseline_first=True)
    dataset = Dataset(tmp_path / "csv" / "datasets" / "Conformance-v0")
    best = [trial.best.reward for trial in read_trials(dataset) if trial.best]
    warm = Dataset(tmp_path / "warm" / "datasets" / "Conformance-v0").evaluations()
    assert max(warm["reward"].to_pylist()[1:3]) == pytest.approx(max(best))
    # A resumed run goes on with the designs that it began with, whatever the file holds by now.
    table.write_text("ways,size_kb,replacement,prefetch\n5,8,lru,true\n")
    run(tmp_path / "csv", RESUME, environments=files, seeds=2)
    assert first_designs(tmp_path / "csv", 1) == [FIRST]


def test_initial_designs_that_the_embedded_model_predicts(tmp_path: Path) -> None:
    table = {"id": "GPUKernel-v0", "simulator": "tabular:gpu-norm-2048", "initial": "predicted"}
    agents = [{"name": "random"}]
    run(tmp_path / "run", environments=[table], agents=agents, seeds=1, budget=12)
    env = core.make("GPUKernel-v0", simulator="tabular:gpu-norm-2048")
    wanted = env.predicted_designs()
    rows = Dataset(tmp_path / "run" / "datasets" / "GPUKernel-v0").evaluations().to_pylist()
    found = [{name: row[f"param.{name}"] for name in env.design_space.names} for row in rows]
    assert found[: len(wanted)] == wanted
    own = [{"id": "Conformance-v0", "space": "finite", "initial": "predicted"}]
    with pytest.raises(ArchgymError, match=r"environments\[0\].initial.*the one that is searched"):
        run(tmp_path / "none", environments=own)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size_kb,ways\n4,99\n", "line 2.*ways"),
        ("size,banks\n4,9\n", "no column is a parameter"),
        (None, "there is no file or folder"),
    ],
)
def test_initial_designs_that_cannot_be_used(
    tmp_path: Path, text: str | None, message: str
) -> None:
    table = tmp_path / "known.csv"
    if text:
        table.write_text(text)
    with pytest.raises(ArchgymError, match=message):
        run(
            tmp_path / "run",
            environments=[{"id": "Conformance-v0", "space": "finite", "initial": str(table)}],
        )
    assert not (tmp_path / "run").exists()


def test_existing_folders(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    run(empty)
    before = results(empty)
    with pytest.raises(ExperimentError, match="exists already: go on with its run by --resume"):
        run(empty)
    run(empty, RESUME)
    assert results(empty) == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").touch()
    with pytest.raises(ExperimentError, match="holds no run to resume"):
        run(tmp_path / "other", RESUME)
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["thesis.txt"]


def test_resume_starts_afresh_where_there_is_nothing(tmp_path: Path) -> None:
    run(tmp_path / "deep" / "down", RESUME)
    run(tmp_path / "plain")
    assert_equal_runs(tmp_path / "deep" / "down", tmp_path / "plain")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": 11}, "budget was 12 there and is 11 now"),
        ({"seeds": [0, 2]}, "seeds was 2 there and is [0, 2] now"),
        ({"agents": [{"name": "sa"}]}, "agents was"),
        (
            {"environments": [{"id": "Conformance-v0"}]},
            "environments[0].space was 'finite' there and is left out now",
        ),
    ],
)
def test_resume_refuses_another_experiment(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    run(tmp_path / "run", seeds=2)
    with pytest.raises(ExperimentError) as caught:
        run(tmp_path / "run", RESUME, **changes)
    assert message in str(caught.value)


def test_resume_runs_what_was_added(tmp_path: Path) -> None:
    agents = [{"name": "random"}, {"name": "ga", "hyperparameters": {"population_size": 4}}]
    run(tmp_path / "run", seeds=1, agents=agents[1:])
    (dataset,) = (tmp_path / "run" / "datasets").iterdir()
    (old,) = (dataset / "evaluations").glob("*.parquet")
    before = old.read_bytes()
    more: dict[str, Any] = {"seeds": 3, "agents": agents}
    run(tmp_path / "run", RESUME, **more)
    run(tmp_path / "whole", **more)
    assert_equal_runs(tmp_path / "run", tmp_path / "whole")
    assert old.read_bytes() == before
    with pytest.raises(ExperimentError, match="seeds was 3 there and is left out now"):
        run(tmp_path / "run", RESUME, **{**more, "seeds": 1})


QUICK = [{"name": n} for n in ("random", "sobol", "ga", "aco", "sa", "local", "nsga2", "hyperband")]


@pytest.mark.parametrize(
    "agents",
    [
        QUICK,
        pytest.param(
            [{"name": name} for name in agent_names() if not agent_class(name).plans_by_budget],
            marks=pytest.mark.nightly,
        ),
    ],
    ids=["quick", "all"],
)
def test_finished_trials_go_on_with_more_budget(
    tmp_path: Path, agents: list[dict[str, Any]]
) -> None:
    run(tmp_path / "run", agents=agents, budget=10)
    run(tmp_path / "run", RESUME, agents=agents, budget=35)
    run(tmp_path / "whole", agents=agents, budget=35)
    assert_equal_runs(tmp_path / "run", tmp_path / "whole")
    (dataset,) = (tmp_path / "run" / "datasets").iterdir()
    assert set(Dataset(dataset).trials()["budget"].to_pylist()) == {35}
    again = results(tmp_path / "run")
    run(tmp_path / "run", RESUME, agents=agents, budget=35)
    assert results(tmp_path / "run") == again


def test_trials_that_plan_by_their_budget_do_not_go_on(tmp_path: Path) -> None:
    agents = [{"name": "staged", "hyperparameters": {"first": "ways, size_kb"}}]
    run(tmp_path / "run", agents=agents, budget=10)
    before = results(tmp_path / "run")
    with pytest.raises(ExperimentError, match="budget: agent 'staged' plans by its budget"):
        run(tmp_path / "run", RESUME, agents=agents, budget=20)
    assert results(tmp_path / "run") == before


def test_a_shard_does_not_add_to_a_run(tmp_path: Path) -> None:
    half = RunOptions(local=True, quiet=True, shard=(1, 2))
    run(tmp_path / "run", half, seeds=2)
    other = RunOptions(local=True, quiet=True, shard=(2, 2))
    with pytest.raises(ExperimentError, match=r"seeds was 2 there and is 3 now; .* other shards"):
        run(tmp_path / "run", other, seeds=3)


def test_resume_does_not_mind_resources_and_descriptions(tmp_path: Path) -> None:
    run(tmp_path / "run")
    run(tmp_path / "run", RESUME, description="twice", resources={"max_concurrent": 1})


def test_resume_refuses_a_changed_simulator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "run")
    cls = type(core.make("Conformance-v0"))
    monkeypatch.setattr(cls, "version", "2")
    with pytest.raises(ExperimentError, match="the simulators differ"):
        run(tmp_path / "run", RESUME)


@pytest.mark.parametrize("place", ["/proc/archgym", "/dev/null/x", "file/below"])
def test_says_that_a_folder_cannot_be_written(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ExperimentError, match=r"cannot write to the output folder|is a file"):
        run(tmp_path / place)


def test_nothing_is_written_when_anything_is_wrong(tmp_path: Path) -> None:
    wrong: list[dict[str, Any]] = [
        {"agents": [{"name": "rnadom"}]},
        {"agents": [{"name": "ga", "hyperparameters": {"population_size": [4, 1]}}]},
        {"agents": [{"name": "ga", "hyperparameters": {"popsize": 4}}]},
        {"environments": [{"id": "Conformance-v0", "space": "finite", "initial": [{"ways": 99}]}]},
        {"environments": [{"id": "Conformance-v1"}]},
        {"environments": [{"id": "Conformance-v0", "workload": "x"}]},
        {"environments": [{"id": "Conformance-v0", "space": "finit"}]},
        {"environments": [{"id": "Conformance-v0", "fixed": {"ways": 77}}]},
        {"environments": [{"id": "Conformance-v0", "fixed": {"wys": 7}}]},
        {"environments": [{"id": "Conformance-v0", "objective": "minimize acces_ns"}]},
        {"environments": [{"id": "Conformance-v0", "objective": {"limits": ["hit_rate"]}}]},
        {"environments": [{"id": "Conformance-v0", "simulator": "gem5"}]},
        {"environments": [{"id": "Conformance-v0", "arguments": {"memory": 3}}]},
        {"environments": [{"id": "nowhere:Class"}]},
        {"environments": [{"id": f"{HELPERS}:Slow", "arguments": {"seconds": "long"}}]},
    ]
    for changes in wrong:
        with pytest.raises(ArchgymError) as caught:
            run(tmp_path / "run", **changes)
        assert re.match(r"(agents|environments)\[0\]|agent 'ga' on", str(caught.value)), changes
        assert not (tmp_path / "run").exists()


def test_a_run_that_is_refused_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise ExperimentError("there are too few CPUs")

    mine = tmp_path / "mine"
    mine.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr("archgym.experiment.run.run._run", refuse)
        for folder in (tmp_path / "run", mine):
            with pytest.raises(ExperimentError, match="too few CPUs"):
                run(folder)
    assert not (tmp_path / "run").exists()
    assert list(mine.iterdir()) == []
    run(mine, budget=5)
    before = results(mine)
    monkeypatch.setattr("archgym.experiment.run.run._run", refuse)
    with pytest.raises(ExperimentError, match="too few CPUs"):
        run(mine, RESUME, budget=5)
    assert results(mine) == before, "what was there before stays"


def test_a_run_that_was_killed_before_its_first_trial_is_none(tmp_path: Path) -> None:
    experiment = small()
    folder = RunFolder(tmp_path / "run")
    folder.prepare(experiment, expand(experiment), {})
    folder.write(folder.ray / "batches-0" / "0.json", "{}")
    run(folder.path, budget=5)
    assert {trial.budget for trial in folder.trials()} == {5}
    with pytest.raises(ExperimentError, match="exists already"):
        run(folder.path, budget=5)


def test_two_runs_do_not_write_at_once(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with locked(folder), pytest.raises(ExperimentError, match="another run is writing"):
        run(tmp_path / "run", RESUME)
    run(tmp_path / "run", RESUME)


def test_a_worker_of_an_earlier_run_is_waited_for_and_kept_out(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with locked(folder) as run_id:
        with working(folder, run_id), pytest.raises(ExperimentError, match="worker processes"):
            wait_for_workers(folder, seconds=0.2)
        wait_for_workers(folder, seconds=0.2)
    with (
        locked(folder),
        pytest.raises(ExperimentError, match="is over"),
        working(folder, run_id),
    ):
        pass


def test_progress_in_a_log_is_plain_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archgym.experiment.run.progress._LINE_EVERY_S", 0.05)
    environments = [{"id": f"{HELPERS}:Slow"}]
    text = StringIO()
    run_experiment(
        small(environments=environments, budget=40),
        tmp_path / "run",
        RunOptions(local=True),
        Console(file=text, width=60),
    )
    lines = text.getvalue().splitlines()
    assert lines
    assert "\x1b" not in text.getvalue()
    pattern = r"\d of 4 trials done, \d running, [\d,]+ evaluations/[sh], 0:0\d elapsed"
    assert all(re.match(pattern, line) for line in lines), lines
    assert any(re.search(r"best Slow: [\d.]+ ns", line) for line in lines), lines


def test_progress_tells_the_time_left_only_from_enough_designs() -> None:
    now, *_ = trials = expand(small())
    env = core.make("Conformance-v0")
    progress = Progress(trials, {trial.setting: (env.objective, env.metrics) for trial in trials})
    progress.started(now.trial_id)
    progress.counted(now.trial_id, Counters(1, 1, (2.0,), 1 / 12))
    assert "left" not in progress.line(), "one design is too few to tell"
    progress.counted(now.trial_id, Counters(12, 12, (2.0,), 1.0))
    assert "left" in progress.line()


def test_time_elapsed_includes_the_start_of_ray_and_time_left_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = [1000.0]
    monkeypatch.setattr(time, "perf_counter", lambda: seconds[0])
    now, *_ = trials = expand(small())
    env = core.make("Conformance-v0")
    progress = Progress(trials, {trial.setting: (env.objective, env.metrics) for trial in trials})
    seconds[0] += 60
    progress.started(now.trial_id)
    seconds[0] += 10
    progress.counted(now.trial_id, Counters(12, 12, (2.0,), 1.0))  # one of four trials
    assert "1:10 elapsed, 0:30 left" in progress.line()


def test_progress_shows_the_rate_of_a_slow_simulator_by_the_hour() -> None:
    now, *_ = trials = expand(small())
    env = core.make("Conformance-v0")
    progress = Progress(trials, {trial.setting: (env.objective, env.metrics) for trial in trials})
    progress.started(now.trial_id)
    progress.line()
    time.sleep(0.2)
    progress.counted(now.trial_id, Counters(1, 1, (2.0,), 1 / 12))
    found = re.search(r"([\d,]+) evaluations/h", progress.line())
    assert found
    assert 0 < int(found[1].replace(",", "")) <= 3600 / 0.2


@pytest.mark.parametrize("finished", [True, False])
def test_progress_of_a_resumed_run_begins_with_what_was_found_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finished: bool
) -> None:
    """Of trials that had finished, and of one that was interrupted."""
    objective = {"minimize": "access_ns", "limits": ["energy_pj <= 40"]}
    experiment = small(environments=[{"id": "Conformance-v0", "objective": objective}])
    (first, *_), folder = expand(experiment), RunFolder(tmp_path / "run")
    folder.prepare(experiment, expand(experiment), {})
    env = core.make(first.environment, **first.arguments, record=folder.datasets / first.dataset)
    env.start_trial(TrialInfo(trial_id=first.trial_id, agent=first.agent, seed=first.seed))
    outcomes = env.evaluate_batch(env.design_space.sample(40, np.random.default_rng(0)))
    assert not outcomes.feasible.all()
    env.end_trial("finished" if finished else "closed")
    begun: list[Progress] = []
    monkeypatch.setattr(
        "archgym.experiment.run.run._run",
        lambda *given: begun.extend(one for one in given if isinstance(one, Progress)),
    )
    run_experiment(
        experiment, folder.path, RunOptions(local=True, resume=True), Console(file=StringIO())
    )
    best = outcomes.objectives[outcomes.feasible, 0].min()
    assert f"best {first.setting}: {best:.5g} " in begun[0].line()
    begun[0].counted(expand(experiment)[-1].trial_id, Counters(1, 1, (best + 1,), 1.0))
    assert f"best {first.setting}: {best:.5g} " in begun[0].line()


def test_progress_on_a_terminal_is_live(tmp_path: Path) -> None:
    text = StringIO()
    console = Console(file=text, force_terminal=True, width=90, height=30)
    environments = [{"id": f"{HELPERS}:Slow"}]
    experiment = small(environments=environments, budget=60)
    run_experiment(experiment, tmp_path / "run", RunOptions(local=True), console)
    shown = text.getvalue()
    assert "\x1b[" in shown
    for words in ("trials done", "evaluations/s", "best so far", "left"):
        assert words in shown


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_asked_to_end_it_keeps_what_there_is_and_says_how_to_go_on(
    tmp_path: Path, end: signal.Signals
) -> None:
    experiment = slow(tmp_path, budget=400)
    out = tmp_path / "run"
    process = start("run", experiment, "--local", "--out", out, "--quiet")
    for _ in range(600):
        if list(out.glob("datasets/*/journal/*")):
            break
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(end)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + end, err
    assert f"archgym run {experiment} --local --out {out} --quiet --resume" in err
    assert "Traceback" not in err
    dataset = Dataset(out / "datasets" / "Slow")
    assert list((dataset.directory / "journal").iterdir()) == []  # sealed
    assert dataset.evaluations().num_rows > 0


def test_the_command_line_runs_and_reports(tmp_path: Path) -> None:
    code, out, err = archgym("run", written(tmp_path), "--local", "--out", tmp_path / "run")
    assert code == 0, err
    assert out.startswith(
        f"archgym {core.__version__}: small, 4 trials of 12 simulations, seeds 0, 1"
    )
    for words in ("Conformance-v0", "median / best", "Best design", "best_so_far.png", "datasets/"):
        assert words in out
    failing = written(tmp_path, seeds=4, agents=[{"name": f"{HELPERS}:Failing"}])
    code, out, err = archgym("run", failing, "--local", "--out", tmp_path / "failing", "--quiet")
    assert code == 1
    assert "failed: Conformance-v0.Failing.s1 and 1 more: RuntimeError: odd seeds fail" in out
    errors = [f"Conformance-v0.Failing.s{seed}.txt" for seed in (1, 3)]
    assert sorted(os.listdir(tmp_path / "failing" / "errors")) == errors
    single = written(tmp_path, seeds=1, agents=[{"name": "random"}])
    code, out, err = archgym("run", single, "--local", "--out", tmp_path / "single")
    assert "small, 1 trial of 12 simulations, seed 0" in out
    _, _, err = archgym("report", tmp_path / "single")
    assert "1 trial on 1 problem: drawing ..." in err
    assert "Traceback" not in out + err
