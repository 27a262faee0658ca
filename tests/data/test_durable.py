"""When rows are on disk, and not only in the memory of the operating system."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import archgym
from archgym.data import Dataset
from archgym.errors import ArchgymError, DatasetError
from archgym.experiment import (
    RunOptions,
    environment_with_workers,
    read_experiment,
    run_experiment,
)
from archgym.registry import make_agent
from archgym.space import Designs
from tests.experiment.experiments import small
from tests.helpers import Adder


class Disk:
    """What would be left after a power cut: the size of each file when it was last synced."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: dict[str, int] = {}
        self.folders: set[str] = set()
        self.journal_syncs = 0
        fsync = os.fsync

        def noted(handle: int) -> None:
            fsync(handle)
            path = os.readlink(f"/proc/self/fd/{handle}")
            if os.path.isdir(path):
                self.folders.add(path)
            else:
                self.sizes[path] = os.fstat(handle).st_size
                self.journal_syncs += path.endswith(".jsonl")

        monkeypatch.setattr(os, "fsync", noted)
        monkeypatch.setattr(
            "archgym.data.journal.writing.SYNC_S", 1000.0
        )  # only what is waited for

    def rows(self, dataset: Path) -> int:
        """Rows of a dataset that are on disk."""
        found = 0
        for path in (dataset / "journal").glob("*.jsonl"):
            lines = path.read_bytes()[: self.sizes.get(str(path.resolve()), 0)].splitlines()
            found += sum(isinstance(json.loads(line), list) for line in lines)
        return found


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


class Timed(Adder):
    """Says that each simulation took some seconds; takes no time."""

    seconds = 0.0

    def simulate_batch(self, designs: Designs) -> list[tuple[Any, float]]:
        return [(self.simulate(design), self.seconds) for design in designs]


class Hours(Timed):
    seconds = 7200.0


def search(env: archgym.Environment, disk: Disk, folder: Path) -> list[tuple[int, int]]:
    """Rows told and rows on disk, whenever the agent learns something."""
    seen: list[tuple[int, int]] = []

    def told(outcomes: Any) -> None:
        seen.append((env.evaluator.proposals, disk.rows(folder)))

    env.on_evaluated = told
    make_agent("random", env.design_space, seed=0).search(env, budget=8)
    env.end_trial()
    return seen


@pytest.mark.parametrize(
    ("durable", "environment", "waits"),
    [
        ("always", Timed, True),
        ("auto", Hours, True),
        ("auto", Timed, False),
        ("second", Hours, False),
    ],
)
def test_rows_are_on_disk_before_the_agent_knows(
    durable: Any, environment: type[Timed], waits: bool, tmp_path: Path, disk: Disk
) -> None:
    env = environment(record=tmp_path / "data", durable=durable)
    seen = search(env, disk, tmp_path / "data")
    assert seen
    assert all(kept == (told if waits else 0) for told, kept in seen)
    folders = {str(tmp_path / "data" / "journal"), str(tmp_path / "data"), str(tmp_path)}
    assert (folders <= disk.folders) == waits
    assert disk.rows(tmp_path / "data") == seen[-1][0]  # synced when it was closed


def test_one_sync_for_a_batch(tmp_path: Path, disk: Disk) -> None:
    env = Timed(record=tmp_path, durable="always")
    designs = env.design_space.sample(500, np.random.default_rng(0))
    env.evaluate_batch(designs)
    assert disk.rows(tmp_path) == 500
    assert disk.journal_syncs == 1
    env.end_trial()


@pytest.mark.parametrize("durable", ["always", "second"])
def test_rows_of_workers(durable: str, tmp_path: Path, disk: Disk) -> None:
    settings = {"workers": 2, "clock": "simulated", "duration": 3600}
    with environment_with_workers(
        "Conformance-v0", settings, record=tmp_path, durable=durable
    ) as env:
        seen = search(env, disk, tmp_path)
    assert all(kept == (told if durable == "always" else 0) for told, kept in seen)
    if durable == "always":
        assert disk.journal_syncs < 8 + 2  # outcomes that come together are synced together


def test_a_simulated_clock_makes_no_simulation_slow(tmp_path: Path, disk: Disk) -> None:
    settings = {"workers": 2, "clock": "simulated", "duration": 3600}
    with environment_with_workers("Conformance-v0", settings, record=tmp_path) as env:
        assert {kept for _, kept in search(env, disk, tmp_path)} == {0}


def test_an_experiment_says_when(tmp_path: Path, disk: Disk) -> None:
    syncs = {}
    for durable in ("always", "second"):
        run = tmp_path / durable
        run_experiment(small(durable=durable), run, RunOptions(local=True, quiet=True))
        syncs[durable], disk.journal_syncs = disk.journal_syncs, 0
        assert {str(run / "trials.json"), str(run / "experiment.yaml")} & {
            path.replace(f".tmp-{os.getpid()}-", "") for path in disk.sizes
        }
        rows = Dataset(run / "datasets" / "Conformance-v0").evaluations().num_rows
    assert syncs["always"] >= rows / 8  # agents propose batches
    assert syncs["second"] <= 2


def test_a_disk_that_takes_nothing_ends_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = Timed(record=tmp_path, durable="always")
    env.evaluate(env.baseline)

    def broken(handle: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(DatasetError, match="Input/output error"):
            env.evaluate({**env.baseline, "x": 1})
    env.evaluate({**env.baseline, "x": 4})
    env.end_trial()
    assert Dataset(tmp_path).evaluations()["step"].to_pylist() == [0, 1, 2]


def test_words_that_are_none() -> None:
    with pytest.raises(ArchgymError, match="always"):
        Adder(durable="allways")
    with pytest.raises(ArchgymError, match="durable"):
        read_experiment({**small().to_json(), "durable": "never"})
    environments = [{"id": "Conformance-v0", "arguments": {"durable": "always"}}]
    with pytest.raises(ArchgymError, match="durable is a key of the experiment"):
        read_experiment({**small().to_json(), "environments": environments})
