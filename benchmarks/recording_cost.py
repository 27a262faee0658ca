"""What recording costs a row, in turns with another tree of archgym, such as an earlier commit.

CPU time of handing rows to the operating system, in a batch and one by one, without the evaluation
that gives them. Bar: with checksums at most 10 % more than before there were any, in commit
``aec61c2~1``.

    git worktree add --detach BEFORE aec61c2~1
    python -m benchmarks.recording_cost --against BEFORE [--turns 4]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.step_overhead import Vectorised

BAR = 1.10
ROWS, ONE_BY_ONE, REPEATS = 20_000, 5_000, 7


class Rows(list[Any]):
    """Rows as recorders of all trees take them: those of ``aec61c2`` a list, later ones a call."""

    def __call__(self) -> Iterator[Any]:
        return iter(self)


def nanoseconds(rows: list[Any], at_once: int, number: int) -> float:
    """CPU time of a row, the least of several measurements."""
    found = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            env = Vectorised(record=folder)
            env.start_trial()
            recorder = env._recording
            assert recorder is not None
            recorder.write(0, Rows(rows[:1]), 0.0)
            began = time.process_time()
            for first in range(0, number, at_once):
                recorder.write(first + 1, Rows(rows[first : first + at_once]), 0.0)
            found.append((time.process_time() - began) / number * 1e9)
            env.close()
    return min(found)


def measure() -> None:
    env = Vectorised()
    outcomes = env.evaluate_batch(env.design_space.sample(ROWS, np.random.default_rng(1)))
    rows = list(outcomes.rows(0, ROWS))
    print(nanoseconds(rows, ROWS, ROWS), nanoseconds(rows, 1, ONE_BY_ONE))


def measured_in(tree: Path) -> list[float]:
    done = subprocess.run(
        [sys.executable, __file__, "--measure"],
        env={**os.environ, "PYTHONPATH": str(tree)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [float(word) for word in done.stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--against", type=Path, help="the other tree")
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--measure", action="store_true", help="only what this tree takes")
    chosen = parser.parse_args()
    if chosen.measure:
        return measure()
    trees = [chosen.against.absolute(), Path(__file__).absolute().parent.parent]
    taken = [[measured_in(tree) for tree in trees] for _ in range(chosen.turns)]
    worst = 0.0
    for i, name in enumerate(("in a batch", "one by one")):
        before, now = (min(turn[side][i] for turn in taken) for side in (0, 1))
        worst = max(worst, now / before)
        print(f"{name}: {now:.0f} ns a row, {before:.0f} there: {now / before:.2f} times as much")
    print(f"bar: at most {BAR:.2f} times")
    sys.exit(worst > BAR)


if __name__ == "__main__":
    main()
