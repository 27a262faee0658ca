"""Experiments that name a YAML file beside them: every command finds it from any folder."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from archgym.experiment import load_experiment
from tests.cli.conftest import Called, call  # noqa: F401 - a fixture
from tests.declared.conftest import QUEUE

EXPERIMENT = """
name: beside
budget: 3
environments:
  - {id: sims/queue.yaml}
agents:
  - {name: random}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "project" / "sims").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "project" / "sims" / "queue.yaml").write_text(QUEUE)
    (tmp_path / "project" / "search.yaml").write_text(EXPERIMENT)
    return tmp_path / "project"


def test_a_run_is_resumed_from_another_folder(
    project: Path,
    call: Callable[..., Called],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(project.parent)
    assert call("run", "project/search.yaml", "--local", "--out", "found").code == 0
    (trial,) = json.loads(Path("found/trials.json").read_text(encoding="utf-8"))
    assert trial["environment"] == "project/sims/queue.yaml"
    monkeypatch.chdir(project.parent / "elsewhere")
    again = ("run", "../project/search.yaml", "--local", "--resume", "--out", "../found")
    resumed = call(*again, "--set", "budget=5")
    assert resumed.code == 0, resumed.err
    (trial,) = json.loads(Path("../found/trials.json").read_text(encoding="utf-8"))
    assert (trial["budget"], trial["environment"]) == (5, str(project / "sims" / "queue.yaml"))
    best = call("best", "../found", "--json")
    command = json.loads(best.out)[0]["best"]["command"].split()
    assert call(*command[1:]).code == 0


def test_a_worker_finds_the_file_of_the_search(
    project: Path,
    call: Callable[..., Called],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = project.parent / "found"
    worker = subprocess.Popen(
        [sys.executable, "-m", "archgym", "worker", str(found), "--max-wait", "60", "--quiet"],
        cwd=project.parent,
    )
    try:
        monkeypatch.chdir(project.parent)
        simulation = "simulation={executor: workers}"
        ran = call("run", "project/search.yaml", "--local", "--out", "found", "--set", simulation)
        assert ran.code == 0, ran.err
    finally:
        worker.kill()
        worker.wait()


def test_a_file_that_is_not_beside_is_found_from_the_working_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    (project / "experiments").mkdir()
    (project / "experiments" / "search.yaml").write_text(EXPERIMENT)
    (entry,) = load_experiment("experiments/search.yaml").environments
    assert entry.id == "sims/queue.yaml"
