"""Checks of an environment that a YAML file declares around a program: few runs, each a question.

The program may take minutes, so the baseline is run twice and each parameter is moved once, to a
value that the program takes. What other checks look at (Gymnasium's contract, encodings,
recording) is the same for every declared environment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from archgym.check.result import (
    CheckFailed,
    CheckResult,
    UnpolishedError,
    chosen_names,
    run,
    run_all,
)
from archgym.declared import DeclaredEnvironment
from archgym.environment.environment import Environment
from archgym.problem.simulator import SimulationResult
from archgym.registry import make
from archgym.simulators.external import available_cores
from archgym.simulators.result import read_result

__all__ = ["check_program", "program_check_names"]

FORECAST_DESIGNS = 200
_DRAWN = 200
_MAX_STARTS = 5
"""Designs from which it is tried to move a parameter that does not act in the baseline."""
_FIRST = "can_be_made"


def check_program(
    path: str,
    *,
    only: Sequence[str] = (),
    on_result: Callable[[CheckResult], None] | None = None,
    **kwargs: Any,
) -> list[CheckResult]:
    """Runs the checks and reports; raises nothing, whatever the program does.

    Args:
        path: of the YAML file.
        only: names of checks (:func:`program_check_names`); all, if there are none.
        on_result: called with each result as soon as it is there.
        **kwargs: arguments of the environment.

    Raises:
        UnknownNameError: if there is no such check.
    """
    names = chosen_names(only, program_check_names(), "declared environments")
    made: list[DeclaredEnvironment] = []
    first = run(_FIRST, lambda: _made(path, kwargs, made))
    results = [first] if _FIRST in names or not first.passed else []
    if results and on_result is not None:
        on_result(first)
    if not first.passed:
        return results
    program = _Program(made[0])
    checks = {name: partial(check, program) for name, check in _CHECKS.items() if name in names}
    return results + run_all(checks, on_result)


def program_check_names() -> list[str]:
    """Names of all checks, in the order in which they are made."""
    return [_FIRST, *_CHECKS]


class _Program:
    """Runs designs of an environment, each as often as it is asked for."""

    def __init__(self, env: DeclaredEnvironment) -> None:
        self.env = env
        self.seconds: list[float] = []
        self._twice: list[dict[str, float]] | None = None

    def metrics(self, design: Mapping[str, Any]) -> dict[str, float]:
        """Metrics of a design; those without a value are left out.

        Raises:
            _RefusedError: if it has none.
        """
        designs = self.env.design_space.designs([design])
        result: SimulationResult
        ((result, seconds),) = self.env.simulator.simulate(designs)
        self.seconds.append(seconds)
        status, values, reason = read_result(
            result, self.env.metrics, self.env.simulator.metric_names
        )
        if reason:
            raise _RefusedError(design, status.label, reason)
        pairs = zip(self.env.metrics, values, strict=True)
        return {metric.name: value for metric, value in pairs if value == value}

    def baseline_twice(self) -> list[dict[str, float]]:
        """Metrics of the baseline, run twice."""
        if self._twice is None:
            self._twice = [self.metrics(self.env.baseline_design) for _ in range(2)]
        return self._twice

    def before(self, design: Mapping[str, Any]) -> dict[str, float]:
        """As :meth:`metrics`, but the baseline is not run again."""
        if design == self.env.baseline_design:
            return self.baseline_twice()[0]
        return self.metrics(design)

    def noise(self) -> dict[str, float]:
        """Relative difference of each metric between the two runs of the baseline."""
        first, second = self.baseline_twice()
        return {name: _difference(first[name], second.get(name, first[name])) for name in first}


class _RefusedError(CheckFailed):
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
class _Move:
    """A parameter that was moved.

    Attributes:
        name: which one.
        refused: designs that the program has not taken.
        before: the design from which it was moved.
        after: the other design; empty if the program has taken none.
        metrics: of both designs.
    """

    name: str
    refused: Sequence[_RefusedError]
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    metrics: tuple[Mapping[str, float], Mapping[str, float]] = ({}, {})

    def refused_text(self) -> str:
        """The values that were refused, and why the first one was."""
        values = dict.fromkeys(str(one.design[self.name]) for one in self.refused)
        reason = " | ".join(self.refused[0].reason.splitlines())
        return f"refused: {', '.join(values)}, {self.refused[0].status}: {reason}"


def check_baseline_twice(program: _Program) -> str:
    """The baseline design runs, and twice gives the same, or how noisy it is."""
    noise = {name: share for name, share in program.noise().items() if share}
    if not noise:
        return "both runs gave the same"
    shown = ", ".join(f"{name} by {share:.2%}" for name, share in noise.items())
    if program.env.source.declaration.noise is None:
        raise UnpolishedError(f"two runs differ in {shown}: noise: {{repeats: 3}} takes medians")
    return f"two medians differ in {shown}"


def check_metrics(program: _Program) -> str:
    """Every metric has a value."""
    found, env = program.baseline_twice()[0], program.env
    shown = [
        f"{metric.name} = {found[metric.name]:.6g} {metric.unit}".strip()
        for metric in env.metrics
        if metric.name in found
    ]
    missing = [metric.name for metric in env.metrics if metric.name not in found]
    if missing:
        raise UnpolishedError(f"{', '.join(shown)}; no value in the baseline: {', '.join(missing)}")
    return ", ".join(shown)


def check_parameters(program: _Program) -> str:
    """Each parameter changes something when it is moved."""
    noise = program.noise()
    lines: list[str] = []
    idle: list[str] = []
    stuck: list[_Move] = []
    for name in program.env.design_space.names:
        move = _move(program, name)
        if move is None:
            continue
        if not move.after:
            stuck.append(move)
            continue
        base, moved = move.metrics
        changed = [
            f"{key} {base[key]:.4g} -> {value:.4g}"
            for key, value in moved.items()
            if key in base and _difference(base[key], value) > 3 * noise.get(key, 0.0)
        ]
        what = f"{name} {move.before[name]} -> {move.after[name]}"
        also = f" ({move.refused_text()})" if move.refused else ""
        if changed:
            lines.append(f"{what}: {', '.join(changed[:3])}{also}")
        else:
            idle.append(f"{what}{also}")
    parts = [f"no metric changed with {'; '.join(idle)}"] if idle else []
    parts += [f"{one.name} cannot be moved: {one.refused_text()}" for one in stuck]
    if lines:
        parts.append(f"{'Others: ' if parts else ''}{'; '.join(lines)}")
    text = ". ".join(parts)
    if any(one.status != "illegal" for move in stuck for one in move.refused):
        raise CheckFailed(text)
    if idle or stuck:
        raise UnpolishedError(text)
    return text


def check_time(program: _Program) -> str:
    """How long a design takes, and what a search takes on some workers."""
    program.baseline_twice()
    each, cores = float(np.mean(program.seconds)), available_cores()
    whole = each * FORECAST_DESIGNS
    shown = [f"{duration(whole / workers)} on {workers}" for workers in sorted({1, cores, 16})]
    return (
        f"{each:.3g} s a design (mean of {len(program.seconds)}, the longest "
        f"{max(program.seconds):.3g} s); a search of {FORECAST_DESIGNS} designs takes "
        f"{', '.join(shown)} workers"
    )


_CHECKS: dict[str, Callable[[_Program], str]] = {
    "baseline_twice": check_baseline_twice,
    "metrics": check_metrics,
    "parameters": check_parameters,
    "time": check_time,
}


def duration(seconds: float) -> str:
    """A duration as people read it.

    >>> duration(42), duration(5400), duration(200000)
    ('42 s', '1.5 h', '2.3 days')
    """
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= size * (2 if unit == "days" else 1):
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.2g} s"


def _made(path: str, kwargs: Mapping[str, Any], made: list[DeclaredEnvironment]) -> str:
    env = make(path, **kwargs)
    assert isinstance(env, DeclaredEnvironment)
    made.append(env)
    return (
        f"{env.name}: {env.design_space!r}, {len(env.metrics)} metrics, goals: "
        f"{', '.join(env.objective.names)}, version {env.simulator.version}"
    )


def _move(program: _Program, name: str) -> _Move | None:
    """Moves a parameter to the first value that the program takes; ``None`` if it has only one.

    It is moved from the baseline if possible, or else from another design.
    """
    refused: list[_RefusedError] = []
    for before, others in islice(_neighbours(program.env, name), _MAX_STARTS):
        try:
            base = program.before(before)
        except _RefusedError as refusal:
            refused.append(refusal)
            continue
        refused = []
        for after in others:
            try:
                return _Move(name, refused, before, after, (base, program.metrics(after)))
            except _RefusedError as refusal:
                refused.append(refusal)
                if refusal.status == "timeout":
                    break
        break
    return _Move(name, refused) if refused else None


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


def _difference(one: float, other: float) -> float:
    return abs(one - other) / max(abs(one), abs(other)) if one != other else 0.0


def _text(design: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in design.items())
