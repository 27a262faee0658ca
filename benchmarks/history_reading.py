"""Processor time and memory of reading history from a dataset of many rows. Bar: 2 s for a million.

python -m benchmarks.history_reading [--rows 1000000] [--repeats 5] [--keep FOLDER]

The dataset has 16 parameters, 8 metrics and three workloads; each becomes a source. Timed is all
of ``read_history`` but the imports: finding the rows, translating and scoring them, and
choosing designs.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import archgym
from archgym.history.reading import read_history
from benchmarks.dataset_scale import BASELINE, METRICS, SPACE, make


class Caches(archgym.Environment):
    """The environment of the dataset; it simulates nothing."""

    design_space = SPACE
    metrics = METRICS
    default_objective: ClassVar[Any] = {
        "minimize": "latency_ns",
        "limits": ["power_mw <= 90"],
    }
    baseline: ClassVar[dict[str, Any]] = {
        parameter.name: parameter.value(0)
        for parameter in SPACE.parameters
        if parameter.when is None
    }

    @property
    def name(self) -> str:
        """As the dataset has it."""
        return "Caches-v0"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--keep", default="", help="folder to make the dataset in, and to keep")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.keep or temporary) / "data"
        if not folder.exists():
            make(folder, arguments.rows)
        env = Caches()
        env.baseline_metrics = np.array(BASELINE)
        seconds = []
        for _ in range(arguments.repeats):
            start = time.process_time()
            history = read_history(folder, env)
            seconds.append(time.process_time() - start)
        for account in history.accounts:
            print(f"{account.name}: {account.used:,} designs of {account.rows:,} rows")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"CPU s: median {statistics.median(seconds):.2f}, most {max(seconds):.2f}")
        print(f"peak memory: {peak:,.0f} MiB")


if __name__ == "__main__":
    main()
