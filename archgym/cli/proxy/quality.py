"""``archgym proxy evaluate``, ``compare`` and ``study``: how good proxies are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archgym.cli import options as common
from archgym.cli.output import echo, paragraph, print_json, print_table
from archgym.cli.progress import clocked
from archgym.cli.proxy import options as own
from archgym.errors import InvalidValueError

if TYPE_CHECKING:
    from archgym.proxy.quality.evaluation import Evaluation

__all__ = ["compare", "evaluate", "study"]

Panels = dict[str, dict[str, list[tuple[int, Sequence[float]]]]]


def evaluate(
    file: own.File,
    folder: own.Source,
    where: common.Where = None,
    workload: common.Workloads = None,
    agent: common.Agents = None,
    coverage: Annotated[float, typer.Option(help="Coverage of the intervals, 0.5 to 0.99.")] = 0.9,
    speed: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Also time N designs on the real simulator."),
    ] = 0,
    read_files: common.ReadFiles = False,
    plot: Annotated[Path | None, typer.Option(help="Picture of predictions and truth.")] = None,
    json: common.Json = False,
) -> None:
    """Compare a proxy with a dataset, on designs that it was not trained on."""
    from archgym.proxy import load_proxy
    from archgym.proxy.quality.evaluation import evaluate as compare
    from archgym.proxy.quality.evaluation import measure_speed
    from archgym.proxy.quality.plots import plot_parity
    from archgym.proxy.replaced_environment import make_original

    proxy = load_proxy(file)
    there = [metric.name for metric in proxy.metrics]
    data = own.training_data(folder, there, where, workload, agent)
    found, seen = compare(proxy, data, coverage=coverage)
    if plot is not None:
        plot_parity(found, plot)
    made = None
    if speed:
        real = make_original(proxy.origin, read_files=read_files)
        made = measure_speed(proxy, real, simulated=speed)
    if json:
        timing = None if made is None else {**vars(made), "factor": made.factor}
        rows = [one.to_json() for one in found]
        print_json({"seen": seen, "coverage": coverage, "scores": rows, "speed": timing})
        return
    _show(found, coverage)
    if seen:
        echo(f"{seen:,} rows left out: their designs were among the training data")
    if made is not None:
        echo(
            f"simulator {made.simulator:,.1f} designs/s, proxy {made.proxy:,.0f} designs/s "
            f"({made.metrics} metrics each): {made.factor:,.0f} times as fast"
        )


def compare(
    folder: own.Source,
    test: Annotated[
        Path | None, typer.Option(help="Dataset to test on; by default a fifth of the designs.")
    ] = None,
    target: own.Targets = None,
    model: own.Models = None,
    per: Annotated[
        list[str] | None, typer.Option(help="'workload', 'all'; repeatable. Both by default.")
    ] = None,
    form: own.Form = "auto",
    sizes: Annotated[
        str, typer.Option(help="Sizes of the training data, as 100,1000; all rows by default.")
    ] = "",
    where: common.Where = None,
    workload: common.Workloads = None,
    agent: common.Agents = None,
    options: own.Options = None,
    seed: common.Seed = 0,
    plot: Annotated[Path | None, typer.Option(help="Picture of the learning curves.")] = None,
    quiet: common.Quiet = False,
    json: common.Json = False,
) -> None:
    """Compare families of models, and one model with a model a workload, on unseen designs."""
    from archgym.proxy import Settings
    from archgym.proxy.models import COMPETING
    from archgym.proxy.quality.evaluation import learning_curve
    from archgym.proxy.quality.plots import plot_curves

    data = own.training_data(folder, target, where, workload, agent)
    if test is None:
        held = data.folds(5, seed) == 0
        data, unseen = data.take((~held).nonzero()[0]), data.take(held.nonzero()[0])
    else:
        names = [metric.name for metric in data.metrics]
        unseen = own.training_data(test, names, where, workload, None)
    wanted = _sizes(sizes, len(data))
    scopes = per or (["workload", "all"] if len(data.origin.workloads) > 1 else ["workload"])
    rows: list[dict[str, Any]] = []
    say = clocked()
    for scope in scopes:
        for name in model or COMPETING:
            settings = Settings(
                (name,), scope, form, seed, common.parsed_pairs(options, "--option")
            )

            def progress(text: str, model: str = f"{name}, per {scope}") -> None:
                say(f"{model}: {text}")

            shown = None if quiet else progress
            for size, found in learning_curve(data, unseen, wanted, settings, shown):
                head = {"model": name, "per": scope, "size": size}
                rows += [{**head, **one.to_json()} for one in found]
    if plot is not None:
        panels: Panels = {}
        for row in rows:
            panel = panels.setdefault(f"{row['metric']}, {row['workload']}", {})
            points = panel.setdefault(f"{row['model']}, {row['per']}", [])
            points.append((row["size"], [row["relative_rmse"]]))
        plot_curves(panels, plot)
    if json:
        print_json(rows)
        return
    print_table(
        ("metric", "workload", "model", "per", ">designs", ">relative RMSE", ">coverage"),
        [
            (
                *(row["metric"], row["workload"], row["model"], row["per"], f"{row['size']:,}"),
                *(own.percent(row["relative_rmse"]), own.percent(row["coverage"])),
            )
            for row in sorted(rows, key=lambda one: (one["metric"], one["workload"], one["size"]))
        ],
    )


def study(
    folder: own.Source,
    test: Annotated[Path, typer.Option(metavar="DATASET", help="Designs drawn at random.")],
    target: own.Targets = None,
    model: own.Models = None,
    sizes: Annotated[str, typer.Option(help="Sizes of the training data.")] = "100,300,1000",
    repetitions: Annotated[int, typer.Option(min=1, help="Samples of each source.")] = 5,
    workload: common.Workloads = None,
    agent: common.Agents = None,
    options: own.Options = None,
    seed: common.Seed = 0,
    plot: Annotated[Path | None, typer.Option(help="Picture of the study.")] = None,
    quiet: common.Quiet = False,
    json: common.Json = False,
) -> None:
    """Test whether data of several agents make better proxies than as many data of one agent.

    Prints the median relative RMSE on unseen random designs, and its 10th to 90th percentile.
    """
    from archgym.proxy import Settings, read_training_data
    from archgym.proxy.quality.diversity import study_diversity
    from archgym.proxy.quality.plots import plot_curves

    selection = common.selected(folder, None, agent, workload)
    names = agent or sorted({str(trial["agent"]) for trial in selection.trials})
    agents = {name: read_training_data(selection.where(agents=name), target) for name in names}
    metrics = [metric.name for metric in next(iter(agents.values())).metrics]
    unseen = own.training_data(test, metrics, None, workload, None)
    settings = Settings(
        tuple(model or ["boosting"]), seed=seed, options=common.parsed_pairs(options, "--option")
    )
    most = sum(map(len, agents.values()))
    points = study_diversity(
        *(agents, unseen, _sizes(sizes, most), settings),
        repetitions=repetitions,
        progress=None if quiet else clocked(),
    )
    if plot is not None:
        panels: Panels = {}
        for point in points:
            panel = panels.setdefault(f"{point.metric}, {point.workload}", {})
            panel.setdefault(point.source, []).append((point.size, point.errors))
        plot_curves(panels, plot)
    if json:
        print_json([{**vars(point), "interval": point.interval} for point in points])
        return
    points.sort(key=lambda one: (one.metric, one.workload, one.size, one.source))
    rows = []
    for point in points:
        low, middle, high = map(own.percent, point.interval)
        where = (point.metric, point.workload, point.source)
        rows.append((*where, f"{point.size:,}", middle, low, high))
    columns = ("metric", "workload", "trained on", ">designs", ">median", ">10 %", ">90 %")
    print_table(columns, rows)


def _sizes(text: str, most: int) -> list[int]:
    if not text:
        return [most]
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidValueError(f"--sizes takes numbers, as 100,1000, not {text!r}") from None


def _show(found: Sequence[Evaluation], coverage: float) -> None:
    several = len({one.workload for one in found}) > 1
    first = ("metric", "workload") if several else ("metric",)
    errors = (">rel.\nRMSE", ">RMS\nerror", ">MAPE")
    others = (">R2", ">rank\ncorr.", ">top-10\nregret", f">in\n{coverage:.0%}")
    rows = [
        (
            *_of(one, several),
            *map(_share, (s.relative_rmse, s.rms_relative_error, s.mape)),
            *(_three(s.r2), _three(s.spearman), _share(s.top10_regret), _share(s.coverage)),
        )
        for one in found
        for s in [one.scores]
    ]
    print_table((*first, *errors, *others), rows)
    sizes = sorted({one.scores.n for one in found})
    on = " to ".join(f"{n:,}" for n in dict.fromkeys((sizes[0], sizes[-1])))
    paragraph(
        f"Rows: {on} of each workload. rel. RMSE: by the mean of the true values; RMS error: of "
        f"each by its own true value; in {coverage:.0%}: share of true values in the intervals."
    )
    _show_within(found, coverage, several)


def _show_within(found: Sequence[Evaluation], coverage: float, several: bool) -> None:
    """How good predictions are within groups and near the best, where a search needs them."""
    from archgym.proxy.quality.within import mean_of

    first = ("metric", "workload") if several else ("metric",)
    scores = (">rank\ncorr.", ">least", ">rel.\nRMSE", f">in\n{coverage:.0%}")
    rows = []
    for one in found:
        if groups := one.within.groups:
            means = (mean_of(groups, name) for name in ("spearman", "relative_rmse", "coverage"))
            ranks = [part.spearman for part in groups if part.spearman == part.spearman]
            correlation, error, inside = means
            by = f"{one.within.parameter} ({len(groups)})"
            least = _three(min(ranks, default=math.nan))
            numbers = (_three(correlation), least, _share(error), _share(inside))
            rows.append((*_of(one, several), by, _share(one.within.explained), *numbers))
    if rows:
        print_table((*first, "within groups of", ">ex-\nplains", *scores), rows)
        paragraph(
            "Groups: designs that share a value of the parameter that explains most of a metric; "
            "explains: share of the variance between them. Means over the groups, and the least "
            "rank correlation: there a search has to tell designs apart."
        )
    near = [(one, one.within.best) for one in found if one.within.best is not None]
    if near:
        print_table(
            (*first, ">designs", ">rank\ncorr.", ">rel.\nRMSE", f">in\n{coverage:.0%}"),
            [
                (
                    *(*_of(one, several), f"{part.n:,}", _three(part.spearman)),
                    *(_share(part.relative_rmse), _share(part.coverage)),
                )
                for one, part in near
            ],
            title=f"The {near[0][1].name} of the designs",
        )


def _of(one: Evaluation, several: bool) -> tuple[str, ...]:
    """The metric, and its workload where there are several."""
    return (one.metric, one.workload) if several else (one.metric,)


def _three(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "-"


def _share(value: float) -> str:
    """A share in percent, with as many digits as fit a narrow column."""
    if not math.isfinite(value):
        return "-"
    return f"{value:.1%}" if abs(value) < 0.1 else f"{value:.0%}"
