"""``archgym proxy collect-workloads`` and ``start``: proxies that know workloads by features."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import archgym
from archgym.cli import options as common
from archgym.cli.output import echo, print_json, print_table
from archgym.cli.progress import clocked
from archgym.cli.proxy import options as own
from archgym.environment.environment import Environment
from archgym.environment.recorded import recorded_settings
from archgym.errors import InvalidValueError
from archgym.problem.goals import direction, goal_label, natural
from archgym.problem.scoring import Scorer
from archgym.registry import environment_class, make

__all__ = ["collect_workloads", "start"]

_SHOWN = 3


def collect_workloads(
    environment: Annotated[str, typer.Argument(metavar="ENV", help="A registered name.")],
    record: Annotated[Path, typer.Option(help="Dataset to write.")],
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", help="A workload; repeatable. By default varied ones."),
    ] = None,
    objective: Annotated[
        list[str] | None,
        typer.Option("--objective", help="What a search seeks on each workload; repeatable."),
    ] = None,
    drawn: Annotated[int, typer.Option(min=0, help="Random designs of each workload.")] = 200,
    searched: Annotated[int, typer.Option(min=1, help="Designs that each search simulates.")] = 250,
    crossed: Annotated[
        int, typer.Option(min=1, help="Best designs of each search that all workloads simulate.")
    ] = 4,
    agent: Annotated[str, typer.Option(help="Agent that searches.")] = "auto",
    hyperparameters: common.Hyperparameters = None,
    arguments: common.Arguments = None,
    exclude: common.Exclude = None,
    seed: common.Seed = 0,
    quiet: common.Quiet = False,
) -> None:
    """Simulate designs on many workloads, for a proxy that predicts ones it has not seen.

    Settings that follow from the objective, such as a mapper, are those of the first one.
    """
    from archgym.data import Dataset
    from archgym.proxy.training.workload_collection import collect_workloads as collect

    given = common.environment_arguments(arguments, exclude=exclude)
    cls = environment_class(environment)
    workloads = [common.parsed(text, "--workload") for text in workload or []]
    workloads = workloads or list(cls.varied_workloads())
    if not workloads:
        raise InvalidValueError(f"{environment} has no varied workloads: name them (--workload)")
    objectives = [common.parsed(text, "--objective") for text in objective or []] or [None]
    first = make(environment, workload=workloads[0], objective=objectives[0], **given)
    settings = {**recorded_settings(type(first), first.settings), **given}

    def made(workload: Any, objective: Any) -> archgym.Environment:
        return make(environment, workload=workload, objective=objective, record=record, **settings)

    n = collect(
        *(made, workloads, objectives),
        drawn=drawn,
        searched=searched,
        crossed=crossed,
        agent=agent,
        hyperparameters=common.parsed_pairs(hyperparameters, "--hyperparameter"),
        seed=seed,
        progress=None if quiet else clocked(),
    )
    Dataset(record).seal()
    echo(
        f"{record}: {len(workloads)} workloads, {n:,} designs on all of them; train with "
        f"archgym proxy train {record} --per workload-features --out FILE"
    )


def start(
    file: own.File,
    workload: Annotated[
        str, typer.Option(help="A workload that the proxy has not seen: a name, path or mapping.")
    ],
    objective: common.Objective = None,
    n: Annotated[int, typer.Option("--designs", min=1, help="Number of designs.")] = 5,
    record: Annotated[
        Path | None, typer.Option(help="Dataset that takes the simulated designs.")
    ] = None,
    read_files: common.ReadFiles = False,
    json: common.Json = False,
) -> None:
    """Simulate the designs with which a search on an unseen workload should begin."""
    from archgym.experiment.results.reproduce import evaluate_command
    from archgym.proxy import load_proxy
    from archgym.proxy.replaced_environment import make_unseen
    from archgym.proxy.zero_shot import zero_shot

    proxy = load_proxy(file)
    options: dict[str, Any] = {"space": proxy.space, "record": record}
    if objective is not None:
        options["objective"] = common.parsed(objective, "--objective")
    spec = common.parsed(workload, "--workload")
    env = make_unseen(proxy.origin, spec, read_files=read_files, **options)
    found = zero_shot(proxy, env, first=n, most=n)
    outcomes = env.evaluate_batch(found.designs)
    env.close()
    if json:
        designs = [
            {"design": one.design, "metrics": one.metrics, "feasible": one.feasible}
            for one in outcomes
        ]
        nearest = [{"workload": name, "weight": weight} for name, weight in found.nearest]
        print_json({"designs": designs, "nearest": nearest})
        return
    near = ", ".join(f"{name} ({weight:.0%})" for name, weight in found.nearest[:_SHOWN])
    echo(f"archgym {archgym.__version__}: {env.workload_name} is most like {near}")
    best = min(range(len(outcomes)), key=lambda n: (-outcomes[n].reward, outcomes[n].objectives))
    goals = env.objective.goals
    labels = ", ".join(f"{direction(g, env.metrics)} {goal_label(g, env.metrics)}" for g in goals)
    scorer = Scorer(env.objective, env.metrics, env.baseline_metrics)
    baseline = scorer.values(env.baseline_metrics[np.newaxis])[0].tolist()
    echo(f"{labels}; baseline {_values(env, baseline)}")
    rows = [
        (
            f"{number + 1}{' best' if number == best else ''}",
            *(_values(env, one.objectives) for one in (predicted, simulated)),
            "yes" if simulated.feasible else simulated.reason or "no",
        )
        for number, (predicted, simulated) in enumerate(zip(found.outcomes, outcomes, strict=True))
    ]
    print_table(("design", ">predicted", ">simulated", "feasible"), rows)
    echo("The best of them:" if outcomes[best].feasible else "None is feasible; the nearest is:")
    echo(f"  {evaluate_command(_Started(env), outcomes[best].design)}")


class _Started:
    """How an environment was made, for the command that evaluates a design in it again."""

    def __init__(self, env: Environment) -> None:
        from archgym.experiment.results.reproduce import space_arguments

        given = {} if env.spec is None else dict(env.spec.kwargs)
        given.pop("name", None)  # which environment Gymnasium makes
        searched = space_arguments(env.name, given.pop("space"), {})
        self.environment = env.name
        self.arguments = {
            **{key: value for key, value in given.items() if value not in ({}, [], None, "")},
            **searched,
        }


def _values(env: Environment, objectives: Sequence[float]) -> str:
    """The values of the goals, as people read them."""
    pairs = zip(env.objective.goals, objectives, strict=True)
    return "  ".join(f"{natural(goal, env.metrics, float(value)):.6g}" for goal, value in pairs)
