"""``archgym evaluate``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

import archgym
from archgym.cli import options
from archgym.cli.output import paragraph, print_json, print_table
from archgym.environment.environment import Environment
from archgym.errors import InvalidValueError, SimulationError
from archgym.evaluation.baseline import simulated_metrics
from archgym.evaluation.outcome import Outcome
from archgym.problem.spread import change_of
from archgym.registry import is_declaration

__all__ = ["evaluate"]


def evaluate(
    environment: options.EnvironmentName,
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Parameters; others as in the baseline."),
    ] = None,
    workload: options.Workload = None,
    objective: options.Objective = None,
    space: options.Space = None,
    simulator: options.Simulator = None,
    fidelity: Annotated[
        float, typer.Option(help="How much is simulated, of the baseline too: see archgym show.")
    ] = 1.0,
    arguments: options.Arguments = None,
    exclude: options.Exclude = None,
    record: Annotated[Path | None, typer.Option(help="Dataset that takes the evaluation.")] = None,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep",
            help="Of a YAML file: keep the folders of the runs, with what was run and printed.",
        ),
    ] = False,
    json: options.Json = False,
) -> None:
    """Evaluate one design. The exit status is 1 if its simulation fails or takes too long."""
    from archgym.experiment.spec.checks import make_environment

    if keep:
        if not is_declaration(environment):
            raise InvalidValueError("--keep is for an environment that a YAML file declares")
        arguments = [*(arguments or ()), "keep=always"]
    goals = None if objective is None else options.parsed(objective, "--objective")
    given = options.environment_arguments(
        arguments,
        workload=workload,
        objective=goals,
        space=space,
        simulator=simulator,
        exclude=exclude,
        record=record,
    )
    env = make_environment(environment, given)
    chosen = options.pairs(values, "")
    own = given.get("fixed") or {}
    if named := [n for n in chosen if n in env.design_space.fixed and n not in own]:
        # What the environment gives may be another one here: the user names it.
        env = make_environment(
            environment, {**given, "include": [*given.get("include", ()), *named]}
        )
    baseline = {k: v for k, v in env.baseline.items() if k in env.design_space}
    design = {name: env.design_space.parse(name, text) for name, text in chosen.items()}
    known = ", ".join(f"{one.value:.12g}" for one in env.fidelities)
    if fidelity not in [one.value for one in env.fidelities]:
        raise InvalidValueError(f"fidelity {fidelity!r} is not among those of {env.name}: {known}")
    design = {**baseline, **env.baseline_design, **design}
    env.design_space.codes(design)  # a mistake in it is to be told before the baseline is run
    base, baseline_reason = _baseline(env, fidelity)
    of_baseline = _kept(env)
    outcome = env.evaluate(design, fidelity)
    kept = {"kept": _kept(env)[len(of_baseline) :], "kept_of_baseline": of_baseline}
    unrecorded = record is not None and env.record is None
    env.close()
    if env.record is not None:
        from archgym.data import Dataset

        Dataset(env.record).seal()
    data = {**_json(env, outcome, base), "baseline_reason": baseline_reason}
    if json:
        print_json({**data, **kept} if keep else data)
    else:
        _show(env, outcome, data, chosen)
        if unrecorded:
            paragraph(f"not recorded in {record}, which needs the baseline design", "yellow")
        for key, whose in (("kept", "this design"), ("kept_of_baseline", "the baseline design")):
            for folder in kept[key]:
                paragraph(f"kept of {whose}: {folder}")
        if keep:
            paragraph("commands.txt in a folder says what was run, STAGE.stdout what was printed")
    if outcome.status not in ("ok", "illegal") or unrecorded:
        raise typer.Exit(1)


def _baseline(env: Environment, fidelity: float) -> tuple[NDArray[np.float64], str]:
    """Metrics of the baseline design at a fidelity, and why there are none; empty if there are.

    Rewards are relative to them, but for a recorded trial, whose dataset holds the full baseline.
    Where that cannot be simulated, the environment records nothing.
    """
    design = env.design_space.designs([env.baseline_design])
    found, reason = np.full(len(env.metrics), np.nan), ""
    try:
        found = simulated_metrics(design, env.simulator, env.metrics, fidelity=fidelity)
    except SimulationError as error:
        reason = str(error)
    if env.record is not None and fidelity < 1:
        with contextlib.suppress(SimulationError):
            env.simulate_baseline()
            return found, reason
        env.record = None
    elif reason:
        env.record = None
    env.baseline_metrics = found
    return found, reason


def _json(env: Environment, outcome: Outcome, base: NDArray[np.float64]) -> dict[str, Any]:
    of_outcome = ("fidelity", "design", "status", "reason", "feasible", "reward", "metrics")
    values = base.tolist()
    baseline = {m.name: v if v == v else None for m, v in zip(env.metrics, values, strict=True)}
    return {
        "archgym": archgym.__version__,
        "environment": env.name,
        "workload": env.workload_name,
        "objective": env.objective.to_json(),
        **{name: getattr(outcome, name) for name in of_outcome},
        "baseline_metrics": baseline,
        "simulation_s": outcome.simulation_s,
        "assumptions": env.assumptions(outcome.design) if outcome.status == "ok" else [],
        "caveats": [*env.caveats_of(outcome.design), *env.warnings],
    }


def _kept(env: Environment) -> list[str]:
    """Folders of runs that an environment around a program has kept."""
    return [str(folder) for folder in getattr(env, "kept", ())]


def _show(env: Environment, outcome: Outcome, data: dict[str, Any], chosen: Iterable[str]) -> None:
    on = f" on {env.workload_name}" if env.workload_name else ""
    at = f", fidelity {outcome.fidelity:g}" if outcome.fidelity < 1 else ""
    settings = "".join(
        f", {name}={value}"
        for name, value in env.settings.items()
        if value and not name.endswith("_sha256")
    )
    head = f"archgym {archgym.__version__}: {env.name}{on}, simulator {env.simulator.name}"
    paragraph(f"{head}{at}{settings}")
    paragraph(" ".join(f"{name}={value}" for name, value in outcome.design.items()))
    for name in chosen:
        if name not in outcome.design:
            paragraph(f"{name} does not act here: it does when {env.design_space[name].when}")
    values = [(outcome.metrics.get(m.name), data["baseline_metrics"][m.name]) for m in env.metrics]
    print_table(
        ("metric", ">value", "unit", ">baseline", ">change"),
        [
            (metric.name, _text(value), metric.unit, _text(base), change)
            for metric, (value, base) in zip(env.metrics, values, strict=True)
            for change in [change_of(metric.name, outcome.metrics, data["baseline_metrics"])]
        ],
    )
    for assumption in data["assumptions"]:
        paragraph(f"assumed: {assumption}")
    for caveat in data["caveats"]:
        paragraph(f"note: {caveat}", "yellow")
    feasible = "feasible" if outcome.feasible else "not feasible"
    reason = f" ({outcome.reason})" if outcome.reason else ""
    reward = f", reward {outcome.reward:.4f}" if outcome.reward == outcome.reward else ""
    paragraph(f"status {outcome.status}, {feasible}{reason}{reward}")
    if data["baseline_reason"]:
        paragraph(f"nothing to compare with: {data['baseline_reason']}", "yellow")


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
