"""Runs many controllers on one trace, on all cores; equivalent controllers are simulated once.

A run records which limits of the controller it reached. A controller that differs only in limits
that neither of the two reaches issues the same commands at the same times, so it takes the result
of that run.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeAlias

from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.controller.controller import simulate
from archgym.envs.dram.controller.prepared_trace import PreparedTrace
from archgym.envs.dram.controller.result import Result
from archgym.errors import SimulationError
from archgym.problem.simulator import SimulationResult
from archgym.simulators.external import available_cores

__all__ = ["simulate_configs"]

Run: TypeAlias = Result | SimulationError
LIMITS = (
    "request_buffer_size",
    "refresh_max_postponed",
    "refresh_max_pulledin",
    "max_active_transactions",
)


def simulate_configs(
    configs: Sequence[ControllerConfig],
    prepare: Callable[[ControllerConfig], PreparedTrace],
    metrics_of: Callable[[Result, ControllerConfig], dict[str, float]],
) -> list[tuple[SimulationResult, float]]:
    """Metrics of many controllers on a trace.

    Args:
        configs: the controllers.
        prepare: gives the trace as a controller maps its addresses.
        metrics_of: metrics of the result of a run.

    Returns:
        For each controller its metrics, or the error of its run, and the seconds that it took.
        They do not depend on which other controllers are in the batch, nor on the cores.
    """
    alike: dict[ControllerConfig, list[int]] = defaultdict(list)
    for i, config in enumerate(configs):
        alike[_without_limits(config)].append(i)
    for config in {(c.address_mapping, c.channel_interleave): c for c in alike}.values():
        prepare(config)  # once for all threads

    found: list[tuple[SimulationResult, float] | None] = [None] * len(configs)

    def one_group(members: list[int]) -> None:
        runs: list[tuple[ControllerConfig, Run]] = []
        # The widest limits first: their runs are equivalent to the most others.
        for i in sorted(members, key=lambda i: _limits(configs[i]), reverse=True):
            config = configs[i]
            start = time.perf_counter()
            run = next((run for done, run in runs if _equivalent(done, run, config)), None)
            if run is None:
                run = _simulate(prepare(config), config)
                runs.append((config, run))
            outcome = run if isinstance(run, SimulationError) else metrics_of(run, config)
            found[i] = outcome, time.perf_counter() - start

    threads = min(_cores(), len(alike))
    if threads <= 1:
        for members in alike.values():
            one_group(members)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(one_group, alike.values()))
    return [entry for entry in found if entry is not None]


def _simulate(trace: PreparedTrace, config: ControllerConfig) -> Run:
    try:
        return simulate(trace, config)
    except SimulationError as error:
        return error


def _limits(config: ControllerConfig) -> tuple[int, ...]:
    return tuple(getattr(config, name) for name in LIMITS)


def _without_limits(config: ControllerConfig) -> ControllerConfig:
    return replace(
        config,
        request_buffer_size=1,
        refresh_max_postponed=0,
        refresh_max_pulledin=0,
        max_active_transactions=1,
    )


def _equivalent(done: ControllerConfig, run: Run, config: ControllerConfig) -> bool:
    """Whether a run is, command for command, also that of a controller with other limits."""
    if isinstance(run, SimulationError):
        return False
    for name in LIMITS:
        ran, wanted = getattr(done, name), getattr(config, name)
        enough = getattr(run.limits, name)
        if ran != wanted and not (ran >= enough and wanted >= enough):
            return False
    return True


def _cores() -> int:
    """Cores that this process may use, or OMP_NUM_THREADS if that is less."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    cores = available_cores()
    return min(cores, int(wanted)) if wanted.isdigit() and int(wanted) else cores
