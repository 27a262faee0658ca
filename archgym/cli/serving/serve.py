"""``archgym serve``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from archgym.cli import options
from archgym.cli.interruption import interruptible
from archgym.cli.output import echo

__all__ = ["serve"]


def serve(
    environment: options.EnvironmentName,
    program: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- PROGRAM ARGUMENT...]",
            help="Program to start, whose standard input and output are the other end; without "
            "one, archgym's own are used.",
            show_default=False,
        ),
    ] = None,
    workload: options.Workload = None,
    objective: options.Objective = None,
    space: options.Space = None,
    simulator: Annotated[
        str | None,
        typer.Option(
            help="Name of a simulator; client or client:NAME if the program simulates.",
        ),
    ] = None,
    exclude: options.Exclude = None,
    include: options.Include = None,
    arguments: options.Arguments = None,
    record: Annotated[Path | None, typer.Option(help="Dataset that takes the evaluations.")] = None,
    agent: Annotated[
        str,
        typer.Option(
            help="Name under which the program's designs are recorded; external if left out. With "
            "--simulator client: the agent of archgym that proposes designs."
        ),
    ] = "",
    hyperparameters: options.Hyperparameters = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the agent.", show_default=False)
    ] = None,
    label: Annotated[
        str, typer.Option(help="What the designs are for, such as train or test.")
    ] = "",
    budget: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Distinct legal designs that may be simulated; no limit if left out.",
            show_default=False,
        ),
    ] = None,
    hours: Annotated[
        float | None,
        typer.Option(min=0, help="Hours that all simulations may take.", show_default=False),
    ] = None,
    trial: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the trial; made if left out.")
    ] = "",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with that trial, which was interrupted.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Designs that are simulated at a time; with --simulator client, that the program "
            "may have at a time.",
            show_default=False,
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="SECONDS", help="After which a simulation is ended.", show_default=False
        ),
    ] = None,
) -> None:
    """Let a program in any language search an environment, or simulate for archgym's agents.

    Requests are read from standard input and answered on standard output, each a JSON object on a
    line: {"id": 1, "op": "evaluate", "design": {...}}. The page docs/reference/serve.md lists
    them; {"op": "describe"} describes the design space. Everything else goes to standard error.
    """
    from archgym.serve import Settings
    from archgym.serve import serve as run
    from archgym.serve.lines import own_streams
    from archgym.serve.program import program_streams

    goals = None if objective is None else options.parsed(objective, "--objective")
    settings = Settings(
        environment=environment,
        arguments=options.environment_arguments(
            arguments,
            workload=workload,
            objective=goals,
            space=space,
            simulator=simulator,
            exclude=exclude,
            include=include,
        ),
        record=record,
        agent=agent,
        hyperparameters=options.parsed_pairs(hyperparameters, "--hyperparameter"),
        seed=seed,
        label=label,
        budget=budget,
        hours=hours,
        trial_id=trial,
        resume=resume,
        workers=workers,
        time_limit_s=time_limit,
    )
    settings.check()
    if not program and sys.stdin.isatty():
        echo('Requests are lines of JSON, such as {"op": "describe"}; Ctrl-D ends.', err=True)
    if record is None:
        echo("Nothing is recorded; --record DIR does that.", err=True)
    code = 0
    with interruptible():
        if program:
            with program_streams(program) as started:
                run(settings, started.requests, started.answers)
            code = started.code
        else:
            with own_streams() as (requests, answers):
                run(settings, requests, answers)
    if code:
        raise typer.Exit(code)
