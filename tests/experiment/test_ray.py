"""Through Ray: the same trials, the same result, and a quiet terminal."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from archgym.data import Dataset
from archgym.errors import ExperimentError
from archgym.experiment import RunOptions, expand, run_experiment
from archgym.experiment.folder.lock import locked
from archgym.experiment.folder.run_folder import RunFolder
from archgym.experiment.run import ray_tune
from archgym.experiment.run.context import RunContext
from archgym.experiment.run.ray_trainable import TuneBatch, write_batches
from archgym.experiment.run.trial_batches import TrialBatch
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

CHANGES = {
    "budget": 40,
    "seeds": 3,
    "environments": [
        {"id": "Conformance-v0", "space": "finite"},
        {
            "id": f"{HELPERS}:Slow",
            "arguments": {"seconds": 0.01},
            "objective": {"minimize": ["time_ns", "area_um2"]},
        },
    ],
    "agents": [
        {"name": "random"},
        {"name": "ga", "hyperparameters": {"population_size": {"integer": [2, 12]}}, "samples": 2},
        {"name": f"{HELPERS}:Failing"},
    ],
}


@pytest.fixture(scope="module")
def through_ray(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str, str]:
    folder = tmp_path_factory.mktemp("ray")
    experiment = written(folder, **CHANGES)
    code, out, err = archgym("run", experiment, "--out", folder / "run", "--cpus", "2")
    return folder / "run", code, out, err


@pytest.mark.full
def test_gives_the_trajectories_of_a_local_run(
    through_ray: tuple[Path, int, str, str], tmp_path: Path
) -> None:
    run, _, _, err = through_ray
    run_experiment(small(**CHANGES), tmp_path / "local", RunOptions(local=True, quiet=True))
    assert (run / "results.json").exists(), err
    assert_equal_runs(tmp_path / "local", run)


@pytest.mark.full
def test_a_failing_trial_does_not_stop_the_rest(through_ray: tuple[Path, int, str, str]) -> None:
    run, code, out, _ = through_ray
    assert code == 1
    failed = [trial for trial in results(run)["trials"] if trial["state"] == "failed"]
    assert [trial["error"] for trial in failed] == ["RuntimeError: odd seeds fail"] * 2
    assert out.count("RuntimeError: odd seeds fail") == 1  # both failed alike
    assert len(list((run / "errors").iterdir())) == 2
    states = [trial["state"] for trial in results(run)["trials"]]
    assert states.count("finished") == len(states) - 2 == 22


@pytest.mark.full
def test_leaves_the_terminal_quiet(through_ray: tuple[Path, int, str, str]) -> None:
    run, _, out, err = through_ray
    assert out.startswith("archgym ")
    assert all(" trials done, " in line for line in err.splitlines()), err
    assert "Warning" not in out + err
    assert json.loads((run / "results.json").read_text())["runner"] == "ray"


@pytest.mark.full
def test_leaves_a_sealed_dataset(through_ray: tuple[Path, int, str, str]) -> None:
    run = through_ray[0]
    for name in ("Conformance-v0", "Slow"):
        dataset = Dataset(run / "datasets" / name)
        assert not list((dataset.directory / "journal").iterdir())
        assert not [s for s in dataset.trials()["state"].to_pylist() if s == "running"]


@pytest.mark.full
def test_asked_to_end_it_says_how_to_go_on_and_nothing_else(tmp_path: Path) -> None:
    experiment, out = slow(tmp_path, budget=4000, seeds=1), tmp_path / "run"
    process = start("run", experiment, "--out", out, "--cpus", "2")
    for _ in range(1200):
        if list(out.glob("datasets/*/journal/*")):
            break
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM, err
    *before, stopped, command = err.splitlines()
    assert all(" trials done, " in line for line in before), err
    assert stopped == "Stopped. What was evaluated is kept; go on with:"
    assert command == f"  archgym run {experiment} --out {out} --cpus 2 --resume"
    dataset = Dataset(out / "datasets" / "Slow")
    assert list((dataset.directory / "journal").iterdir()) == []  # sealed
    assert dataset.evaluations().num_rows > 0


def test_says_that_ray_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="Ray Client"):
        run_experiment(small(), tmp_path / "a", RunOptions(address="ray://host:10001", quiet=True))
    with pytest.raises(ExperimentError, match=r"cannot join the Ray cluster at '127.0.0.1:1'"):
        run_experiment(small(), tmp_path / "b", RunOptions(address="127.0.0.1:1", quiet=True))
    with pytest.raises(ExperimentError, match="allowed is auto or HOST:PORT"):
        run_experiment(small(), tmp_path / "c", RunOptions(address="cluster", quiet=True))
    assert not list(RunFolder(tmp_path / "b").datasets.glob("*"))


def test_a_batch_begins_with_its_first_step(tmp_path: Path) -> None:
    """Tune sets a batch up in two processes now and then, and uses one: it must not run twice."""
    trials = expand(small(budget=5))[:2]
    folder = RunFolder(tmp_path / "run")
    with locked(folder) as run_id:
        batch = TrialBatch("0", tuple(trials))
        files = write_batches([batch], RunContext(folder, run_id))
        task = {"files": str(files), "batch": "0", "working_directory": os.getcwd()}
        idle, used = (TuneBatch.__new__(TuneBatch) for _ in range(2))
        for actor in (idle, used):
            actor.setup(task)
        reports = [used.step()]
        while not reports[-1]["done"]:
            reports.append(used.step())
        assert idle.reset_config(task)
    news = [event for report in reports for event in json.loads(report["news"])]
    ended = [event[1:] for event in news if event[0] == "ended"]
    assert ended == [[trial.trial_id, "finished"] for trial in trials]
    assert Dataset(folder.datasets / trials[0].dataset).evaluations().num_rows == 10


def test_more_workers_than_cores_are_refused_before_ray_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    def start(**arguments: object) -> None:
        raise AssertionError("Ray was started")

    monkeypatch.setattr(ray, "init", start)
    log = tmp_path / "log"
    environment = {"id": f"{HELPERS}:Uneven", "arguments": {"log": str(log)}}
    many = small(environments=[environment], simulation={"workers": 100_000})
    for cpus in (None, 4):
        refused = "workers cannot be 100000: Ray offers .* run without Ray by --local"
        with pytest.raises(ExperimentError, match=refused):
            run_experiment(many, tmp_path / f"run-{cpus}", RunOptions(cpus=cpus, quiet=True))
    assert not log.exists(), "the baseline was simulated before"


@pytest.mark.full
def test_a_relative_path_is_from_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.trace").write_text("".join(f"{9 * i} R 0x{64 * i:x}\n" for i in range(100)))
    monkeypatch.chdir(tmp_path)
    dram = {"id": "DRAM-v0", "workload": "./mine.trace"}
    changes = {"budget": 5, "seeds": 1, "environments": [dram], "agents": [{"name": "random"}]}
    run_experiment(small(**changes), tmp_path / "local", RunOptions(local=True, quiet=True))
    code, _, err = archgym("run", written(tmp_path, **changes), "--out", "through_ray", "-q")
    assert code == 0, err
    assert_equal_runs(tmp_path / "local", tmp_path / "through_ray")


@pytest.mark.nightly
def test_a_cluster(tmp_path: Path) -> None:
    """A second Ray node on this machine stands for a cluster."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        cluster.add_node(num_cpus=1)
        options = ("--address", cluster.address, "--quiet")
        code, _, err = archgym("run", written(tmp_path), "--out", tmp_path / "run", *options)
        assert code == 0, err
        needy = ("--set", "resources.cpus_per_trial=7", "--out", tmp_path / "needy")
        code, _, err = archgym("run", written(tmp_path), *needy, *options)
        assert code == 2
        assert "cpus_per_trial cannot be 7: the largest node that Ray has offers 1 CPUs" in err
    finally:
        cluster.shutdown()  # type: ignore[no-untyped-call]
    run_experiment(small(), tmp_path / "local", RunOptions(local=True, quiet=True))
    assert_equal_runs(tmp_path / "local", tmp_path / "run")


@pytest.mark.nightly
def test_batches_spread_over_ray_actors(tmp_path: Path) -> None:
    changes = {
        "budget": 60,
        "seeds": 1,
        "environments": [{"id": f"{HELPERS}:Moody", "arguments": {"dies": True}}],
        "agents": [{"name": "ga"}],
        "simulation": {"workers": 1, "time_limit_s": 60, "cache": str(tmp_path / "cache.sqlite")},
    }
    code, _, err = archgym(
        "run", written(tmp_path, **changes), "--out", tmp_path / "run", "--cpus", "2", "-q"
    )
    assert code == 0, err
    run_experiment(small(**changes), tmp_path / "local", RunOptions(local=True, quiet=True))
    assert_equal_runs(tmp_path / "local", tmp_path / "run")
    needy = written(tmp_path, **{**changes, "simulation": {"workers": 9}})
    code, _, err = archgym("run", needy, "--out", tmp_path / "needy", "--cpus", "2", "-q")
    assert code == 2
    assert "simulation.workers cannot be 9" in err


@pytest.mark.nightly
def test_actors_with_named_resources_keep_busy(tmp_path: Path) -> None:
    from ray.cluster_utils import Cluster

    changes = {
        "budget": 30,
        "seeds": 1,
        "environments": [{"id": f"{HELPERS}:Uneven", "arguments": {"pace": 0.01}}],
        "agents": [{"name": "local"}],
        "simulation": {"workers": 2, "cpus": 0.5, "resources": {"licence": 1}},
    }
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 2, "resources": {"licence": 2}}
    )
    try:
        options = ("--address", cluster.address, "--quiet", "--storage", tmp_path / "storage")
        code, _, err = archgym(
            "run", written(tmp_path, **changes), "--out", tmp_path / "run", *options
        )
        needy = {**changes, "simulation": {"workers": 2, "cpus": 0.5, "resources": {"licence": 2}}}
        refused, _, why = archgym(
            "run", written(tmp_path, **needy), "--out", tmp_path / "needy", *options
        )
    finally:
        cluster.shutdown()  # type: ignore[no-untyped-call]
    assert code == 0, err
    assert refused == 2
    assert "each needs 2 of 'licence', of which Ray offers 2 in all" in why
    rows = Dataset(tmp_path / "run" / "datasets" / "Uneven").evaluations().to_pylist()
    simulated = [row for row in rows if row["worker"]]
    assert len(simulated) >= 30
    assert len({row["worker"] for row in simulated}) == 2
    assert [row["proposal"] for row in rows] != sorted(row["proposal"] for row in rows)


@pytest.mark.nightly
def test_a_node_is_lost(tmp_path: Path) -> None:
    """Its batches go on at the other node, with the rows that they had."""
    from ray.cluster_utils import Cluster

    experiment = slow(tmp_path, budget=300, seeds=3)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        node = cluster.add_node(num_cpus=1)
        options = ("--address", cluster.address, "--quiet", "--storage", tmp_path / "storage")
        process = start("run", experiment, "--out", tmp_path / "run", *options)
        journals = tmp_path / "run" / "datasets" / "Slow" / "journal"
        while process.poll() is None and len(list(journals.glob("*.jsonl"))) < 2:
            time.sleep(0.05)
        cluster.remove_node(node)
        _, err = process.communicate(timeout=500)
        assert process.returncode == 0, err
    finally:
        cluster.shutdown()  # type: ignore[no-untyped-call]
    assert list((tmp_path / "storage").iterdir())
    begun = [
        json.loads(line)["begin"]
        for path in (tmp_path / "run" / "log").iterdir()
        for line in path.read_text().splitlines()
        if "begin" in json.loads(line)
    ]
    assert len(begun) > len(set(begun))  # some trial was begun twice
    code, _, err = archgym("run", experiment, "--local", "--out", tmp_path / "local", "-q")
    assert code == 0, err
    assert_equal_runs(tmp_path / "local", tmp_path / "run")


@pytest.mark.full
def test_batches_that_cannot_go_on_are_an_error_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_one_badly(batches: Sequence[TrialBatch], context: RunContext) -> Path:
        files = write_batches(batches, context)
        # As a worker reads it that has another version of archgym.
        (files / f"{batches[0].name}.json").write_text('{"later": 1}')
        return files

    monkeypatch.setattr(ray_tune, "write_batches", write_one_badly)
    experiment = small(seeds=4)
    reason = r"1 of 8 batches could not go on: KeyError: 'trials'.*--resume goes on"
    with pytest.raises(ExperimentError, match=reason):
        run_experiment(experiment, tmp_path / "run", RunOptions(quiet=True, cpus=2))
    monkeypatch.undo()
    result = run_experiment(experiment, tmp_path / "run", RunOptions(quiet=True, resume=True))
    assert len(result.trials) == len(expand(experiment))
    assert {trial["state"] for trial in results(tmp_path / "run")["trials"]} == {"finished"}
