"""A folder that somebody sent: a small run, what can be put into it, and commands run in it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from archgym.experiment import RunOptions, run_experiment
from tests.experiment.experiments import small

COMMAND = (sys.executable, "-P", "-c", "from archgym.cli import main; main()")
"""The ``archgym`` command, as its script starts it: without the working folder as a place of
modules."""
LIMIT_S = 600


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def received_run(folder: Path) -> Path:
    """A run as its sender made it: two agents, two seeds, two goals."""
    experiment = small(
        environments=[
            {
                "id": "Conformance-v0",
                "space": "finite",
                "objective": {"minimize": ["access_ns", "energy_pj"]},
            }
        ]
    )
    run_experiment(experiment, folder, RunOptions(local=True, quiet=True))
    return folder


def called(
    arguments: Sequence[str | Path], folder: Path, *, limit_s: float = LIMIT_S, **variables: str
) -> Ended:
    """Runs the command in a folder, in a process of its own."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "COLUMNS": "120", **variables},
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=limit_s,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)
