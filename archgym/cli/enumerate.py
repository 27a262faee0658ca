"""``archgym enumerate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import archgym
from archgym.cli import options
from archgym.cli.interruption import interruptible
from archgym.cli.output import line, paragraph, print_json, print_table
from archgym.cli.progress import shown_progress
from archgym.environment.environment import Environment
from archgym.errors import InvalidValueError
from archgym.problem.metrics import Metric, metric_named
from archgym.problem.scoring import Scorer

if TYPE_CHECKING:
    from archgym.simulators.tabular import Optimum, Table

__all__ = ["enumerate_"]

_MAX_POINTS = 30


def enumerate_(
    environment: options.EnvironmentName,
    out: Annotated[
        Path, typer.Option(help="Folder of the table; one that is unfinished is continued.")
    ],
    workload: options.Workload = None,
    space: options.Space = None,
    simulator: options.Simulator = None,
    arguments: options.Arguments = None,
    exclude: options.Exclude = None,
    include: options.Include = None,
    objective: Annotated[
        list[str] | None,
        typer.Option(help="Also find the optimum of this one; repeatable."),
    ] = None,
    pareto: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRICS", help="Find the Pareto set of these, as in 'time_ns energy_pj'."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; one for each CPU if left out.")
    ] = None,
    chunk: Annotated[
        int | None, typer.Option(min=1, help="Designs that are simulated at once.")
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="Refuse a space of more designs.")] = 10_000_000,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Evaluate a whole design space into a table, for simulator=tabular:DIR and exact optima."""
    from archgym.enumeration import enumerate_space
    from archgym.experiment.spec.checks import make_environment

    given = options.environment_arguments(
        arguments,
        workload=workload,
        space=space,
        simulator=simulator,
        exclude=exclude,
        include=include,
    )
    checked = make_environment(environment, given)
    goals = [options.parsed(text, "--objective") for text in objective or ()]
    goals += [_axes(checked, text) for text in pareto or ()]
    for one in goals:
        make_environment(environment, {**given, "objective": one})  # wrong ones stop it now
    with (
        interruptible(lambda: ["Stopped. The same command goes on with what is done."]),
        shown_progress(quiet) as progress,
    ):
        made = enumerate_space(
            environment, given, out, workers=workers, chunk=chunk, most=most, progress=progress
        )
    served = [
        make_environment(environment, {"simulator": f"tabular:{out}", "objective": one})
        for one in (given.get("objective"), *goals)
    ]
    data = _json(made, served, out)
    if json:
        print_json(data)
    else:
        _show(data)


def _axes(environment: Environment, text: str) -> dict[str, list[str]]:
    """An objective of several metrics, each better in its own direction."""
    names = text.replace(",", " ").split()
    if len(names) < 2:
        raise InvalidValueError(f"--pareto {text!r}: name two metrics or more")
    found: dict[str, list[str]] = {}
    for name in names:
        metric = metric_named(name, environment.metrics, "--pareto")
        found.setdefault(metric.direction, []).append(name)
    return found


def _json(made: Table, served: Sequence[Environment], out: Path) -> dict[str, Any]:
    from archgym.simulators.tabular import TABLE_FILE

    path = out / TABLE_FILE
    return {
        "archgym": archgym.__version__,
        "environment": made.header.environment,
        "settings": made.header.settings,
        "workload": made.header.workload_name,
        "simulator": made.header.simulator,
        "fixed": made.header.space.fixed,
        "designs": len(made),
        "failures": made.count_failures(),
        "distinct": [{"metrics": b.names, "outcomes": len(b.values)} for b in made.blocks],
        "table": str(path),
        "bytes": path.stat().st_size,
        "results": [_result(made, env) for env in served],
    }


def _result(made: Table, env: Environment) -> dict[str, Any]:
    """The optimum of an environment's objective, or its Pareto front."""
    from archgym.problem.goals import goal_label
    from archgym.simulators.tabular import pareto_front

    objective = env.objective
    scorer = Scorer(objective, env.metrics, env.baseline_metrics)
    base = dict(zip(scorer.metric_names, env.baseline_metrics.tolist(), strict=True))
    found: dict[str, Any] = {
        "objective": objective.to_json(),
        "goals": [goal_label(goal, env.metrics) for goal in objective.goals],
    }
    if len(objective.goals) > 1:
        front = pareto_front(made, env.design_space, scorer)
        return {**found, "front": [_optimum_json(one, scorer, env.metrics) for one in front]}
    if env.optimum is None:
        return {**found, "optimum": None}
    regret = scorer.regret(base, env.optimum.metrics)
    best = {**_optimum_json(env.optimum, scorer, env.metrics), "baseline_regret": regret}
    return {**found, "optimum": best}


def _optimum_json(one: Optimum, scorer: Any, metrics: Sequence[Metric]) -> dict[str, Any]:
    from archgym.problem.goals import natural

    row = [one.metrics.get(name, float("nan")) for name in scorer.metric_names]
    values = zip(scorer.objective.goals, scorer.score(row)[0], strict=True)
    return {
        "design": one.design,
        "designs": one.designs,
        "objectives": [natural(goal, metrics, value) for goal, value in values],
        "metrics": one.metrics,
    }


def _show(data: dict[str, Any]) -> None:
    on = f" on {data['workload']}" if data["workload"] else ""
    simulator = f"{data['simulator']['name']} {data['simulator']['version']}"
    paragraph(f"archgym {data['archgym']}: {data['environment']}{on}, simulator {simulator}")
    bad = ", ".join(f"{number:,} {status}" for status, number in data["failures"].items())
    outcomes = ", ".join(
        f"{block['outcomes']:,} distinct {_listed(block['metrics'])}" for block in data["distinct"]
    )
    paragraph(f"{data['designs']:,} designs{f' ({bad})' if bad else ''}: {outcomes}")
    size = f"{data['bytes'] / 1e6:.2f} MB, {data['bytes'] / data['designs']:.2f} bytes a design"
    line(f"{data['table']}: {size}")
    for result in data["results"]:
        limits = result["objective"].get("limits", [])
        where = f" with {', '.join(limits)}" if limits else ""
        goals = result["goals"]
        paragraph()
        if "front" in result:
            paragraph(f"Pareto front of {' and '.join(goals)}{where}", "bold")
            _show_front(goals, result["front"])
            continue
        paragraph(f"Exact optimum of {goals[0]}{where}", "bold")
        if result["optimum"] is None:
            paragraph("  no design is feasible")
        else:
            _show_optimum(goals[0], result["optimum"])


def _show_front(goals: Sequence[str], points: Sequence[dict[str, Any]]) -> None:
    from archgym.experiment.results.texts import design_text

    rows = [
        [
            *(f"{value:.6g}" for value in one["objectives"]),
            f"{one['designs']:,}",
            design_text(one["design"]),
        ]
        for one in points[:_MAX_POINTS]
    ]
    print_table([*(f">{goal}" for goal in goals), ">designs", "first design"], rows)
    if len(points) > _MAX_POINTS:
        line(f"... and {len(points) - _MAX_POINTS} points more; all of them with --json")


def _show_optimum(goal: str, best: dict[str, Any]) -> None:
    from archgym.experiment.results.texts import design_text

    paragraph(f"  {goal} = {best['objectives'][0]:.8g}")
    same = f"{best['designs']:,} designs" if best["designs"] > 1 else "one design"
    paragraph(f"  {same}, the baseline is {best['baseline_regret']:.2%} worse; the first:")
    paragraph("  " + design_text(best["design"]))
    shown = ", ".join(f"{name} {value:.6g}" for name, value in best["metrics"].items())
    paragraph("  " + shown, "dim")


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"outcomes in {len(names)} metrics"
