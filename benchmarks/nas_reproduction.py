"""Whether the shipped accuracies come out again when networks are trained here.

Run as ``python -m benchmarks.nas_reproduction --networks 40``. Networks are drawn at random from
each table, in proportion to its size, and one of the table's seeds is trained for each on this
machine's CPU. A network reproduces if the accuracy after the last epoch is within three pooled
standard deviations (over the seeds of all networks of that table) of the table's accuracy for that
seed. With ``--same-seed`` each is trained twice, and must give the same numbers to the last bit.

A table of the differences goes to standard output, the share that reproduces last. It takes about
10 to 60 CPU seconds a network.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "1")

from archgym.envs.nas.accuracy.tabulated import AccuracyTable, TabulatedAccuracy
from archgym.envs.nas.accuracy.training_loop import one_thread, train
from archgym.envs.nas.data import load
from archgym.envs.nas.families import Task
from archgym.envs.nas.tasks import distinct_architectures, task_of

DEVIATIONS = 3.0
DEFAULT_TASKS = ("digits", "cells", "digits_mbconv")


class Check(NamedTuple):
    """One network trained again."""

    key: str
    seed: int
    table: float
    here: float
    limit: float
    same: bool | None

    @property
    def good(self) -> bool:
        return abs(self.here - self.table) <= self.limit and self.same is not False


def shares(tables: Sequence[AccuracyTable], networks: int) -> list[int]:
    """How many networks of each table: in proportion, at least one, ``networks`` in all."""
    sizes = np.array([len(table.rows) for table in tables])
    exact = networks * sizes / sizes.sum()
    counts = [max(1, int(share)) for share in exact]
    while sum(counts) < networks:
        counts[int(np.argmax(exact - counts))] += 1
    return counts


def checks(task: Task, table: AccuracyTable, count: int, draw: int, twice: bool) -> list[Check]:
    assert task.data is not None
    rng = np.random.default_rng([draw, len(table.rows)])
    keys = list(table.rows)
    architectures = distinct_architectures(task)
    limit = DEVIATIONS * table.pooled_spread(table.epochs[-1])
    found = []
    for row in rng.choice(len(keys), size=min(count, len(keys)), replace=False):
        column = int(rng.integers(len(table.seeds)))
        key, seed = keys[row], table.seeds[column]
        started = time.process_time()
        curves = [
            train(task, architectures[key], load(task.data), seeds=[seed])[0]
            for _ in range(2 if twice else 1)
        ]
        same = bool((curves[0] == curves[1]).all()) if twice else None
        there, here = float(table.percent[row, column, -1]), float(curves[0][-1])
        found.append(Check(key, seed, there, here, limit, same))
        print(
            f"{task.name:14s} {key:28s} seed {seed}  table {there:6.2f}  here {here:6.2f}  "
            f"difference {here - there:+6.2f} of +-{limit:.2f}  "
            f"{'' if same is None else 'same twice  ' if same else 'NOT THE SAME TWICE  '}"
            f"{time.process_time() - started:.0f} CPU s",
            flush=True,
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--networks", type=int, default=40)
    parser.add_argument("--tasks", nargs="+", default=list(DEFAULT_TASKS))
    parser.add_argument("--draw", type=int, default=0, help="another choice of networks")
    parser.add_argument("--same-seed", action="store_true", help="train each twice")
    given = parser.parse_args()
    one_thread("cpu")
    tasks = [task_of(name) for name in given.tasks]
    tables = [TabulatedAccuracy().table(task) for task in tasks]
    found: list[Check] = []
    for task, table, count in zip(tasks, tables, shares(tables, given.networks), strict=True):
        found += checks(task, table, count, given.draw, given.same_seed)
    differences = np.array([check.here - check.table for check in found])
    scaled = np.array([DEVIATIONS * abs(c.here - c.table) / c.limit for c in found])
    print(
        f"{sum(check.good for check in found)} of {len(found)} within {DEVIATIONS:g} pooled "
        f"standard deviations; mean difference {differences.mean():+.2f} points, "
        f"median {np.median(scaled):.2f} and at most {scaled.max():.2f} deviations"
    )


if __name__ == "__main__":
    main()
