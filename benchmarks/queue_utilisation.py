"""How busy agents keep the workers that simulate, and what is lost by waiting.

Durations are log-normal with sigma 1: a fifth of the simulations take as long as all others. Each
agent searches with eight workers on a simulated clock, then with 64, and with ``--processes`` with
eight real processes whose simulations sleep. A worker is busy while it simulates: the time until
the driver takes its result is idle. Four figures an agent, means over seeds:

- *busy*: mean number of busy workers from when all of them had started to the last end. The last
  simulations of a budget leave workers idle, whatever the agent does.
- *ceiling*: the same if each design, in the order of proposals, had begun the moment a worker was
  free. Durations depend on the design, so each agent has another ceiling.
- *share*: busy, of the ceiling. What is missing was lost by the agent or the queue.
- *while left*: busy up to the start of the last simulation.

The bar is 90 % of the workers for agents that ask and tell, 80 % for hyperband and the learners.

    python benchmarks/queue_utilisation.py
    python benchmarks/queue_utilisation.py --processes --agents random ga auto --median 0.1
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import itertools
import tempfile
import time
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import archgym
from archgym.data import Dataset
from archgym.experiment.simulate.durations import Durations
from archgym.experiment.simulate.simulators import Simulators
from archgym.experiment.spec.simulation import SimulationSettings
from archgym.problem.fidelity import FULL, Fidelity
from archgym.problem.simulator import SimulationResult
from archgym.registry import make_agent
from archgym.space import Designs, DesignSpace, Integer

STEADY = ["random", "sobol", "ga", "nsga2", "aco", "sa", "local"]
STEADY += ["gp", "bayesian", "optuna", "botorch", "auto"]
LEARNERS = ["hyperband", "ppo", "a2c", "maskable_ppo", "dqn", "sac", "ippo", "mappo"]
SIGMA = 1.0
COLUMNS = ["proposal", "started", "worker", "simulation_s"]
HEAD = f"{'agent':14}{'workers':>8}{'designs':>8}{'busy':>8}{'':>6}{'ceiling':>9}{'share':>8}"
HEAD += f"{'while left':>12}{'took':>9}"
Floats = NDArray[np.float64]
THIRD = Fidelity(1 / 3, 1 / 3)


class Sleeper(archgym.Environment):
    """A closed form over 12 integers whose simulation sleeps for a log-normal time.

    Args:
        median_s: median of the sleep, s; 0 does not sleep.
    """

    design_space = DesignSpace([Integer(f"p{i}", 0, 7) for i in range(12)])
    metrics: ClassVar = (archgym.Metric("time_ns", "ns", "minimize"),)
    default_objective: ClassVar = "minimize time_ns"
    baseline: ClassVar = {f"p{i}": 0 for i in range(12)}
    fidelities: tuple[Fidelity, ...] = (THIRD, FULL)
    incidental_arguments: ClassVar = ("median_s",)

    def __init__(self, *, median_s: float = 0.0, **arguments: Any) -> None:
        self.median_s = median_s
        super().__init__(**arguments)

    def simulate_batch_at(
        self, designs: Designs, fidelity: float
    ) -> list[tuple[SimulationResult, float]]:
        """The metric and the seconds of each design."""
        return [self._one(codes, fidelity) for codes in designs.codes.tolist()]

    def _one(self, codes: list[int], fidelity: float) -> tuple[SimulationResult, float]:
        began = time.perf_counter()
        if self.median_s:
            form = {"log_normal": {"median": self.median_s, "sigma": SIGMA}}
            time.sleep(Durations(form, self.fidelities, {}).of(codes, fidelity, {}))
        off = sum((code - (3 * i) % 8) ** 2 for i, code in enumerate(codes))
        pairs = sum(a * b for a, b in itertools.pairwise(codes))
        return {"time_ns": 10.0 + off + 0.1 * pairs}, time.perf_counter() - began


@dataclass(frozen=True)
class Use:
    """How busy a search kept its workers; all but the last are mean numbers of workers.

    Attributes:
        busy: from when all had started to the last end.
        ceiling: the most that was possible with these durations.
        left: busy, up to the start of the last simulation.
        seconds: that the search took.
    """

    busy: float
    ceiling: float
    left: float
    seconds: float


def run(agent: str, settings: SimulationSettings, budget: int, seed: int, median: float) -> Use:
    """Searches, and looks how busy workers were."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = {"median_s": median}
        env = Sleeper(**arguments, record=Path(folder) / "data")
        began = time.perf_counter()
        with contextlib.closing(Simulators(settings)) as simulators:
            simulators.serve(env, "benchmarks.queue_utilisation:Sleeper", arguments)
            make_agent(agent, env.design_space, seed=seed).search(env, budget)
            env.close()
        seconds = time.perf_counter() - began
        rows = Dataset(Path(folder) / "data").evaluations(COLUMNS).to_pylist()
    rows = sorted((r for r in rows if r["worker"] is not None), key=lambda row: row["proposal"])
    starts = np.array([row["started"].timestamp() for row in rows])
    durations = np.array([row["simulation_s"] for row in rows])
    workers = np.array([row["worker"] for row in rows])
    first = np.array([starts[workers == name].min() for name in set(workers.tolist())])
    ends, ready = starts + durations, first.max()
    least_starts = list_schedule(durations, first)
    least_ends = least_starts + durations
    return Use(
        busy(starts, ends, ready, ends.max()),
        busy(least_starts, least_ends, ready, least_ends.max()),
        busy(starts, ends, ready, starts.max()),
        seconds,
    )


def list_schedule(durations: Floats, free: Floats) -> Floats:
    """When each design begins if it does so as soon as a worker is free.

    Args:
        durations: in the order of proposals, s, shape (n_designs,).
        free: from when on each worker is, s, shape (n_workers,).
    """
    heap, starts = sorted(free.tolist()), []
    for duration in durations.tolist():
        starts.append(heap[0])
        heapq.heapreplace(heap, heap[0] + duration)
    return np.array(starts)


def busy(starts: Floats, ends: Floats, begin: float, end: float) -> float:
    """Mean number of busy workers between two times."""
    within = np.minimum(ends, end) - np.maximum(starts, begin)
    return float(np.maximum(within, 0.0).sum() / max(end - begin, 1e-9))


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--agents", nargs="*", default=STEADY + LEARNERS)
    parser.add_argument("--processes", action="store_true", help="real processes that sleep")
    parser.add_argument("--median", type=float, default=0.1, help="of the sleep, s")
    parser.add_argument("--workers", type=int, nargs="*", default=[8, 64])
    parser.add_argument("--designs", type=int, default=25, help="designs a worker")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    median = options.median if options.processes else 0.0
    print(HEAD)
    for agent, workers in itertools.product(options.agents, options.workers):
        duration = {"log_normal": {"median": 60, "sigma": SIGMA}}
        clock: dict[str, Any] = {"clock": "simulated", "duration": duration}
        settings = SimulationSettings(workers=workers, **({} if options.processes else clock))
        budget = options.designs * workers
        print(f"{agent:14}{workers:8}{budget:8}", end="", flush=True)
        uses = [run(agent, settings, budget, seed, median) for seed in range(options.seeds)]
        whole, ceiling, left, seconds = np.mean([astuple(use) for use in uses], axis=0)
        print(
            f"{whole:8.2f}{whole / workers:6.0%}{ceiling:9.2f}{whole / ceiling:8.0%}"
            f"{left / workers:12.0%}{seconds:8.1f}s",
            flush=True,
        )


if __name__ == "__main__":
    main()
