"""Checks of an environment that a YAML file declares around a program: few runs, each a question.

The program may take minutes, so the baseline is run twice and each parameter is moved once, to a
value that the program takes. What other checks look at (Gymnasium's contract, encodings,
recording) is the same for every declared environment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from archgym.check.program_runs import Move, ProgramRuns, difference, move_parameter
from archgym.check.result import (
    CheckFailed,
    CheckResult,
    UnpolishedError,
    chosen_names,
    run,
    run_all,
)
from archgym.declared import DeclaredEnvironment
from archgym.problem.spread import SPREAD
from archgym.registry import make
from archgym.simulators.external import available_cores

__all__ = ["check_program", "program_check_names"]

FORECAST_DESIGNS = 200
_FIRST = "can_be_made"
_FAR, _AT_ONCE = 0.4, 0.1
"""Looks at shares of a run so far apart should not come within this share of its time."""
_TIMED_S = 0.5
"""Shorter runs are mostly the start of the program, which says nothing of when it prints."""


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
    program = ProgramRuns(made[0])
    if program.env.plan.partial is None:
        names = [name for name in names if name != "partial"]
    checks = {name: partial(check, program) for name, check in _CHECKS.items() if name in names}
    return results + run_all(checks, on_result)


def program_check_names() -> list[str]:
    """Names of all checks, in the order in which they are made."""
    return [_FIRST, *_CHECKS]


def check_baseline_twice(program: ProgramRuns) -> str:
    """The baseline design runs, and twice gives the same, or how noisy it is."""
    noise = {name: share for name, share in program.noise().items() if share}
    if not noise:
        return "both runs gave the same"
    shown = ", ".join(f"{name} by {share:.2%}" for name, share in noise.items())
    timed = {one.name for one in program.env.plan.readings if one.kind == "seconds"}
    if noise.keys() <= timed - set(program.env.objective.metric_names()):
        return f"both runs gave the same, but for their time ({shown})"
    if program.env.source.declaration.noise is None:
        raise UnpolishedError(f"two runs differ in {shown}: noise: {{repeats: 3}} takes medians")
    return f"two medians differ in {shown}"


def check_metrics(program: ProgramRuns) -> str:
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


def check_partial(program: ProgramRuns) -> str:
    """What ``partial`` shows while the baseline runs."""
    program.baseline_twice()
    looks = [(share, seen) for share, seen in program.baseline_so_far.items() if seen]
    if not looks:
        partial = program.env.plan.partial
        assert partial is not None
        where = f"{partial.source} of stage {partial.stage}"
        reached = ", ".join(program.baseline_so_far)
        hint = f"shares reached: {reached}" if reached else "is 'of' the number at the end?"
        raise UnpolishedError(f"no metric was seen in {where} on the way; {hint}")
    shares = ", ".join(f"{float(share):.0%}" for share, _ in looks)
    first = ", ".join(f"{name} = {value:.6g}" for name, value in looks[0][1].items())
    text = f"metrics are seen at {shares}; at the first of them {first}"
    needed = program.env.objective.metric_names()
    unseen = [name for name in needed if not any(name in seen for _, seen in looks)]
    if unseen:
        raise UnpolishedError(
            f"{text}; {', '.join(unseen)} of the objective is not seen on the way, so no run can "
            "be stopped"
        )
    timed = program.seconds[-1] >= _TIMED_S
    apart = float(looks[-1][0]) - float(looks[0][0])
    if timed and apart >= _FAR and program.looking <= _AT_ONCE:
        raise UnpolishedError(
            f"{text}; all of that came within {program.looking:.0%} of the time: the program keeps "
            "its output back. It must flush each line; [stdbuf, -oL, PROGRAM, ...] makes many do so"
        )
    return text


def check_parameters(program: ProgramRuns) -> str:
    """Each parameter changes something when it is moved."""
    noise = program.noise()
    lines: list[str] = []
    idle: list[str] = []
    stuck: list[Move] = []
    failed = False
    for name in program.env.design_space.names:
        move = move_parameter(program, name)
        if move is None:
            continue
        if not move.after:
            stuck.append(move)
            continue
        base, moved = move.metrics
        changed = [
            f"{key} {base[key]:.4g} -> {value:.4g}"
            for key, value in moved.items()
            for spread in [f"{key}{SPREAD}"]
            if key in base
            and not key.endswith(SPREAD)
            and difference(base[key], value)
            > max(3 * noise.get(key, 0.0), 2 * base.get(spread, 0.0), 2 * moved.get(spread, 0.0))
        ]
        what = f"{name} {move.before[name]} -> {move.after[name]}"
        failed = failed or any(one.status != "illegal" for one in move.refused)
        also = f" ({move.refused_text()})" if move.refused else ""
        if changed:
            lines.append(f"{what}: {', '.join(changed[:3])}{also}")
        else:
            idle.append(f"{what}{also}")
    beyond = " by more than its spread" if program.env.source.declaration.noise else ""
    parts = [f"no metric changed{beyond} with {'; '.join(idle)}"] if idle else []
    parts += [f"{one.name} cannot be moved: {one.refused_text()}" for one in stuck]
    if lines:
        parts.append(f"{'Others: ' if parts else ''}{'; '.join(lines)}")
    text = ". ".join(parts)
    if any(one.status != "illegal" for move in stuck for one in move.refused):
        raise CheckFailed(text)
    if idle or stuck or failed:
        raise UnpolishedError(text)
    return text


def check_time(program: ProgramRuns) -> str:
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


_CHECKS: dict[str, Callable[[ProgramRuns], str]] = {
    "baseline_twice": check_baseline_twice,
    "metrics": check_metrics,
    "partial": check_partial,
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
