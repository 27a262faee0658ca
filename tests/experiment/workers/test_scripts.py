"""The scripts of the page on clusters work, with a local process for each task of an array."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "clusters.md"


def block(first: str) -> str:
    """The block of the page in which a text stands."""
    blocks = re.findall(r"^```\w+\n(.*?)^```$", GUIDE.read_text("utf-8"), re.S | re.M)
    (found,) = [one for one in blocks if first in one]
    return str(found)


@pytest.mark.full
def test_the_scripts_for_slurm_run(tmp_path: Path) -> None:
    light = block("executor: workers").replace("DRAM-v0", "Conformance-v0\n    space: finite")
    (tmp_path / "cluster.yaml").write_text(light)
    (tmp_path / "workers.sh").write_text(block("#SBATCH --array"))
    (tmp_path / "search.sh").write_text(block("#SBATCH --job-name=archgym-search"))
    (tmp_path / "runs" / "cluster").mkdir(parents=True)
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "archgym").write_text(f'#!/bin/sh\nexec {sys.executable} -m archgym "$@"\n')
    (commands / "archgym").chmod(0o755)
    variables = {**os.environ, "PATH": f"{commands}:{os.environ['PATH']}"}

    def start(script: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", script, "runs/cluster"],
            cwd=tmp_path,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    jobs = [start("workers.sh"), start("workers.sh"), start("search.sh")]
    said = [job.communicate(timeout=300)[0] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0, 0], said
    assert "trials:   1 finished" in said[-1]
    simulated = [re.search(r"(\d+) designs simulated", text) for text in said[:2]]
    # And the baseline; a design that fails is tried again.
    assert sum(int(found[1]) for found in simulated if found) >= 12 + 1
