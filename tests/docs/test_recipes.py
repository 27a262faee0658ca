"""The recipes run as they stand, where their library is installed; nightly from nothing."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pyarrow.compute as pc
import pytest

from archgym.data import Dataset

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted((ROOT / "docs" / "guides").glob("recipes_*.md"))
_BLOCK = re.compile(
    r"^<!-- (?P<mark>[^\n]*) -->\n```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.S | re.M
)
_NOT_GIVEN = "No matching distribution|ConnectionError"
_PROGRAM_S, _INSTALL_S = 900, 1800
_QUIET = {
    "HF_HUB_OFFLINE": "1",
    "MPLBACKEND": "agg",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS": "0",
    "WANDB_SILENT": "true",
}


@dataclass(frozen=True)
class Recorded:
    """What a recipe leaves in its dataset.

    Attributes:
        modules: that must be there for the recipe to run.
        agent: that rows name.
        seed: that rows name.
        label: that rows name.
        rows: the least number of them.
    """

    modules: tuple[str, ...]
    agent: str
    seed: int | None
    label: str | None
    rows: int


EXPECTED = {
    "RL Zoo": Recorded(("rl_zoo3",), "zoo_ppo", 0, "train", 128),
    "CleanRL": Recorded(("cleanrl", "tensorboard"), "cleanrl_dqn", 1, "train", 100),
    "RLlib": Recorded(("ray.rllib", "tree"), "rllib_ppo", 0, "train", 48),
    "RLlib, several agents": Recorded(("ray.rllib", "tree"), "rllib_ippo", 0, "train", 16),
    "Tianshou": Recorded(("tianshou",), "tianshou_dqn", 0, "train", 200),
    "d3rlpy": Recorded(("d3rlpy",), "d3rlpy_sac", 0, "train", 200),
    "Optuna": Recorded(("optuna",), "optuna_tpe", 0, "train", 50),
    "Ax": Recorded(("ax",), "ax", 0, "train", 8),
    "SMAC": Recorded(("smac",), "smac", 0, "train", 40),
    "nevergrad": Recorded(("nevergrad",), "nevergrad_ngopt", 0, "train", 50),
    "pymoo": Recorded(("pymoo",), "pymoo_nsga2", 1, "train", 60),
    "Kernel Tuner": Recorded(("kernel_tuner",), "kernel_tuner", None, None, 25),
    "DuckDB": Recorded(("duckdb",), "sampler", 0, "train", 50),
    "polars": Recorded(("polars",), "ga", 0, None, 50),
    "Hugging Face datasets": Recorded(("datasets",), "ga", 0, None, 50),
    "Weights & Biases": Recorded(("wandb",), "ga", 0, None, 50),
}
_QUICK = {"Optuna"}
"""Recipes that run with the quick tests; the others take seconds, or what they install."""


@dataclass
class Recipe:
    """A section of a page."""

    name: str
    install: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    programs: list[tuple[str, str]] = field(default_factory=list)


def recipes() -> Iterator[Recipe]:
    for page in PAGES:
        for section in page.read_text("utf-8").split("\n## ")[1:]:
            recipe = Recipe(section.splitlines()[0])
            for match in _BLOCK.finditer(section):
                mark, text = match["mark"], match["text"]
                if mark == "install":
                    recipe.install += text.splitlines()
                elif mark == "recipe":
                    recipe.programs.append((match["kind"], text))
                else:
                    recipe.files[mark.removeprefix("file: ")] = text
            yield recipe


RECIPES = {recipe.name: recipe for recipe in recipes()}


def run(recipe: Recipe, python: str, folder: Path) -> None:
    """Runs the program of a recipe in a folder, as a user would."""
    environment = {**os.environ, **_QUIET, "PYTHONPATH": str(ROOT)}
    for name, text in recipe.files.items():
        (folder / name).write_text(text)
    for kind, text in recipe.programs:
        if kind == "python":
            (folder / "recipe.py").write_text(text)
            commands = [["python", "recipe.py"]]
        else:
            commands = [shlex.split(line) for line in text.splitlines()]
        for program, *arguments in commands:
            assert program == "python"
            done = subprocess.run(
                [python, *arguments],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=_PROGRAM_S,
            )
            assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"


def check(name: str, folder: Path) -> None:
    """Rows of the dataset name the library, its seed and what they are for."""
    expected, dataset = EXPECTED[name], Dataset(folder / "designs")
    trials = dataset.trials()
    rows = dataset.evaluations()
    own = trials.filter(pc.equal(trials["agent"], expected.agent))
    assert own.num_rows, trials["agent"].to_pylist()
    assert set(own["seed"].to_pylist()) == {expected.seed}
    assert expected.label in own["label"].to_pylist()
    told = pc.is_in(rows["trial_id"].cast("string"), value_set=own["trial_id"].cast("string"))
    assert rows.filter(told).num_rows >= expected.rows
    assert not any((folder / "designs" / "journal").iterdir())


def test_every_library_of_the_issue_has_a_recipe() -> None:
    assert set(RECIPES) == set(EXPECTED)
    for recipe in RECIPES.values():
        assert recipe.install, recipe.name
        assert recipe.programs, recipe.name
        for _, text in recipe.programs:
            assert len(text.splitlines()) <= 50, recipe.name


def test_installation_lines_pin_torch_as_the_constraints_do() -> None:
    constraints = (ROOT / "constraints.txt").read_text("utf-8")
    (torch,) = re.findall(r"^torch==[\d.]+$", constraints, re.M)
    for recipe in RECIPES.values():
        first = recipe.install[0]
        assert "-c constraints.txt" in first or f" {torch} " in first, recipe.name


@pytest.mark.parametrize(
    "name",
    [name if name in _QUICK else pytest.param(name, marks=pytest.mark.full) for name in RECIPES],
)
def test_recipe_runs_where_its_library_is_installed(name: str, tmp_path: Path) -> None:
    for module in EXPECTED[name].modules:
        spec = find_spec(module)
        if spec is None or spec.origin is None:  # a folder without code, such as our datasets/
            pytest.skip(f"{module} is not installed: {RECIPES[name].install[-1]}")
    run(RECIPES[name], sys.executable, tmp_path)
    check(name, tmp_path)


@pytest.mark.full
@pytest.mark.nightly
@pytest.mark.timeout(_INSTALL_S + _PROGRAM_S)
@pytest.mark.parametrize("name", RECIPES)
def test_recipe_runs_from_nothing(name: str, tmp_path: Path) -> None:
    """Only what the recipe's own lines install is there."""
    home, folder = tmp_path / "venv", tmp_path / "work"
    folder.mkdir()
    venv.create(home, with_pip=True)
    python = str(home / "bin" / "python")
    try:
        for line in RECIPES[name].install:
            program, *arguments = shlex.split(line)
            assert program == "pip"
            done = subprocess.run(
                [python, "-m", "pip", *arguments, "-q"],
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=_INSTALL_S,
            )
            if done.returncode and re.search(
                r"No matching distribution|ConnectionError", done.stderr
            ):
                pytest.skip(f"the package index does not give what {line!r} needs")
            assert done.returncode == 0, done.stderr[-6000:]
        run(RECIPES[name], python, folder)
        check(name, folder)
    finally:
        shutil.rmtree(home)
