"""What the runner's tests share: small experiments, the command line, and comparing two runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from archgym.data import Dataset, equal_trajectories
from archgym.data.journal import with_checksum
from archgym.experiment import Experiment, read_experiment

HELPERS = "tests.experiment.runner_helpers"
TIMING = ("seconds", "wall_s", "resumed", "runner", "versions")


def mapping(**changes: Any) -> dict[str, Any]:
    """An experiment of four trials that takes well under a second, as plain searches would be."""
    return {
        "name": "small",
        "baseline_first": False,
        "budget": 12,
        "seeds": 2,
        "environments": [{"id": "Conformance-v0", "space": "finite"}],
        "agents": [{"name": "random"}, {"name": "ga", "hyperparameters": {"population_size": 4}}],
        **changes,
    }


def small(**changes: Any) -> Experiment:
    return read_experiment(mapping(**changes))


def written(folder: Path, **changes: Any) -> Path:
    """The experiment as a file."""
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(mapping(**changes)))
    return path


def write_log(path: Path, lines: Sequence[dict[str, Any]]) -> None:
    """Writes a log of trials with the checksums that these lines would have."""
    before, texts = 0, []
    for line in lines:
        text, before = with_checksum({k: v for k, v in line.items() if k != "crc"}, before)
        texts.append(text)
    path.write_bytes(b"".join(texts))


def slow(folder: Path, **changes: Any) -> Path:
    """An experiment of four trials that takes some seconds, for killing."""
    settings = {
        "budget": 80,
        "seeds": 2,
        "environments": [{"id": f"{HELPERS}:Slow", "arguments": {"seconds": 0.005}}],
        "agents": [{"name": f"{HELPERS}:Diary"}, {"name": "ga"}],
    }
    return written(folder, **{**settings, **changes})


def start(*arguments: str | Path, **variables: str) -> subprocess.Popen[str]:
    """The archgym command in a process of its own."""
    command = [sys.executable, "-m", "archgym", *map(str, arguments)]
    return subprocess.Popen(
        command,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def archgym(*arguments: str | Path, limit_s: float = 300) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the archgym command, which is ended after a time."""
    process = start(*arguments)
    try:
        out, err = process.communicate(timeout=limit_s)
    finally:
        process.kill()
    return process.returncode, out, err


def results(run: Path) -> Any:
    """results.json without what may differ between equal runs."""
    return _without_timing(json.loads((run / "results.json").read_text()))


def assert_equal_runs(left: Path, right: Path) -> None:
    assert results(left) == results(right)
    names = sorted(path.name for path in (left / "datasets").iterdir())
    assert names == sorted(path.name for path in (right / "datasets").iterdir())
    for name in names:
        mine, theirs = (Dataset(run / "datasets" / name).evaluations() for run in (left, right))
        assert equal_trajectories(mine, theirs)


def _without_timing(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _without_timing(v) for key, v in data.items() if key not in TIMING}
    return [_without_timing(v) for v in data] if isinstance(data, list) else data
