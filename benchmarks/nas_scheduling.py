"""How far NASAIC's scheduling heuristic is from the exact optimum, and how long it takes.

Run as ``python benchmarks/nas_scheduling.py``. Seeded random instances of each size: latencies and
energies of a layer on a sub-accelerator are its work, log-uniform over a decade, times the
sub-accelerator's speed and thrift, times an affinity of the layer, each log-uniform over a factor
of about four; the limit lies between the makespan of the fastest schedule (exact) and that of the
cheapest assignment, uniformly. Gaps are of energy to the exact optimum, in percent.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from archgym.envs.nas.schedule import (
    SchedulingProblem,
    exact_scheduler,
    hap_scheduler,
    list_scheduler,
)

SIZES = ((2, (4, 5), (2, 3)), (2, (6, 6), (2, 2)), (3, (3, 4), (2, 3)))
"""Networks, fewest and most layers of each, fewest and most sub-accelerators."""
LARGE = ((2, 14, 2), (3, 20, 4))
"""Networks, layers of each, sub-accelerators, for the times."""


def instance(
    rng: np.random.Generator, networks: int, layers: tuple[int, int], subs: tuple[int, int]
) -> SchedulingProblem:
    """A random problem."""
    lengths = rng.integers(layers[0], layers[1], networks, endpoint=True)
    count = int(rng.integers(subs[0], subs[1], endpoint=True))
    total = int(lengths.sum())
    work = 10 ** rng.uniform(3, 4, (total, 1))
    latency = np.ceil(
        work * 4 ** rng.uniform(-0.5, 0.5, (1, count)) * 4 ** rng.uniform(-0.5, 0.5, (total, count))
    )
    energy = (
        work * 4 ** rng.uniform(-0.5, 0.5, (1, count)) * 4 ** rng.uniform(-0.5, 0.5, (total, count))
    )
    return SchedulingProblem(latency, energy, lengths.tolist())


def limited(
    seed: int, networks: int, layers: tuple[int, int], subs: tuple[int, int]
) -> tuple[SchedulingProblem, float]:
    """A random problem and a limit between its fastest and its cheapest makespan, whole cycles."""
    rng = np.random.default_rng(seed)
    problem = instance(rng, networks, layers, subs)
    fast = exact_scheduler.fastest(problem).makespan
    cheap = exact_scheduler.solve(problem).makespan
    return problem, float(np.floor(fast + rng.uniform() * max(0.0, cheap - fast)))


def gaps(
    count: int, networks: int, layers: tuple[int, int], subs: tuple[int, int]
) -> tuple[np.ndarray, int, int]:
    """Gap of each instance in percent, misses of the limit, and schedules that break a rule."""
    found = []
    missed = broken = 0
    for seed in range(count):
        problem, limit = limited(seed, networks, layers, subs)
        ours, best = hap_scheduler.solve(problem, limit), exact_scheduler.solve(problem, limit)
        assert best.meets_limit
        broken += bool(problem.violations(ours)) + bool(problem.violations(best))
        if ours.meets_limit:
            found.append(100 * (ours.energy / best.energy - 1))
        else:
            missed += 1
    return np.array(found), missed, broken


def seconds(networks: int, layers: int, subs: int, count: int = 20) -> tuple[float, float, float]:
    """Processor time of one solution: mean and most of HAP, mean of the list scheduler, s."""
    times = []
    listed = 0.0
    for seed in range(count):
        rng = np.random.default_rng(seed)
        problem = instance(rng, networks, (layers, layers), (subs, subs))
        start = time.process_time()
        fast = list_scheduler.solve(problem).makespan
        listed += time.process_time() - start
        cheap = hap_scheduler.solve(problem).makespan
        limit = fast + rng.uniform() * max(0.0, cheap - fast)
        start = time.process_time()
        hap_scheduler.solve(problem, limit)
        times.append(time.process_time() - start)
    return float(np.mean(times)), max(times), listed / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=500, help="of each size")
    args = parser.parse_args()
    print(
        "networks  layers each  sub-accelerators  mean gap  95th %  worst  optimal  missed  broken"
    )
    for networks, layers, subs in SIZES:
        gap, missed, broken = gaps(args.instances, networks, layers, subs)
        print(
            f"{networks:8}  {layers[0]} to {layers[1]:6}  {subs[0]} to {subs[1]:11}  "
            f"{gap.mean():7.2f}%  {np.quantile(gap, 0.95):5.2f}%  {gap.max():4.1f}%  "
            f"{np.mean(gap < 1e-9):6.1%}  {missed:6}  {broken:6}"
        )
    for networks, each, count in LARGE:
        mean, most, listed = seconds(networks, each, count)
        print(
            f"{networks} networks x {each} layers on {count}: HAP {mean * 1e3:.3f} ms, at most "
            f"{most * 1e3:.3f}; list scheduler {listed * 1e3:.3f}"
        )


if __name__ == "__main__":
    main()
