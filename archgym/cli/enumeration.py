"""``archgym enumerate``."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import archgym
from archgym.cli.evaluate import pairs
from archgym.cli.interruption import interruptible
from archgym.cli.output import console, print_json, table

if TYPE_CHECKING:
    from archgym.environment.environment import Environment
    from archgym.problem.metrics import Metric
    from archgym.simulators.tabular import Optimum, Table

__all__ = ["add_to", "enumerate_"]

_LINE_EVERY_S = 10.0
_MOST_POINTS = 30


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("enumerate")(enumerate_)


def enumerate_(
    environment: Annotated[
        str, typer.Argument(metavar="ENV", help="A registered name, or module:Class.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the table; goes on with what is there.")],
    workload: Annotated[str | None, typer.Option(help="A name, a path, or a YAML mapping.")] = None,
    space: Annotated[str | None, typer.Option(help="Name of a design space.")] = None,
    simulator: Annotated[str | None, typer.Option(help="Name of a simulator.")] = None,
    arguments: Annotated[
        list[str] | None,
        typer.Option(
            "--arg",
            metavar="KEY=VALUE",
            help="Any other argument of the environment, as in memory=DDR3-1600; repeatable.",
        ),
    ] = None,
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
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Evaluate a whole design space into a table, for simulator=tabular:DIR and exact optima."""
    from archgym.enumeration import enumerate_space
    from archgym.experiment.spec.checks import make_environment
    from archgym.experiment.spec.load import parse_value

    given = {
        "workload": None if workload is None else parse_value(workload, "--workload"),
        "space": space,
        "simulator": simulator,
    }
    given |= {name: parse_value(text, f"--arg {name}") for name, text in pairs(arguments, "--arg ")}
    given = {name: value for name, value in given.items() if value is not None}
    objectives = [parse_value(text, "--objective") for text in objective or ()]
    checked = make_environment(environment, given)
    axes = [_axes(checked, text) for text in pareto or ()]
    for goals in (*objectives, *axes):
        make_environment(environment, {**given, "objective": goals})  # wrong ones stop it now
    with (
        interruptible(lambda: ["Stopped. The same command goes on with what is done."]),
        _progress(quiet) as progress,
    ):
        made = enumerate_space(
            environment, given, out, workers=workers, chunk=chunk, most=most, progress=progress
        )
    served = [
        make_environment(environment, {"simulator": f"tabular:{out}", "objective": goals})
        for goals in (given.get("objective"), *objectives, *axes)
    ]
    data = _json(made, served, out)
    if json:
        print_json(data)
    else:
        _draw(data)


def _axes(environment: Environment, text: str) -> dict[str, list[str]]:
    """An objective of several metrics, each better in its own direction."""
    from archgym.errors import InvalidValueError
    from archgym.problem.metrics import metric_named

    names = text.replace(",", " ").split()
    if len(names) < 2:
        raise InvalidValueError(f"--pareto {text!r}: name two metrics or more")
    found: dict[str, list[str]] = {}
    for name in names:
        metric = metric_named(name, environment.metrics, "--pareto")
        found.setdefault(metric.direction, []).append(name)
    return found


# -- progress ------------------------------------------------------------------------------------


@contextlib.contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """What to call with the designs done and in all; shows them and the time left on stderr."""
    if quiet:
        yield None
        return
    from rich.console import Console

    screen = Console(stderr=True, highlight=False)
    if not screen.is_terminal:
        yield _Lines()
        return
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("compiling and evaluating", total=None)
        pace = _Pace()

        def update(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, description=pace.text(done, total))

        yield update


class _Pace:
    """How fast it goes."""

    def __init__(self) -> None:
        self._began: tuple[float, int] | None = None

    def text(self, done: int, total: int) -> str:
        """Designs done, their rate, and the time left."""
        now = time.monotonic()
        if self._began is None:
            self._began = now, done
        seconds, fresh = now - self._began[0], done - self._began[1]
        text = f"{done:,} of {total:,} designs"
        if not fresh or not seconds or done >= total:
            return text
        rate = fresh / seconds
        return f"{text}, {rate:,.0f} a second, {_duration((total - done) / rate)} left"


class _Lines:
    """Progress in a log: a line now and then."""

    def __init__(self) -> None:
        self._pace, self._next = _Pace(), 0.0

    def __call__(self, done: int, total: int) -> None:
        text = self._pace.text(done, total)
        if time.monotonic() >= self._next or done >= total:
            self._next = time.monotonic() + _LINE_EVERY_S
            sys.stderr.write(text + "\n")
            sys.stderr.flush()


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


# -- results -------------------------------------------------------------------------------------


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
    from archgym.problem.scorer import Scorer
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
    values = scorer.score(row)[0]
    goals = scorer.objective.goals
    return {
        "design": one.design,
        "designs": one.designs,
        "objectives": [
            natural(goal, metrics, value) for goal, value in zip(goals, values, strict=True)
        ],
        "metrics": one.metrics,
    }


def _draw(data: dict[str, Any]) -> None:
    from rich.text import Text

    out = console()
    on = f" on {data['workload']}" if data["workload"] else ""
    simulator = f"{data['simulator']['name']} {data['simulator']['version']}"
    out.print(Text(f"archgym {data['archgym']}: {data['environment']}{on}, simulator {simulator}"))
    bad = ", ".join(f"{number:,} {status}" for status, number in data["failures"].items())
    outcomes = ", ".join(
        f"{block['outcomes']:,} distinct {_listed(block['metrics'])}" for block in data["distinct"]
    )
    out.print(Text(f"{data['designs']:,} designs{f' ({bad})' if bad else ''}: {outcomes}"))
    size = f"{data['bytes'] / 1e6:.2f} MB, {data['bytes'] / data['designs']:.2f} bytes a design"
    out.print(f"{data['table']}: {size}", soft_wrap=True, markup=False)
    for result in data["results"]:
        out.print()
        out.print(Text(_title(result), style="bold"))
        if "front" in result:
            _draw_front(result)
        elif result["optimum"] is None:
            out.print("  no design is feasible")
        else:
            _draw_optimum(result["goals"][0], result["optimum"])


def _draw_front(result: dict[str, Any]) -> None:
    from archgym.experiment.results.tables import design_text

    out, points = console(), result["front"]
    made = table(*(f">{goal}" for goal in result["goals"]), ">designs", "first design")
    for one in points[:_MOST_POINTS]:
        cells = [f"{value:.6g}" for value in one["objectives"]]
        made.add_row(*cells, f"{one['designs']:,}", design_text(one["design"]))
    out.print(made)
    if len(points) > _MOST_POINTS:
        out.print(f"... and {len(points) - _MOST_POINTS} points more; all of them with --json")


def _draw_optimum(goal: str, best: dict[str, Any]) -> None:
    from rich.text import Text

    from archgym.experiment.results.tables import design_text

    out = console()
    out.print(Text(f"  {goal} = {best['objectives'][0]:.8g}"))
    same = f"{best['designs']:,} designs" if best["designs"] > 1 else "one design"
    out.print(Text(f"  {same}, the baseline is {best['baseline_regret']:.2%} worse; the first:"))
    out.print(Text("  " + design_text(best["design"])))
    shown = ", ".join(f"{name} {value:.6g}" for name, value in best["metrics"].items())
    out.print(Text("  " + shown, style="dim"))


def _title(result: dict[str, Any]) -> str:
    limits = result["objective"].get("limits", [])
    where = f" with {', '.join(limits)}" if limits else ""
    if "front" in result:
        return f"Pareto front of {' and '.join(result['goals'])}{where}"
    return f"Exact optimum of {result['goals'][0]}{where}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"outcomes in {len(names)} metrics"
