"""What the framework adds to a step: `step()` plus `reset()` against Gymnasium's CartPole-v1.

An environment with ten parameters (two of them conditional), one rule, four metrics and a
trivial simulator, recording on, no design twice; both sides run in turns in one process. Bar: at
most 8 times CartPole-v1 through `gymnasium.make`.

Also: designs per second of `evaluate_batch` with a vectorised trivial simulator.

    python benchmarks/step_overhead.py [--steps 3000] [--repeats 15] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import tempfile
import time
from collections.abc import Iterator
from typing import Any, ClassVar

import gymnasium
import numpy as np

import archgym
from archgym.space import (
    Boolean,
    Categorical,
    Designs,
    DesignSpace,
    Integer,
    Ordinal,
    Rule,
    param,
)

BAR = 8.0


class TenParameters(archgym.Environment):
    """Ten knobs of a made-up memory controller, 2.1 * 10**9 combinations."""

    design_space = DesignSpace(
        [
            Categorical("page_policy", ["open", "open_adaptive", "closed", "closed_adaptive"]),
            Categorical("scheduler", ["fifo", "fr_fcfs", "fr_fcfs_grp"]),
            Ordinal("buffer", [1, 2, 4, 8, 16, 32, 64, 128]),
            Categorical("refresh", ["none", "all_bank", "per_bank"]),
            Integer("postponed", 0, 8, when=param("refresh") != "none"),
            Integer("pulled_in", 0, 8, when=param("refresh") != "none"),
            Ordinal("transactions", [1, 2, 4, 8, 16, 32, 64, 128]),
            Boolean("write_queue"),
            Integer("watermark", 1, 64),
            Integer("timeout_ns", 1, 64, unit="ns"),
        ],
        [Rule("fits", param("watermark") <= param("timeout_ns") * 64, "the watermark is reached")],
    )
    metrics = (
        archgym.Metric("time_ns", "ns"),
        archgym.Metric("energy_pj", "pJ"),
        archgym.Metric("power_mw", "mW"),
        archgym.Metric("hit_rate", "", "maximize"),
    )
    default_objective = "minimize time_ns"
    baseline: ClassVar = {
        "page_policy": "open",
        "scheduler": "fifo",
        "buffer": 8,
        "refresh": "all_bank",
        "postponed": 0,
        "pulled_in": 0,
        "transactions": 8,
        "write_queue": True,
        "watermark": 16,
        "timeout_ns": 16,
    }

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        return {
            "time_ns": 100.0 + design["timeout_ns"],
            "energy_pj": 20.0 * design["buffer"],
            "power_mw": 3.0,
            "hit_rate": 0.5,
        }


class Vectorised(TenParameters):
    """The same, many designs at once."""

    def simulate_batch(self, designs: Designs) -> list[tuple[Any, float]]:
        time_ns = (100.0 + designs.values("timeout_ns")).tolist()
        energy_pj = (20.0 * designs.values("buffer")).tolist()
        return [
            ({"time_ns": t, "energy_pj": e, "power_mw": 3.0, "hit_rate": 0.5}, 0.0)
            for t, e in zip(time_ns, energy_pj, strict=True)
        ]


def distinct_actions(env: archgym.Environment, n: int) -> Iterator[Any]:
    """Actions that lead to legal designs, each design once."""
    rng, seen = np.random.default_rng(0), set()
    while True:
        designs = env.design_space.sample(n, rng)
        for key, action in zip(designs.keys(), env.encoding.encode(designs), strict=True):
            if key not in seen:
                seen.add(key)
                yield action


def seconds_a_step(env: gymnasium.Env[Any, Any], actions: list[Any]) -> float:
    """Seconds that one step and one reset take."""
    start = time.perf_counter()
    for action in actions:
        env.step(action)
        env.reset()
    return (time.perf_counter() - start) / len(actions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        envs: dict[str, gymnasium.Env[Any, Any]] = {
            "CartPole-v1": gymnasium.make("CartPole-v1"),
            "recording": TenParameters(record=folder),
            "not recording": TenParameters(),
        }
        pools = {
            name: distinct_actions(env, 20_000)
            for name, env in envs.items()
            if isinstance(env, archgym.Environment)
        }

        def actions(name: str) -> list[Any]:
            if name not in pools:
                return [0, 1] * (arguments.steps // 2)
            return [next(pools[name]) for _ in range(arguments.steps)]

        taken: dict[str, list[float]] = {name: [] for name in envs}
        for env in envs.values():
            env.reset(seed=0)
        for _ in range(arguments.repeats):
            for name, env in envs.items():
                taken[name].append(seconds_a_step(env, actions(name)))
        if arguments.profile:
            todo = actions("recording")
            with cProfile.Profile() as profile:
                seconds_a_step(envs["recording"], todo)
            pstats.Stats(profile).sort_stats("tottime").print_stats(35)
        report(taken)
        for env in envs.values():
            env.close()
    batch_speed()


def report(taken: dict[str, list[float]]) -> None:
    base = taken["CartPole-v1"]
    print("step() + reset()        minimum us   median us   ratio of minima   ratio of medians")
    for name, times in taken.items():
        low, middle = min(times), statistics.median(times)
        print(
            f"{name:22} {low * 1e6:11.1f} {middle * 1e6:11.1f} {low / min(base):17.2f} "
            f"{middle / statistics.median(base):18.2f}"
        )
    print(f"bar: at most {BAR:g} times CartPole-v1 with recording")


def batch_speed() -> None:
    n = 100_000
    with tempfile.TemporaryDirectory() as folder:
        for name, record in (("not recording", None), ("recording", folder)):
            env = Vectorised(record=record)
            designs = env.design_space.sample(n, np.random.default_rng(1))
            start = time.perf_counter()
            env.evaluate_batch(designs)
            spent = time.perf_counter() - start
            print(f"evaluate_batch of {n:,}, {name}: {n / spent:,.0f} designs/s")
            env.close()


if __name__ == "__main__":
    main()
