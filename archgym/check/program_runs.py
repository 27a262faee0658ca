"""Runs of a declared environment that checks ask for: the baseline twice, one parameter moved."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from archgym.check.result import CheckFailed
from archgym.declared import DeclaredEnvironment
from archgym.environment.environment import Environment
from archgym.problem.simulator import SimulationResult
from archgym.simulators.early_stopping import SoFar, watching
from archgym.simulators.result import read_result

__all__ = ["Move", "ProgramRuns", "RefusedDesignError", "difference", "move_parameter"]

_DRAWN = 200
_MAX_STARTS = 5
"""Designs from which it is tried to move a parameter that does not act in the baseline."""


class ProgramRuns:
    """Runs designs of an environment, each as often as it is asked for.

    Attributes:
        seconds: that each run took.
        so_far: metrics that the last run had on the way, by progress.
        baseline_so_far: those of the baseline.
        looking: share of the time of the baseline's run between the first look and the last one.
    """

    def __init__(self, env: DeclaredEnvironment) -> None:
        self.env = env
        self.seconds: list[float] = []
        self.so_far: SoFar = {}
        self.baseline_so_far: SoFar = {}
        self.looking = self._looking = 0.0
        self._twice: list[dict[str, float]] | None = None
        self._refused: RefusedDesignError | None = None

    def metrics(self, design: Mapping[str, Any]) -> dict[str, float]:
        """Metrics of a design; those without a value are left out.

        Raises:
            RefusedDesignError: if it has none.
        """
        designs = self.env.design_space.designs([design])
        result: SimulationResult
        began = time.monotonic()
        with watching({}) as watch:
            ((result, seconds),) = self.env.simulator.simulate(designs)
        self.so_far = watch.so_far
        looks = watch.looked_at[-1] - watch.looked_at[0] if watch.looked_at else 0.0
        self._looking = looks / max(time.monotonic() - began, 1e-9)
        self.seconds.append(seconds)
        status, values, reason = read_result(
            result, self.env.metrics, self.env.simulator.metric_names
        )
        if reason:
            raise RefusedDesignError(design, status.label, reason)
        pairs = zip(self.env.metrics, values, strict=True)
        return {metric.name: value for metric, value in pairs if value == value}

    def baseline_twice(self) -> list[dict[str, float]]:
        """Metrics of the baseline, run twice.

        Raises:
            RefusedDesignError: if it has none; the reason is given the first time.
        """
        if self._refused is not None:
            design, status = self._refused.design, self._refused.status
            raise RefusedDesignError(design, status, "the baseline, see above")
        if self._twice is None:
            try:
                self._twice = [self.metrics(self.env.baseline_design) for _ in range(2)]
            except RefusedDesignError as error:
                self._refused = error
                raise
            self.baseline_so_far, self.looking = self.so_far, self._looking
        return self._twice

    def before(self, design: Mapping[str, Any]) -> dict[str, float]:
        """As :meth:`metrics`, but the baseline is not run again."""
        if design == self.env.baseline_design:
            return self.baseline_twice()[0]
        return self.metrics(design)

    def noise(self) -> dict[str, float]:
        """Relative difference of each metric between the two runs of the baseline."""
        first, second = self.baseline_twice()
        return {name: difference(first[name], second.get(name, first[name])) for name in first}


class RefusedDesignError(CheckFailed):
    """A design that has no metrics.

    Attributes:
        design: which one.
        status: its label: illegal, failed or timeout.
        reason: why.
    """

    def __init__(self, design: Mapping[str, Any], status: str, reason: str) -> None:
        self.design, self.status, self.reason = design, status, reason
        super().__init__(f"{_text(design)}: {status}: {reason}")


@dataclass
class Move:
    """A parameter that was moved.

    Attributes:
        name: which one.
        refused: designs that the program has not taken.
        before: the design from which it was moved.
        after: the other design; empty if the program has taken none.
        metrics: of both designs.
    """

    name: str
    refused: Sequence[RefusedDesignError]
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    metrics: tuple[Mapping[str, float], Mapping[str, float]] = ({}, {})

    def refused_text(self) -> str:
        """The values that were refused, and why the first one was."""
        values = dict.fromkeys(str(one.design[self.name]) for one in self.refused)
        reason = " | ".join(self.refused[0].reason.splitlines())
        return f"refused: {', '.join(values)}, {self.refused[0].status}: {reason}"


def move_parameter(program: ProgramRuns, name: str) -> Move | None:
    """Moves a parameter to the first value that the program takes; ``None`` if it has only one.

    It is moved from the baseline if possible, or else from another design.
    """
    refused: list[RefusedDesignError] = []
    for before, others in islice(_neighbours(program.env, name), _MAX_STARTS):
        try:
            base = program.before(before)
        except RefusedDesignError as refusal:
            refused.append(refusal)
            continue
        refused = []
        for after in others:
            try:
                return Move(name, refused, before, after, (base, program.metrics(after)))
            except RefusedDesignError as refusal:
                refused.append(refusal)
                if refusal.status == "timeout":
                    break
        break
    return Move(name, refused) if refused else None


def _neighbours(
    env: Environment, name: str
) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Legal designs, each with legal ones that differ in one parameter: far, then ever farther."""
    space = env.design_space
    if name in space.fixed or space[name].size < 2:
        return
    first = {one.name: one.value(0) for one in space.parameters}
    drawn = space.sample(_DRAWN, np.random.default_rng(0))
    parameter = space[name]
    for start in [env.baseline_design, *drawn]:
        if name not in start:
            continue
        code, last = parameter.code(start[name]), parameter.size - 1
        near = {max(code - 1, 0), min(code + 1, last), 0, parameter.size // 2, last} - {code}
        levels = sorted(near, key=lambda level: abs(level - code))
        designs = (
            space.canonical({**first, **env.baseline, **start, name: parameter.value(level)})
            for level in [levels[-1], *levels[:-1]]
        )
        legal = [design for design in designs if not space.broken_rule(design)]
        if legal:
            yield start, legal


def _text(design: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in design.items())


def difference(one: float, other: float) -> float:
    """By which share of the larger one two values differ."""
    return abs(one - other) / max(abs(one), abs(other)) if one != other else 0.0
