"""``archgym evaluate``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import archgym
from archgym.cli.output import console, print_json, table

if TYPE_CHECKING:
    from archgym.environment.environment import Environment
    from archgym.evaluation.outcome import Outcome

__all__ = ["add_to", "evaluate", "pairs"]


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("evaluate")(evaluate)


def evaluate(
    environment: Annotated[
        str, typer.Argument(metavar="ENV", help="A registered name, or module:Class.")
    ],
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Parameters; others as in the baseline."),
    ] = None,
    workload: Annotated[str | None, typer.Option(help="A name, a path, or a YAML mapping.")] = None,
    objective: Annotated[
        str | None, typer.Option(help="As in 'minimize energy_pj', or a YAML mapping.")
    ] = None,
    space: Annotated[str | None, typer.Option(help="Name of a design space.")] = None,
    simulator: Annotated[str | None, typer.Option(help="Name of a simulator.")] = None,
    fidelity: Annotated[
        float, typer.Option(help="How much of the simulation to run, as archgym show lists it.")
    ] = 1.0,
    arguments: Annotated[
        list[str] | None,
        typer.Option(
            "--arg",
            metavar="KEY=VALUE",
            help="Any other argument of the environment, as in memory=DDR3-1600; repeatable.",
        ),
    ] = None,
    record: Annotated[Path | None, typer.Option(help="Dataset that takes the evaluation.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Evaluate one design. The exit status is 1 if its simulation fails or takes too long."""
    from archgym.experiment.spec.checks import make_environment
    from archgym.experiment.spec.load import parse_value

    given = {
        "workload": None if workload is None else parse_value(workload, "--workload"),
        "objective": None if objective is None else parse_value(objective, "--objective"),
        "space": space,
        "simulator": simulator,
        "record": record,
    }
    given |= {name: parse_value(text, f"--arg {name}") for name, text in pairs(arguments, "--arg ")}
    env = make_environment(environment, {k: v for k, v in given.items() if v is not None})
    chosen = dict(pairs(values, ""))
    outcome = env.evaluate(_design(env, chosen), fidelity)
    env.close()
    if record is not None:
        from archgym.data import Dataset

        Dataset(record).seal()
    if json:
        print_json(_json(env, outcome))
    else:
        _draw(env, outcome, chosen)
    if outcome.status not in ("ok", "illegal"):
        raise typer.Exit(1)


def pairs(texts: list[str] | None, prefix: str) -> list[tuple[str, str]]:
    """Texts of the form key=value, taken apart.

    Raises:
        InvalidValueError: for one of another form.
    """
    from archgym.errors import InvalidValueError

    found: list[tuple[str, str]] = []
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InvalidValueError(f"{prefix}{text!r} is not of the form key=value")
        if name in dict(found):
            raise InvalidValueError(f"{prefix}{name} is given twice")
        found.append((name, value))
    return found


def _design(env: Environment, values: dict[str, str]) -> dict[str, Any]:
    space = env.design_space
    baseline = {k: v for k, v in env.baseline.items() if k in space}
    return {
        **baseline,
        **env.baseline_design,
        **{name: space[name].parse(text) for name, text in values.items()},
    }


def _json(env: Environment, outcome: Outcome) -> dict[str, Any]:
    return {
        "archgym": archgym.__version__,
        "environment": env.name,
        "workload": env.workload_name,
        "objective": env.objective.to_json(),
        "fidelity": outcome.fidelity,
        "design": outcome.design,
        "status": outcome.status,
        "reason": outcome.reason,
        "feasible": outcome.feasible,
        "reward": outcome.reward,
        "metrics": outcome.metrics,
        "baseline_metrics": _baseline(env),
        "simulation_s": outcome.simulation_s,
        "assumptions": _assumptions(env, outcome),
        "caveats": env.caveats_of(outcome.design),
    }


def _assumptions(env: Environment, outcome: Outcome) -> list[str]:
    return env.assumptions(outcome.design) if outcome.status == "ok" else []


def _baseline(env: Environment) -> dict[str, float | None]:
    values = env.baseline_metrics.tolist()
    return {m.name: v if v == v else None for m, v in zip(env.metrics, values, strict=True)}


def _told(env: Environment) -> str:
    """The settings of the environment under which metrics hold."""
    told = {k: v for k, v in env.settings.items() if v and not k.endswith("_sha256")}
    return "".join(f", {name}={value}" for name, value in told.items())


def _draw(env: Environment, outcome: Outcome, chosen: Iterable[str]) -> None:
    from rich.text import Text

    from archgym.problem.metrics import change_text

    out = console()
    on = f" on {env.workload_name}" if env.workload_name else ""
    at = f", fidelity {outcome.fidelity:g}" if outcome.fidelity < 1 else ""
    out.print(
        Text(
            f"archgym {archgym.__version__}: {env.name}{on}, simulator {env.simulator.name}{at}"
            f"{_told(env)}"
        )
    )
    out.print(Text(" ".join(f"{name}={value}" for name, value in outcome.design.items())))
    for name in chosen:
        if name not in outcome.design:
            out.print(Text(f"{name} does not act here: it does when {env.design_space[name].when}"))
    baseline = _baseline(env)
    made = table("metric", ">value", "unit", ">baseline", ">change")
    for metric in env.metrics:
        value, base = outcome.metrics.get(metric.name), baseline[metric.name]
        made.add_row(
            metric.name,
            "-" if value is None else f"{value:.6g}",
            metric.unit,
            "-" if base is None else f"{base:.6g}",
            change_text(value, base),
        )
    out.print(made)
    for assumption in _assumptions(env, outcome):
        out.print(Text(f"assumed: {assumption}"))
    for caveat in env.caveats_of(outcome.design):
        out.print(Text(f"note: {caveat}", style="yellow"))
    verdict = "feasible" if outcome.feasible else "not feasible"
    reason = f" ({outcome.reason})" if outcome.reason else ""
    out.print(Text(f"status {outcome.status}, {verdict}{reason}, reward {outcome.reward:.4f}"))
