"""An environment that takes its time, and agents that fail or keep a diary, for the runner's tests.

Found as ``runner_helpers:NAME`` by processes with this folder on their path.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from archgym.agent import Sampler
from archgym.environment.environment import Environment
from archgym.evaluation.outcome import Outcomes
from archgym.problem.metrics import Metric
from archgym.simulators.external import run_program
from archgym.space import Designs, DesignSpace, Integer, Ordinal, Rule, param


class Slow(Environment):
    """A closed form that takes ``seconds`` a design; one design in ten is illegal."""

    design_space = DesignSpace(
        [Integer("x", 0, 63), Integer("y", 0, 63), Ordinal("z", [1, 2, 4, 8])],
        [Rule("not_both", param("x") + param("y") <= 100, "too large together")],
    )
    metrics: ClassVar = (
        Metric("time_ns", "ns", "minimize"),
        Metric("area_um2", "um2", "minimize"),
    )
    default_objective: ClassVar = "minimize time_ns"
    baseline: ClassVar = {"x": 0, "y": 0, "z": 1}

    incidental_arguments: ClassVar[tuple[str, ...]] = ("seconds",)

    def __init__(self, *, seconds: float = 0.004, **arguments: Any) -> None:
        self.seconds = seconds
        super().__init__(**arguments)

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        time.sleep(self.seconds)
        x, y, z = design["x"], design["y"], design["z"]
        return {
            "time_ns": 1.0 + (x - 40) ** 2 + (y - 17) ** 2 + 100.0 / z,
            "area_um2": 1.0 + x + 2.0 * y + z,
        }


class Moody(Slow):
    """Some designs raise, give NaN, hang or end the process; ``log`` takes a line a simulation."""

    incidental_arguments: ClassVar = ("seconds", "log", "hangs", "dies")

    def __init__(self, *, log: str = "", hangs: bool = False, dies: bool = False, **arguments: Any):
        self.log, self.hangs, self.dies = log, hangs, dies
        super().__init__(**arguments)

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        if self.log:
            with open(self.log, "a", encoding="utf-8") as file:
                file.write(f"{os.getpid()}\n")
        x, y = design["x"], design["y"]
        if x % 16 == 3:
            raise ValueError("this design cannot be")
        if self.hangs and x % 16 == 7 and y % 16 == 1:
            time.sleep(3600)
        if self.dies and x % 16 == 9:
            os._exit(1)
        metrics = super().simulate(design)
        return {**metrics, "time_ns": float("nan")} if x % 16 == 5 else metrics


class Starting(Slow):
    """Its first simulations of all, in whatever process, go wrong; the ``folder`` counts them.

    ``wrong`` says how: ``hangs`` and ``dies`` as a whole process does, ``slow`` and ``crashes`` as
    an external program does. Of every simulation that comes to its end, the folder's file
    ``done`` holds the design.
    """

    incidental_arguments: ClassVar = ("seconds", "folder", "wrong", "times")

    def __init__(self, *, folder: str, wrong: str, times: int = 1, **arguments: Any) -> None:
        self.folder, self.wrong, self.times = Path(folder), wrong, times
        super().__init__(**arguments)

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        with open(self.folder / "begun", "a+", encoding="utf-8") as begun:
            begun.write("once\n")
            begun.flush()
            begun.seek(0)
            broken = len(begun.readlines()) <= self.times
        if broken and self.wrong == "hangs":
            time.sleep(3600)
        if broken and self.wrong == "dies":
            os._exit(1)
        late = "30" if broken and self.wrong == "slow" else "0"
        program = "false" if broken and self.wrong == "crashes" else "sleep"
        run_program([shutil.which(program) or program, late], self.folder, time_limit_s=0.5)
        with open(self.folder / "done", "a", encoding="utf-8") as done:
            done.write(json.dumps(design) + "\n")
        return super().simulate(design)


class Uneven(Slow):
    """Takes ``x`` times ``pace`` seconds; ``log`` takes a line for each design that has ended."""

    incidental_arguments: ClassVar = ("seconds", "log", "pace")

    def __init__(self, *, log: str = "", pace: float = 0.1, **arguments: Any) -> None:
        self.log, self.pace = log, pace
        super().__init__(**arguments)

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        time.sleep(self.pace * design["x"])
        metrics = super().simulate(design)
        if self.log:
            with open(self.log, "a", encoding="utf-8") as file:
                file.write(f"{os.getpid()} {design['x']} {design['y']} {design['z']}\n")
        return metrics


class Lethal(Slow):
    """Ends whatever process simulates it once it is past the baseline."""

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        if design != self.baseline:
            os._exit(1)
        return super().simulate(design)


class Diary(Sampler):
    """Random designs, some of them twice; with ARCHGYM_DIARY set, writes down what it is told."""

    name = "diary"

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._rng = np.random.default_rng(self.seed)
        self._told = 0

    def ask(self, n: int) -> Designs:
        return self.space.sample(n, self._rng)

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        self._told += len(designs)
        folder = os.environ.get("ARCHGYM_DIARY")
        if folder:
            path = os.path.join(folder, f"{os.getpid()}-{self.seed}")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"{self._told}\n")


class Pondering(Diary):
    """Once it was told of a design, it proposes no other while the file ARCHGYM_PONDER is there."""

    name = "pondering"

    def ask(self, n: int) -> Designs:
        while self._told and os.path.exists(os.environ.get("ARCHGYM_PONDER", "")):
            time.sleep(0.05)
        return super().ask(n)


class Tired(Diary):
    """Has nothing more to propose after five designs, if its seed is odd."""

    name = "tired"

    def ask(self, n: int) -> Designs:
        return super().ask(n if self.seed % 2 == 0 or self._told < 5 else 0)


class Failing(Diary):
    """Fails after ten designs, if its seed is odd."""

    name = "failing"

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        super().tell(designs, outcomes)
        if self.seed % 2 and self._told >= 10:
            raise RuntimeError("odd seeds fail")
