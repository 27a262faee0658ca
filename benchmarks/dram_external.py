"""The embedded DRAM controller beside DRAMSys and DRAMsim3: speed and agreement, in one run.

Run as ``python -m benchmarks.dram_external`` with the programs on PATH or in ``ARCHGYM_DRAMSYS``
and ``ARCHGYM_DRAMSIM3``; one that is missing is left out.

Speed: requests per CPU second of one thread, energy included. The embedded controller's time is
that of the simulation from decoded arrays to metrics; a program's is the CPU time of its process
without the database, less that of a run of one request (start, configuration).

Agreement: random designs of the environment's space on generated traces; rank correlation with
ties averaged and mean absolute difference. What a program does not cover is left out.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import spearmanr

import archgym
from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.controller.controller import simulate
from archgym.envs.dram.controller.prepared_trace import prepare
from archgym.envs.dram.device.memory import Memory, load_memory
from archgym.envs.dram.external.dramsim3 import DramSim3Simulator
from archgym.envs.dram.external.dramsys import DramSysSimulator
from archgym.envs.dram.traces.trace import Trace
from archgym.errors import MissingDependencyError
from benchmarks.dram_speed import random_mix, stream, zipf_rows

METRICS = ("time_ns", "energy_pj")
WORKLOADS: dict[str, dict[str, Any]] = {
    "random 70/30": {"generator": "random", "read_share": 0.7},
    "random, saturated": {"generator": "random", "read_share": 0.7, "interval_ns": 5.0},
    "zipf": {"generator": "zipf"},
    "stream, saturated": {"generator": "stream", "interval_ns": 2.0},
    "copy": {"generator": "copy"},
}
COMPARED = (
    "time_ns",
    "read_latency_mean_ns",
    "read_latency_p99_ns",
    "read_latency_accepted_mean_ns",
    "energy_pj",
    "power_mw",
    "row_hit_rate",
)
FIXED: dict[str, dict[str, Any]] = {
    # DRAMSys 5.1 may run for ever with power-down, and its energy is then off.
    "dramsys": {"power_down_policy": "none", "write_policy": "completed"},
    # Its part of the space; page policies and mappings are drawn, what it does not have is skipped.
    "dramsim3": {
        "scheduler": "fr_fcfs",
        "arbiter": "simple",
        "resp_queue": "fifo",
        "refresh_max_postponed": 0,
        "refresh_max_pulledin": 0,
        "power_down_policy": "none",
        "write_policy": "posted",
    },
}


def embedded_seconds(trace: Trace, memory: Memory, repeats: int) -> float:
    config = ControllerConfig()
    prepared = prepare(trace, memory, config.address_mapping)
    simulate(prepared, config)
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        simulate(prepared, config)
        best = min(best, time.process_time() - start)
    return best


def child_seconds(run: Callable[[], object], repeats: int) -> float:
    """CPU time of the processes that a call starts and waits for."""
    best = float("inf")
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def dramsys_seconds(trace: Trace, memory: Memory, repeats: int) -> float:
    def seconds(requests: Trace) -> float:
        simulator = DramSysSimulator(memory, requests, metric_names=METRICS, latencies=False)
        return child_seconds(lambda: simulator.simulate_one({}), repeats)

    return seconds(trace) - seconds(_first(trace))


def dramsim3_seconds(trace: Trace, memory: Memory, repeats: int) -> float:
    config = ControllerConfig(write_policy="posted")

    def seconds(requests: Trace) -> float:
        simulator = DramSim3Simulator(memory, requests, metric_names=METRICS)
        time_ns = simulator.simulate_one({"write_policy": "posted"})["time_ns"]
        # Once more, for exactly as long as it takes.
        cycles = int(time_ns * 1e3) // memory.device.t_ck_ps
        end = time.monotonic() + 600
        return child_seconds(lambda: simulator.run(config, cycles, end), repeats)

    return seconds(trace) - seconds(_first(trace))


def _first(trace: Trace) -> Trace:
    return Trace("one", trace.arrival_ps[:1], trace.address[:1], trace.is_write[:1])


def speed(memory: Memory, requests: int, repeats: int) -> None:
    print(f"\n## Speed, {memory.name}, {requests} requests, million requests per CPU second\n")
    print("| trace | embedded | DRAMSys | DRAMsim3 | x DRAMSys | x DRAMsim3 |")
    print("|---|---|---|---|---|---|")
    for make in (stream, random_mix, zipf_rows):
        trace = make(requests)
        rates = [requests / embedded_seconds(trace, memory, repeats) / 1e6]
        for measure in (dramsys_seconds, dramsim3_seconds):
            try:
                rates.append(requests / measure(trace, memory, 3) / 1e6)
            except MissingDependencyError:
                rates.append(float("nan"))
        ratios = [rates[0] / rate for rate in rates[1:]]
        cells = [f"{rate:.2f}" for rate in rates] + [f"{ratio:.1f}" for ratio in ratios]
        print(f"| {trace.name} | {' | '.join(cells)} |")


def agreement(simulator: str, memory: str, designs: int, requests: int) -> None:
    print(f"\n## Agreement with {simulator}, {memory}, {requests} requests\n")
    print("| trace | metric | designs | Spearman | mean abs. % | worst abs. % | spread % |")
    print("|---|---|---|---|---|---|---|")
    for name, workload in WORKLOADS.items():
        arguments: dict[str, Any] = {
            "memory": memory,
            "workload": {**workload, "requests": requests},
            "objective": "minimize time_ns",
            "controller": {"timing_rules": "dramsys51"} if simulator == "dramsys" else {},
            "fixed": FIXED[simulator],
        }
        embedded = archgym.make("DRAM-v0", **arguments)
        try:
            external = archgym.make("DRAM-v0", simulator=simulator, **arguments)
        except MissingDependencyError as error:
            print(error)
            return
        # What the program does not cover is illegal there, and not run.
        drawn = embedded.design_space.sample(6 * designs, np.random.default_rng(11))
        theirs = external.evaluate_batch(drawn)
        both = np.flatnonzero(theirs.status == 0)[:designs]
        ours = embedded.evaluate_batch(drawn)
        for i, metric in enumerate(embedded.metrics):
            if metric.name not in COMPARED:
                continue
            a, b = theirs.metrics[both, i], ours.metrics[both, i]
            if np.isnan(a).any() or np.isnan(b).any() or not (a > 0).any():
                continue
            a, b = a[a > 0], b[a > 0]
            off = np.abs(b / a - 1) * 100
            spread = (a.max() / a.min() - 1) * 100
            rho = spearmanr(_tied(a), _tied(b)).statistic if spread > 0.5 else float("nan")
            print(
                f"| {name} | {metric.name} | {len(a)} | {rho:.4f} | {off.mean():.3f} "
                f"| {off.max():.2f} | {spread:.0f} |"
            )


def _tied(values: np.ndarray) -> np.ndarray:
    """Differences below 0.1 % count as ties."""
    rounded: np.ndarray = np.round(np.log(np.maximum(values, 1e-12)) * 2000)
    return rounded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", default="DDR4-2400")
    parser.add_argument("--requests", type=int, default=200_000, help="of the speed runs")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--designs", type=int, default=120)
    parser.add_argument("--agreement-requests", type=int, default=5_000)
    parser.add_argument("--only", choices=("speed", "dramsys", "dramsim3"))
    args = parser.parse_args()
    if args.only in (None, "speed"):
        speed(load_memory(args.memory), args.requests, args.repeats)
    for simulator in ("dramsys", "dramsim3"):
        if args.only in (None, simulator):
            agreement(simulator, args.memory, args.designs, args.agreement_requests)


if __name__ == "__main__":
    main()
