"""Simulators that run external programs in this process, several at a time, through the queue."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

import archgym
from archgym.data import Dataset
from archgym.evaluation.trial_info import TrialInfo
from archgym.problem.simulator import SimulationResult
from archgym.simulators.external import run_program, simulate_in_parallel
from archgym.simulators.queued import designs_at_a_time
from archgym.space import Designs, DesignSpace, Integer

SLEEP = shutil.which("sleep") or "sleep"


class Sleeping:
    """Runs ``sleep`` for ``x`` tenths of a second; 98 waits for a file, 99 is an interrupt."""

    name, version = "sleeping", "1"
    metric_names: tuple[str, ...] = ("time_ns",)
    threads = 3

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def simulate(self, designs: Designs) -> Sequence[tuple[SimulationResult, float]]:
        return simulate_in_parallel(self, designs, self.threads)

    def simulate_one(self, design: Mapping[str, Any]) -> dict[str, float]:
        if design["x"] == 99:
            raise KeyboardInterrupt
        while design["x"] == 98 and not (self.folder / "go").exists():
            run_program([SLEEP, "0.1"], self.folder, time_limit_s=60.0)
        if design["x"] == 98:
            return {"time_ns": 1.0}
        run_program([SLEEP, str(design["x"] / 10)], self.folder, time_limit_s=60.0)
        return {"time_ns": 1.0 + design["x"]}


class Napping(archgym.Environment):
    design_space = DesignSpace([Integer("x", 0, 99)])
    metrics: ClassVar = (archgym.Metric("time_ns", "ns", "minimize"),)
    default_objective: ClassVar = "minimize time_ns"
    baseline: ClassVar = {"x": 1}


def test_programs_run_side_by_side_and_each_row_is_kept_when_its_program_ends(
    tmp_path: Path,
) -> None:
    simulator = Sleeping(tmp_path)
    assert designs_at_a_time(simulator) == 3
    env = Napping(simulator=simulator, record=tmp_path / "data")
    env.start_trial(TrialInfo(trial_id="t"))
    env.evaluate_batch([{"x": 2}, {"x": 3}])  # shows that it is slow
    designs = [{"x": x} for x in (98, 4, 5, 6)]
    seen: list[int] = []

    def look() -> None:
        """Lets the first one end once the others are in the dataset, or after a minute."""
        until = time.monotonic() + 60.0
        while not {4, 5, 6} <= set(seen) and time.monotonic() < until:
            time.sleep(0.1)
            seen[:] = Dataset(tmp_path / "data").evaluations(["param.x"])["param.x"].to_pylist()
        (tmp_path / "go").touch()

    looking = threading.Thread(target=look)
    looking.start()
    outcomes = env.evaluate_batch(designs)
    looking.join()
    assert seen == [2, 3, 4, 5, 6]
    assert [o.design for o in outcomes] == designs
    env.close()
    table = Dataset(tmp_path / "data").evaluations(["step", "param.x"])
    assert table["param.x"].to_pylist() == [2, 3, 98, 4, 5, 6]


def test_an_interrupt_ends_the_programs_that_run(tmp_path: Path) -> None:
    env = Napping(simulator=Sleeping(tmp_path))
    env.evaluate_batch([{"x": 1}, {"x": 2}])
    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        env.evaluate_batch([{"x": 90}, {"x": 2}, {"x": 99}, {"x": 91}])
    env.close()
    assert time.perf_counter() - began < 8.0
