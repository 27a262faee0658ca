"""``archgym proxy``."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import archgym
from archgym.cli.output import console, print_json, table

if TYPE_CHECKING:
    from archgym.proxy import TrainingData
    from archgym.proxy.evaluation import Evaluation

__all__ = ["add_to"]

commands = typer.Typer(
    no_args_is_help=True,
    help="Train models that predict metrics, see how good they are, and search on them.",
)

Source = Annotated[Path, typer.Argument(metavar="DATASET", help="A dataset, or a run's folder.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="A proxy, as train wrote it.")]
Targets = Annotated[
    list[str] | None,
    typer.Option("--target", help="A metric to learn; repeatable. All by default."),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        help="forest, boosting, gp, mlp, blend or residual; repeatable. They compete; by default "
        "all but residual, which takes minutes.",
    ),
]
Per = Annotated[
    str,
    typer.Option(help="A model for each 'workload', or one for 'all' with their features."),
]
Form = Annotated[
    str, typer.Option(help="Learn metrics linear, log, or relative to the baseline design.")
]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="CONDITION", help="Only rows that meet it; repeatable."),
]
Workloads = Annotated[
    list[str] | None, typer.Option("--workload", help="Only rows of this workload; repeatable.")
]
Agents = Annotated[
    list[str] | None, typer.Option("--agent", help="Only rows of this agent; repeatable.")
]
Rows = Annotated[int | None, typer.Option(min=1, help="Train on so many rows, drawn at random.")]
Options = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Setting of a family, as in epochs=100."),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def add_to(app: typer.Typer) -> None:
    """Adds the commands."""
    app.add_typer(commands, name="proxy")


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
    rounds: Annotated[int, typer.Option(min=1, help="How often to choose anew.")] = 4,
    model: Annotated[
        str, typer.Option(help="What chooses: boosting, or residual, which takes longer.")
    ] = "boosting",
    options: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="Setting of the model."),
    ] = None,
    drawn: Annotated[float, typer.Option(help="Share that is drawn at random.")] = 0.2,
    most: Annotated[
        int | None, typer.Option(min=1, help="Designs on one workload at most.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Argument of the environment."),
    ] = None,
    seed: Seed = 0,
) -> None:
    """Simulate designs to train a proxy on: random ones, then where models are unsure.

    Workloads that are harder to learn get more of the designs.
    """
    from archgym.cli.evaluate import pairs
    from archgym.data import Dataset
    from archgym.experiment.load import parse_value
    from archgym.proxy.collection import collect as choose
    from archgym.registry import make

    own = {name: parse_value(text, f"--set {name}") for name, text in pairs(settings, "--set ")}
    loads = [{"workload": parse_value(text, "--workload")} for text in workload or []]
    made = [make(environment, **own, **one, record=record) for one in loads or [{}]]
    counted = [0]

    def progress(designs: int) -> None:
        counted[0] += designs

    choose(
        *(made, target, budget),
        rounds=rounds,
        model=model,
        options=_options(options),
        drawn=drawn,
        most=most,
        seed=seed,
        progress=progress,
    )
    Dataset(record).seal()
    typer.echo(
        f"{record}: {counted[0]:,} designs; train with archgym proxy train {record} --out FILE"
    )


@commands.command("train")
def train(
    folder: Source,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")],
    target: Targets = None,
    model: Models = None,
    per: Per = "auto",
    form: Form = "auto",
    rows: Rows = None,
    where: Where = None,
    workload: Workloads = None,
    agent: Agents = None,
    options: Options = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a proxy: families compete in cross-validation, metric by metric.

    No design is ever on both sides of it. The errors that it prints are on designs that the
    models had not seen. What is trained next goes to stderr, with the time so far.
    """
    from archgym.proxy import Settings, save_proxy
    from archgym.proxy import train as learn

    data = _data(folder, target, where, workload, agent)
    if rows is not None:
        data = data.sample(rows, seed)
    settings = Settings(tuple(model or ["auto"]), per, form, seed, _options(options))
    proxy = save_proxy(learn(data, settings, None if quiet else _clocked()), out)
    if json:
        head = {"archgym": archgym.__version__, "file": str(out), "sha256": proxy.fingerprint}
        print_json({**head, **proxy.report})
        return
    typer.echo(f"archgym {archgym.__version__}: {len(data):,} designs, seed {seed}")
    made = table("metric", "workload", "model", ">rel. RMSE", ">R2", ">Spearman", ">on")
    for one in proxy.report["validation"]:
        scores = one["scores"][one["chosen"]]
        made.add_row(
            one["metric"],
            _short(one["workloads"]),
            one["chosen"],
            _percent(scores["relative_rmse"]),
            f"{scores['r2']:.4f}",
            f"{scores['spearman']:.4f}",
            f"{one['validated_on']:,}",
        )
    console().print(made)
    typer.echo(f"{out}: use it as simulator proxy:{out}")


@commands.command("evaluate")
def evaluate(
    file: File,
    folder: Source,
    where: Where = None,
    workload: Workloads = None,
    agent: Agents = None,
    coverage: Annotated[float, typer.Option(help="Of the intervals, 0.5 to 0.99.")] = 0.9,
    speed: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Also time N designs on the real simulator."),
    ] = 0,
    plot: Annotated[Path | None, typer.Option(help="Picture of predictions and truth.")] = None,
    json: Json = False,
) -> None:
    """Compare a proxy with a dataset, on designs that it was not trained on.

    Relative RMSE is the root mean squared error by the mean of the true values.
    """
    from archgym.proxy import load_proxy
    from archgym.proxy.evaluation import evaluate as compare
    from archgym.proxy.evaluation import measure_speed
    from archgym.proxy.original import make_original
    from archgym.proxy.plots import plot_parity

    proxy = load_proxy(file)
    there = [metric.name for metric in proxy.metrics]
    data = _data(folder, there, where, workload, agent)
    found, seen = compare(proxy, data, coverage=coverage)
    if plot is not None:
        plot_parity(found, plot)
    made = measure_speed(proxy, make_original(proxy.origin), simulated=speed) if speed else None
    if json:
        timing = None if made is None else {**vars(made), "factor": made.factor}
        rows = [one.to_json() for one in found]
        print_json({"seen": seen, "coverage": coverage, "scores": rows, "speed": timing})
        return
    _draw(found, coverage)
    if seen:
        typer.echo(f"{seen:,} rows left out: their designs were among the training data")
    if made is not None:
        typer.echo(
            f"simulator {made.simulator:,.1f} designs/s, proxy {made.proxy:,.0f} designs/s "
            f"({made.metrics} metrics each): {made.factor:,.0f} times as fast"
        )


@commands.command("compare")
def compare(
    folder: Source,
    test: Annotated[
        Path | None, typer.Option(help="Dataset to test on; by default a fifth of the designs.")
    ] = None,
    target: Targets = None,
    model: Models = None,
    per: Annotated[
        list[str] | None, typer.Option(help="'workload', 'all'; repeatable. Both by default.")
    ] = None,
    form: Form = "auto",
    sizes: Annotated[
        str, typer.Option(help="Sizes of the training data, as 100,1000; all rows by default.")
    ] = "",
    where: Where = None,
    workload: Workloads = None,
    agent: Agents = None,
    options: Options = None,
    seed: Seed = 0,
    plot: Annotated[Path | None, typer.Option(help="Picture of the learning curves.")] = None,
    json: Json = False,
) -> None:
    """Compare families of models, and one model with a model a workload, on unseen designs."""
    from archgym.proxy import Settings
    from archgym.proxy.evaluation import learning_curve
    from archgym.proxy.models import COMPETING
    from archgym.proxy.plots import plot_curves

    data = _data(folder, target, where, workload, agent)
    if test is None:
        held = data.folds(5, seed) == 0
        data, unseen = data.take((~held).nonzero()[0]), data.take(held.nonzero()[0])
    else:
        names = [metric.name for metric in data.metrics]
        unseen = _data(test, names, where, workload, None)
    wanted = _sizes(sizes, len(data))
    scopes = per or (["workload", "all"] if len(data.origin.workloads) > 1 else ["workload"])
    rows: list[dict[str, Any]] = []
    curves: dict[str, list[tuple[int, Sequence[float]]]] = {}
    for scope in scopes:
        for name in model or COMPETING:
            settings = Settings((name,), scope, form, seed, _options(options))
            for size, found in learning_curve(data, unseen, wanted, settings):
                rows += [
                    {"model": name, "per": scope, "size": size, **one.to_json()} for one in found
                ]
                errors = [one.scores.relative_rmse for one in found]
                curves.setdefault(f"{name}, {scope}", []).append((size, errors))
    if plot is not None:
        plot_curves(curves, plot, title=", ".join(metric.name for metric in data.metrics))
    if json:
        print_json(rows)
        return
    made = table("metric", "workload", "model", "per", ">designs", ">relative RMSE", ">coverage")
    for row in sorted(rows, key=lambda one: (one["metric"], one["workload"], one["size"])):
        made.add_row(
            *(row["metric"], row["workload"], row["model"], row["per"], f"{row['size']:,}"),
            *(_percent(row["relative_rmse"]), _percent(row["coverage"])),
        )
    console().print(made)


@commands.command("study")
def study(
    folder: Source,
    test: Annotated[Path, typer.Option(metavar="DATASET", help="Designs drawn at random.")],
    target: Targets = None,
    model: Models = None,
    sizes: Annotated[str, typer.Option(help="Sizes of the training data.")] = "100,300,1000",
    repetitions: Annotated[int, typer.Option(min=1, help="Samples of each source.")] = 5,
    workload: Workloads = None,
    agent: Agents = None,
    options: Options = None,
    seed: Seed = 0,
    plot: Annotated[Path | None, typer.Option(help="Picture of the study.")] = None,
    json: Json = False,
) -> None:
    """See whether data of several agents make better proxies than as many of one agent.

    Prints the median relative RMSE on unseen random designs, and its 10th to 90th percentile.
    """
    from archgym.data import load
    from archgym.proxy import Settings, read_training_data
    from archgym.proxy.plots import plot_curves
    from archgym.proxy.study import study_diversity

    selection = load(folder, agents=agent or (), workloads=workload or ())
    names = agent or sorted({str(trial["agent"]) for trial in selection.trials})
    agents = {name: read_training_data(selection.where(agents=name), target) for name in names}
    metrics = [metric.name for metric in next(iter(agents.values())).metrics]
    unseen = _data(test, metrics, None, workload, None)
    settings = Settings(tuple(model or ["boosting"]), seed=seed, options=_options(options))
    most = sum(map(len, agents.values()))
    points = study_diversity(agents, unseen, _sizes(sizes, most), settings, repetitions=repetitions)
    if plot is not None:
        curves: dict[str, list[tuple[int, Sequence[float]]]] = {}
        for name in dict.fromkeys(point.source for point in points):
            own = [point for point in points if point.source == name]
            by_size = {
                size: [e for point in own if point.size == size for e in point.errors]
                for size in dict.fromkeys(point.size for point in own)
            }
            curves[name] = list(by_size.items())
        plot_curves(curves, plot, title=", ".join(metrics))
    if json:
        print_json([{**vars(point), "interval": point.interval} for point in points])
        return
    made = table("metric", "workload", "trained on", ">designs", ">median", ">10 %", ">90 %")
    for point in sorted(points, key=lambda one: (one.metric, one.workload, one.size, one.source)):
        low, middle, high = (_percent(value) for value in point.interval)
        made.add_row(
            *(point.metric, point.workload, point.source, f"{point.size:,}", middle, low, high)
        )
    console().print(made)


@commands.command("search")
def search(
    file: File,
    objective: Annotated[
        str | None, typer.Option(help="As in 'minimize energy_pj', or a YAML mapping.")
    ] = None,
    workload: Annotated[str, typer.Option(help="One of the proxy's; the first by default.")] = "",
    agent: Annotated[str, typer.Option(help="That searches on the proxy.")] = "ga",
    budget: Annotated[int, typer.Option(min=1, help="Designs to evaluate on the proxy.")] = 20_000,
    verify: Annotated[
        int, typer.Option(min=1, help="Best designs to verify on the real simulator.")
    ] = 50,
    record: Annotated[Path | None, typer.Option(help="Dataset that takes these.")] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Search on a proxy, and verify the best designs on the real simulator."""
    from archgym.experiment.load import parse_value
    from archgym.proxy import load_proxy
    from archgym.proxy.original import make_original
    from archgym.proxy.search import search_and_verify

    proxy = load_proxy(file)
    index = proxy.workload(workload) if workload else 0
    arguments: dict[str, Any] = {"space": proxy.space}
    if objective is not None:
        arguments["objective"] = parse_value(objective, "--objective")
    real = make_original(proxy.origin, index, **arguments, record=record)
    learned = make_original(proxy.origin, index, **arguments, simulator=f"proxy:{file}")
    found = search_and_verify(learned, real, agent=agent, budget=budget, verify=verify, seed=seed)
    if record is not None:
        from archgym.data import Dataset

        Dataset(record).seal()
    if json:
        best = (
            None
            if found.best is None
            else {
                "design": found.best.design,
                "metrics": found.best.metrics,
                "feasible": found.best.feasible,
            }
        )
        print_json({"seed": seed, "verified": len(found.outcomes), "best": best})
        return
    typer.echo(f"archgym {archgym.__version__}: {agent}, seed {seed}, {verify} verified")
    made = table("goal", ">predicted", ">simulated", "feasible")
    for said, is_so in list(zip(found.predicted, found.outcomes, strict=True))[:10]:
        values = ["  ".join(f"{v:.6g}" for v in one.objectives) for one in (said, is_so)]
        made.add_row("", *values, "yes" if is_so.feasible else is_so.reason or "no")
    console().print(made)
    if found.best is not None:
        for name, value in found.best.design.items():
            typer.echo(f"{name} = {value}")


def _data(
    folder: Path,
    target: list[str] | None,
    where: list[str] | None,
    workload: list[str] | None,
    agent: list[str] | None,
) -> TrainingData:
    from archgym.data import load
    from archgym.proxy import read_training_data

    selection = load(folder, where or (), agents=agent or (), workloads=workload or ())
    return read_training_data(selection, target)


def _options(texts: list[str] | None) -> Mapping[str, Any]:
    from archgym.cli.evaluate import pairs
    from archgym.experiment.load import parse_value

    return {name: parse_value(text, f"--set {name}") for name, text in pairs(texts, "--set ")}


def _clocked() -> Callable[[str], None]:
    """What writes lines to stderr, each with the minutes and seconds since now."""
    began = time.perf_counter()

    def write(text: str) -> None:
        minutes, seconds = divmod(int(time.perf_counter() - began), 60)
        typer.echo(f"{minutes}:{seconds:02d} {text}", err=True)

    return write


def _sizes(text: str, most: int) -> list[int]:
    from archgym.errors import InvalidValueError

    if not text:
        return [most]
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidValueError(f"--sizes takes numbers, as 100,1000, not {text!r}") from None


def _draw(found: Sequence[Evaluation], coverage: float) -> None:
    titles = (">relative RMSE", ">RMS rel. error", ">MAPE", ">R2", ">Spearman", ">top-10 regret")
    made = table("metric", "workload", ">n", *titles, f">in {coverage:.0%}")
    for one in found:
        s = one.scores
        made.add_row(
            *(one.metric, one.workload, f"{s.n:,}"),
            *(_percent(v) for v in (s.relative_rmse, s.rms_relative_error, s.mape)),
            *(f"{s.r2:.4f}", f"{s.spearman:.4f}", _percent(s.top10_regret)),
            _percent(s.coverage),
        )
    console().print(made)


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2%}"


def _short(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 2 else f"{len(names)} workloads"
