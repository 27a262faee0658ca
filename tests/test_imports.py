from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from archgym.reading.short_names import SHORT_NAMES

ROOT = Path(__file__).parent.parent
HEAVY = {
    "matplotlib",
    "moocore",
    "numba",
    "optuna",
    "pandas",
    "pettingzoo",
    "pyarrow",
    "pydantic",
    "ray",
    "rich",
    "scipy",
    "skopt",
    "sklearn",
    "stable_baselines3",
    "torch",
    "typer",
    "yaml",
}


def modules_after(code: str) -> set[str]:
    show = "; import json, sys; print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    done = subprocess.run(
        [sys.executable, "-c", code + show], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    "code", ["import archgym", "import archgym; archgym.make('Conformance-v0')"]
)
def test_nothing_heavy_is_imported_before_it_is_needed(code: str) -> None:
    assert modules_after(code) & HEAVY == modules_after("import gymnasium") & HEAVY


@pytest.mark.parametrize("folder", ["envs", "agents"])
def test_the_linked_folders_cannot_be_imported_by_their_own_name(folder: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import {folder}"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert f"archgym.{folder}" in done.stderr


@pytest.mark.parametrize(("short", "full"), SHORT_NAMES.items())
def test_a_short_name_is_the_same_module(short: str, full: str) -> None:
    code = f"import sys, {short} as one, {full} as other; print(one is other, one.__spec__.name)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", full]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("archgym.simulator", "Simulator"),
        ("archgym.external", "run_program"),
        ("archgym.tabular", "table_named"),
        ("archgym.enumeration", "enumerate_space"),
        ("archgym.parallel", "ParallelView"),
        ("archgym.stepwise", "StepwiseView"),
        ("archgym.vector", "VectorView"),
        ("archgym.validation", "validate"),
        ("archgym.agreement", "Agreement"),
        ("archgym.reference", "Reference"),
        ("archgym.statistics", "compare"),
        ("archgym.problem", "DesignProblem"),
        ("archgym.agents.unseen", "Unseen"),
        ("archgym.envs.dram.formats", "read_trace"),
        ("archgym.envs.dram.trace", "Trace"),
        ("archgym.envs.accelerator.layer", "Layer"),
        ("archgym.envs.tpe.notation", "Placement"),
    ],
)
def test_documented_import_paths_hold_what_they_always_held(path: str, name: str) -> None:
    assert hasattr(importlib.import_module(path), name)


def test_short_names_are_imported_only_when_they_are_asked_for() -> None:
    code = "import archgym, sys; names = archgym.reading.short_names.SHORT_NAMES; "
    code += "print([name for name in names if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    with pytest.raises(ModuleNotFoundError, match=r"archgym\.vektor"):
        importlib.import_module("archgym.vektor")
