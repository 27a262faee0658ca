from __future__ import annotations

from pathlib import Path

from archgym.data import Dataset
from benchmarks.report_scale import AGENTS, OBJECTIVES, WORKLOADS, make_run


def test_the_made_up_run_can_be_read(tmp_path: Path) -> None:
    trials = len(AGENTS) * len(OBJECTIVES) * len(WORKLOADS)
    make_run(tmp_path / "run", trials, 10)
    dataset = Dataset(tmp_path / "run" / "datasets" / "Made-v0")
    assert dataset.trials().num_rows == trials
    assert dataset.evaluations().num_rows == 10 * trials
