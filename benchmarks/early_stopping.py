"""What stopping clearly worse designs early saves, and what it costs: searches side by side.

Run as ``python -m benchmarks.early_stopping FILE...`` with files of ``examples/simulators``. For
each file and seed the same search runs without and with ``stop_early``, alternating. A line shows
the seconds that all simulations took, the processor time of the programs, which a busy machine
changes less, and the best value. ``--failures`` adds a third search, in which the agent is told
that a design that was stopped has failed, in place of the metrics that are predicted for it.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import resource
import statistics
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from archgym.data import Dataset
from archgym.experiment.simulate.simulators import environment_with_workers
from archgym.registry import make_agent


@dataclass(frozen=True)
class Search:
    """A search that has ended.

    Attributes:
        seconds: of all simulations.
        cpu_s: processor time of the programs, s.
        best: value of the goal of the best design, minimised.
        stopped: designs that were stopped.
    """

    seconds: float
    cpu_s: float
    best: float
    stopped: int


def search(path: str, agent: str, budget: int, seed: int, stop_early: bool) -> Search:
    """Runs a search, one design at a time."""
    with tempfile.TemporaryDirectory() as folder:
        before = _children_s()
        settings = {"stop_early": stop_early, "retries": 0}
        with environment_with_workers(path, settings, record=Path(folder) / "rows") as env:
            baseline_s = _children_s() - before
            found = make_agent(agent, env.design_space, seed=seed).search(env, budget)
        cpu_s = _children_s() - before - baseline_s
        rows = Dataset(Path(folder) / "rows").evaluations()
    feasible = found.best is not None and found.best.feasible
    best = found.best.objectives[0] if found.best is not None and feasible else math.inf
    status = Counter(rows["status"].to_pylist())
    return Search(sum(rows["simulation_s"].to_pylist()), cpu_s, best, status["stopped"])


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _told_as_failures() -> contextlib.AbstractContextManager[object]:
    """Agents get outcomes as they are: a status other than ok is a failure to them."""
    return mock.patch("archgym.agent.told", lambda outcomes: outcomes)


def main() -> None:
    """Prints a line for each search, and what was saved."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--agent", default="ga")
    parser.add_argument("--budget", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--failures", action="store_true")
    options = parser.parse_args()
    kinds = ["whole", "stopped", *(["failures"] if options.failures else [])]
    for path in options.files:
        print(f"{path}, agent {options.agent}, {options.budget} designs", flush=True)
        found: dict[str, list[Search]] = {kind: [] for kind in kinds}
        for seed in range(options.seeds):
            for kind in kinds:
                with _told_as_failures() if kind == "failures" else contextlib.nullcontext():
                    one = search(path, options.agent, options.budget, seed, kind != "whole")
                found[kind].append(one)
                print(
                    f"  seed {seed} {kind:8} {one.seconds:7.1f} s, processor {one.cpu_s:6.1f} s, "
                    f"best {one.best:.6g}, {one.stopped} stopped",
                    flush=True,
                )
        whole = found.pop("whole")
        for kind, some in found.items():
            seconds = sum(one.seconds for one in some) / sum(one.seconds for one in whole)
            cpu = sum(one.cpu_s for one in some) / sum(one.cpu_s for one in whole)
            ratios = [one.best / other.best for one, other in zip(some, whole, strict=True)]
            print(
                f"  {kind}: {1 - seconds:.0%} less simulated time, {1 - cpu:.0%} less processor "
                f"time, best over best without: median {statistics.median(ratios):.4f}, "
                f"worst {max(ratios):.4f}"
            )


if __name__ == "__main__":
    main()
