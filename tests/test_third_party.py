"""A package outside archgym adds an environment, an agent and commands by entry points."""

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
    path = [str(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


def archgym(arguments: list[str], env: dict[str, str], cwd: Path) -> str:
    return called(arguments, env, cwd).stdout


def called(
    arguments: list[str], env: dict[str, str], cwd: Path
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "archgym", *arguments]
    done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done


def test_adds_commands(installed: dict[str, str], tmp_path: Path) -> None:
    assert archgym(["adder", "blocks", "8"], installed, tmp_path) == "8\n"
    assert archgym(["delay", "8"], installed, tmp_path) == "1.140\n"
    helped = archgym(["--help"], installed, tmp_path)
    assert "Look into adders." in helped
    assert "Print the delay of a 64-bit adder, ns." in helped


def test_a_command_that_cannot_be_added_is_named(installed: dict[str, str], tmp_path: Path) -> None:
    done = called(["list", "agents", "--json"], installed, tmp_path)
    assert "sweep" in done.stdout  # ours, not theirs of the same name
    gone, taken = sorted(done.stderr.splitlines())
    assert taken.startswith("the command list of archgym_example.cli:delay is left out: ")
    assert gone.startswith("the command gone of archgym_example.cli:gone is left out: ")


@pytest.mark.full
def test_listed_and_checked(installed: dict[str, str], tmp_path: Path) -> None:
    listed = json.loads(archgym(["list", "--json"], installed, tmp_path))
    assert "Adder-v0" in json.dumps(listed["envs"])
    assert "sweep" in json.dumps(listed["agents"])
    archgym(["check", "Adder-v0"], installed, tmp_path)


@pytest.mark.full
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
