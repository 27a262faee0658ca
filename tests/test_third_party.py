"""A package outside archgym brings an environment and an agent through entry points."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "third_party"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables under which the package is installed, away from this checkout."""
    folder = tmp_path_factory.mktemp("third_party")
    shutil.copytree(SOURCE, folder / "source")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    command += ["--target", str(folder / "site"), str(folder / "source")]
    subprocess.run(command, check=True, timeout=300)
    return {**os.environ, "PYTHONPATH": str(folder / "site")}


def archgym(arguments: list[str], env: dict[str, str], cwd: Path) -> str:
    command = [sys.executable, "-m", "archgym", *arguments]
    done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_listed_and_checked(installed: dict[str, str], tmp_path: Path) -> None:
    listed = json.loads(archgym(["list", "--json"], installed, tmp_path))
    assert "Adder-v0" in json.dumps(listed["envs"])
    assert "sweep" in json.dumps(listed["agents"])
    archgym(["check", "Adder-v0"], installed, tmp_path)


def test_runs_in_an_experiment_with_our_agents(installed: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "adder.yaml").write_text(
        "name: adder\nbudget: 40\nseeds: [0]\n"
        "environments: [{id: Adder-v0}]\nagents: [{name: sweep}, {name: random}]\n"
    )
    archgym(["run", "adder.yaml", "--local", "--out", "out"], installed, tmp_path)
    found = json.loads(archgym(["dataset", "info", "out", "--json"], installed, tmp_path))
    text = json.dumps(found)
    assert "sweep" in text
    assert "Adder-v0" in text
    # The space has 40 designs: both agents saw all of them, so both found the same best one.
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    best = {json.dumps(trial["best"]["design"], sort_keys=True) for trial in results["trials"]}
    assert len(best) == 1
