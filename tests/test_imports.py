from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

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
