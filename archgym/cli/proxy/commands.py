"""``archgym proxy``: data for proxies, their training, and searches on them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import archgym
from archgym.cli import options as common
from archgym.cli.output import echo, print_json, print_table
from archgym.cli.progress import clocked
from archgym.cli.proxy import options as own
from archgym.cli.proxy.quality import compare, evaluate, study
from archgym.cli.proxy.workloads import collect_workloads, start
from archgym.registry import make

__all__ = ["commands"]

commands = typer.Typer(
    no_args_is_help=True,
    help="Train models that predict metrics, see how good they are, and search on them.",
)


_SHOWN = 10
"""Verified designs that are printed."""

for _command in (evaluate, compare, study, collect_workloads, start):
    commands.command(_command.__name__.replace("_", "-"))(_command)


@commands.command("collect")
def collect(
    environment: Annotated[str, typer.Argument(metavar="ENV", help="A registered name.")],
    record: Annotated[Path, typer.Option(help="Dataset to write.")],
    target: Annotated[
        list[str], typer.Option("--target", help="A metric that the proxy is for; repeatable.")
    ],
    workload: Annotated[
        list[str] | None, typer.Option("--workload", help="A workload; repeatable.")
    ] = None,
    budget: Annotated[int, typer.Option(min=1, help="Designs to simulate, in all.")] = 5000,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of choosing and simulating.")] = 4,
    model: Annotated[
        str, typer.Option(help="Model that chooses: boosting, or residual, which takes longer.")
    ] = "boosting",
    options: own.Options = None,
    drawn: Annotated[
        float, typer.Option(help="Share of the designs that is drawn at random.")
    ] = 0.2,
    most: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of designs on one workload.")
    ] = None,
    settings: common.Arguments = None,
    exclude: common.Exclude = None,
    seed: common.Seed = 0,
    quiet: common.Quiet = False,
) -> None:
    """Simulate designs to train a proxy on: random ones, then where models are unsure.

    Workloads that are harder to learn get more of the designs.
    """
    from archgym.data import Dataset
    from archgym.proxy.training.active_collection import collect as choose

    arguments = common.environment_arguments(settings, exclude=exclude)
    loads = [{"workload": common.parsed(text, "--workload")} for text in workload or []]
    made = [make(environment, **arguments, **one, record=record) for one in loads or [{}]]
    counted, say = [0], clocked()

    def progress(designs: int) -> None:
        twentieths = counted[0] * 20 // budget
        counted[0] += designs
        if not quiet and counted[0] * 20 // budget > twentieths:
            say(f"{counted[0]:,} of {budget:,} designs")

    choose(
        *(made, target, budget),
        rounds=rounds,
        model=model,
        options=common.parsed_pairs(options, "--option"),
        drawn=drawn,
        most=most,
        seed=seed,
        progress=progress,
    )
    Dataset(record).seal()
    echo(f"{record}: {counted[0]:,} designs; train with archgym proxy train {record} --out FILE")


@commands.command("train")
def train(
    folder: own.Source,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")],
    target: own.Targets = None,
    model: own.Models = None,
    per: own.Per = "auto",
    form: own.Form = "auto",
    rows: own.Rows = None,
    where: common.Where = None,
    workload: common.Workloads = None,
    agent: common.Agents = None,
    options: own.Options = None,
    read_files: common.ReadFiles = False,
    seed: common.Seed = 0,
    quiet: common.Quiet = False,
    json: common.Json = False,
) -> None:
    """Train a proxy: families compete in cross-validation, metric by metric.

    No design is ever on both sides of it. The errors that it prints are on designs that the
    models had not seen. What is trained next goes to stderr, with the time so far.
    """
    from archgym.proxy import Settings, save_proxy
    from archgym.proxy import train as learn
    from archgym.proxy.files import check_target
    from archgym.proxy.training.settings import BY_FEATURES

    settings = Settings(
        tuple(model or ["auto"]), per, form, seed, common.parsed_pairs(options, "--option")
    )
    check_target(out)
    data = own.training_data(
        *(folder, target, where, workload, agent),
        described=per == BY_FEATURES,
        read_files=read_files,
    )
    if rows is not None:
        data = data.sample(rows, seed)
    proxy = save_proxy(learn(data, settings, None if quiet else clocked()), out)
    if json:
        head = {"archgym": archgym.__version__, "file": str(out), "sha256": proxy.fingerprint}
        print_json({**head, **proxy.report})
        return
    echo(f"archgym {archgym.__version__}: {len(data):,} designs, seed {seed}")
    rows_shown = [
        (
            *(one["metric"], _short(one["workloads"]), one["chosen"]),
            own.percent(scores["relative_rmse"]),
            *(f"{scores[name]:.4f}" for name in ("r2", "spearman")),
            f"{one['validated_on']:,}",
        )
        for one in proxy.report["validation"]
        for scores in [one["scores"][one["chosen"]]]
    ]
    columns = ("metric", "workload", "model", ">rel. RMSE", ">R2", ">Spearman", ">on")
    print_table(columns, rows_shown)
    echo(f"{out}: use it as simulator proxy:{out}")


@commands.command("search")
def search(
    file: own.File,
    objective: common.Objective = None,
    workload: Annotated[
        str, typer.Option(help="A workload of the proxy; the first by default.")
    ] = "",
    agent: Annotated[str, typer.Option(help="Agent that searches on the proxy.")] = "ga",
    budget: Annotated[int, typer.Option(min=1, help="Designs to evaluate on the proxy.")] = 20_000,
    verify: Annotated[
        int, typer.Option(min=1, help="Best designs to verify on the real simulator.")
    ] = 50,
    record: Annotated[
        Path | None, typer.Option(help="Dataset that takes the verified designs.")
    ] = None,
    read_files: common.ReadFiles = False,
    seed: common.Seed = 0,
    json: common.Json = False,
) -> None:
    """Search on a proxy, and verify the best designs on the real simulator."""
    from archgym.proxy import load_proxy
    from archgym.proxy.replaced_environment import make_original
    from archgym.proxy.search import search_and_verify

    proxy = load_proxy(file)
    index = proxy.workload(workload) if workload else 0
    arguments: dict[str, Any] = {"space": proxy.searched_space, "read_files": read_files}
    if objective is not None:
        arguments["objective"] = common.parsed(objective, "--objective")
    real = make_original(proxy.origin, index, **arguments, record=record)
    learned = make_original(proxy.origin, index, **arguments, simulator=f"proxy:{file}")
    found = search_and_verify(learned, real, agent=agent, budget=budget, verify=verify, seed=seed)
    if record is not None:
        from archgym.data import Dataset

        Dataset(record).seal()
    if json:
        fields = ("design", "metrics", "feasible")
        one = found.best
        best = None if one is None else {name: getattr(one, name) for name in fields}
        print_json({"seed": seed, "verified": len(found.outcomes), "best": best})
        return
    verified = len(found.outcomes)
    shown = f", the best {_SHOWN} of them:" if verified > _SHOWN else ":"
    echo(f"archgym {archgym.__version__}: {agent}, seed {seed}, {verified} verified{shown}")
    rows = [
        (
            "",
            *("  ".join(f"{v:.6g}" for v in one.objectives) for one in (predicted, simulated)),
            "yes" if simulated.feasible else simulated.reason or "no",
        )
        for predicted, simulated in zip(found.predicted, found.outcomes, strict=True)
    ]
    print_table(("goal", ">predicted", ">simulated", "feasible"), rows[:_SHOWN])
    if verified > _SHOWN:
        echo(f"{verified - _SHOWN} more are in the dataset of --record, if it was given")
    if found.best is not None:
        for name, value in found.best.design.items():
            echo(f"{name} = {value}")


def _short(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 2 else f"{len(names)} workloads"
