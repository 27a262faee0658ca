"""``archgym run``."""

from __future__ import annotations

import difflib
import math
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import archgym
from archgym.cli.interruption import interruptible
from archgym.cli.options import LIBRARY_VARIABLE, Exclude, Quiet, excluded_values
from archgym.cli.output import console, line
from archgym.errors import DatasetError, ExperimentError, InvalidValueError

if TYPE_CHECKING:
    from archgym.experiment import Experiment, RunOptions, RunResult, Trial

__all__ = ["run"]

_TRIALS = "trials.json"
"""The file that every folder of a run has, from before its first trial."""
_MAX_NEAR = 3
_MAX_FAILURES = 20
_SIGNIFICANT = 0.05
_MAX_SETS = 10
"""Sets of hyperparameters up to which reports compare each of them, and not agents."""
_SCHEMES = ("file", "s3", "gs", "hdfs", "abfs")
"""Kinds of addresses for which Ray Tune's file system, that of Arrow, needs nothing else."""


def run(
    experiment: Annotated[
        str,
        typer.Argument(metavar="YAML", help="An experiment file, or one that ships: quickstart."),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Output folder; runs/NAME if left out.", show_default=False)
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change a value, as in budget=50 or environments.0.workload=zipf, or add one to "
            "a list, as in agents.+={name: ga}; repeatable.",
        ),
    ] = None,
    exclude: Exclude = None,
    history: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR",
            help="Learn from an earlier run, a dataset or a proxy of many workloads, besides "
            "those that the experiment lists; repeatable.",
        ),
    ] = None,
    library: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Learn from what a library of runs holds for the experiment, and add the run to "
            "it at its end; '' for none. Otherwise the experiment says, or the variable "
            "ARCHGYM_LIBRARY.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with the run in the folder. The experiment may now have more seeds, "
            "agents, environments or budget.",
        ),
    ] = False,
    begin: Annotated[
        bool,
        typer.Option(
            "--begin",
            help="With --resume: begin the run if the folder holds none, for scripts that give the "
            "same command again and again.",
        ),
    ] = False,
    local: Annotated[
        bool, typer.Option("--local", help="One trial after the other, without Ray.")
    ] = False,
    address: Annotated[
        str, typer.Option(help="Ray cluster to join from one of its nodes: auto, or HOST:6379.")
    ] = "",
    cpus: Annotated[
        int | None, typer.Option(min=1, help="CPUs that Ray may use here; all if left out.")
    ] = None,
    storage: Annotated[
        str,
        typer.Option(
            metavar="PATH", help="Where Ray Tune keeps its own files; OUT/ray if left out."
        ),
    ] = "",
    shard: Annotated[
        str,
        typer.Option(
            metavar="I/N",
            help="Run the I-th of N parts of the trials; parts share the folder, also at the "
            "same time.",
        ),
    ] = "",
    quiet: Quiet = False,
) -> None:
    """Run an experiment: environments x agents x hyperparameters x seeds."""
    from archgym.experiment import RunOptions, load_experiment, run_experiment

    if local and (address or cpus is not None or storage):
        raise InvalidValueError(
            "--local runs without Ray: --storage, --address and --cpus do not go with it"
        )
    if address and cpus is not None:
        raise InvalidValueError("--cpus is for Ray on this machine: it does not go with --address")
    _check_storage(storage)
    loaded = load_experiment(experiment, settings or ())
    learned = list(dict.fromkeys([*loaded.history, *(history or ())]))
    shelf = library if library is not None else loaded.library
    if shelf is None and (shelf := os.environ.get(LIBRARY_VARIABLE)) and not resume:
        _check_library(shelf)
    loaded = loaded.model_copy(update={"history": learned, "library": shelf})
    if exclude:
        less = excluded_values(exclude)
        entries = [entry.without(less) for entry in loaded.environments]
        loaded = loaded.model_copy(update={"environments": entries})
    folder = out if out is not None else Path("runs") / loaded.name
    _check_begin(folder, resume, begin)
    options = RunOptions(
        local=local,
        resume=resume,
        address=address,
        cpus=cpus,
        storage=storage,
        shard=_shard(shard),
        quiet=quiet,
    )
    _announce(loaded, folder, options)
    with interruptible(lambda: _how_to_go_on(folder)):
        result = run_experiment(loaded, folder, options, console(stderr=True))
    _report(result)
    if result.failures:
        raise typer.Exit(1)


def _check_begin(folder: Path, resume: bool, begin: bool) -> None:
    """Refuses to go on with a run that is not there: its folder may be misspelt."""
    if begin and not resume:
        raise InvalidValueError("--begin goes with --resume: without both, a run always begins")
    from archgym.experiment.folder.run_folder import RunFolder

    if not resume or begin or (folder / _TRIALS).exists() or RunFolder(folder).begun():
        return
    names = sorted(path.parent.name for path in folder.parent.glob(f"*/{_TRIALS}"))
    near = difflib.get_close_matches(folder.name, names, n=_MAX_NEAR, cutoff=0.5) or names
    meant = ", ".join(str(folder.parent / name) for name in near[:_MAX_NEAR])
    raise ExperimentError(
        f"there is no run in {folder} to go on with{f'; runs beside it: {meant}' if meant else ''}"
        "; begin one there by --resume --begin, or without --resume"
    )


def _check_library(folder: str) -> None:
    """Says that the variable is meant, where it names no library."""
    from archgym.history.library import Library

    try:
        Library(folder)
    except DatasetError as error:
        raise DatasetError(f"{LIBRARY_VARIABLE}: {error}") from error


def _check_storage(storage: str) -> None:
    """Refuses an address of a kind that Ray Tune does not know; Ray itself would show a trace."""
    scheme, address, _ = storage.partition("://")
    if address and scheme not in _SCHEMES:
        allowed = ", ".join(f"{one}://" for one in _SCHEMES)
        raise InvalidValueError(f"--storage cannot be {storage!r}: allowed is a path, or {allowed}")


def _shard(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise InvalidValueError(f"--shard cannot be {text!r}: the third of 16 parts is 3/16")
    return int(number), int(of)


def _announce(experiment: Experiment, folder: Path, options: RunOptions) -> None:
    from archgym.experiment import expand

    every = expand(experiment)
    trials = options.chosen(every)
    part = "part {} of {}, ".format(*options.shard) if options.shard else ""
    seeds = experiment.seed_list
    shown = ", ".join(map(str, seeds[:8])) + (", ..." if len(seeds) > 8 else "")
    count = f"{len(trials)} trial{'s' if len(trials) != 1 else ''}"
    line(
        f"archgym {archgym.__version__}: {experiment.name}, {part}{count} of "
        f"{experiment.budget_text}, seed{'s' if len(seeds) > 1 else ''} {shown}"
        f"{', without Ray' if options.local else ''}, into {folder}"
    )
    if experiment.seed and all(entry.samples is None for entry in experiment.agents):
        line(
            f"seed: {experiment.seed} changes nothing, as no hyperparameter is drawn from a "
            "distribution; the seeds of searches are seeds"
        )
    if text := _significance(experiment, every):
        line(text)
    if experiment.simulation.leased:
        line(f"simulated by workers: start any number of them by archgym worker {folder}")


def _significance(experiment: Experiment, trials: Sequence[Trial]) -> str:
    """What the seeds can show of differences between agents; empty if nothing is compared."""
    from archgym.analysis.statistics import least_p, seeds_needed
    from archgym.experiment.results.texts import agent_titles

    titles = agent_titles(trials)
    groups = len(titles) if len(titles) <= _MAX_SETS else len({trial.agent for trial in trials})
    seeds = experiment.number_of_seeds
    if groups < 2:
        return ""
    least, pairs = least_p([seeds] * groups), math.comb(groups, 2)
    of = "between the agents" if pairs == 1 else f"of any of {pairs} pairs of agents"
    with_seeds = f"with {seeds} seed{'s' if seeds > 1 else ''}"
    if least < _SIGNIFICANT:
        return f"{with_seeds} a difference {of} can be significant (the least p is {least:.2g})"
    head = f"{with_seeds} no difference {of} can be significant (the least p is {least:.2g})"
    needed = f"{seeds_needed(groups)} seeds could show one at 5 %"
    if pairs > 1:
        needed += f", {seeds_needed(2)} that of one planned pair (report --agent A,B)"
    return f"{head}; {needed}"


def _report(result: RunResult) -> None:
    from archgym.experiment.results.tables import run_tables
    from archgym.experiment.results.texts import from_here

    out = console()
    out.print()
    out.print(run_tables(result), crop=False)
    alike: dict[str, list[str]] = {}
    for trial_id, reason in result.failures.items():
        alike.setdefault(reason, []).append(trial_id)
    for reason, (trial_id, *others) in list(alike.items())[:_MAX_FAILURES]:
        file = result.folder.error_file(trial_id)
        where = f" ({from_here(file)})" if file.exists() else ""
        more = f" and {len(others)} more" if others else ""
        line(f"failed: {trial_id}{more}: {reason}{where}", style="red")
    if len(alike) > _MAX_FAILURES:
        left = sum(map(len, list(alike.values())[_MAX_FAILURES:]))
        line(f"... and {left} more trials, in results/summary.json", style="red")
    folder = result.folder
    path = str(from_here(folder.path))
    datasets = sorted({trial.dataset for trial in result.trials})
    states = {"finished": 0, **result.totals.states}
    lines = {
        "picture": str(from_here(folder.picture)),
        "datasets": ", ".join(str(from_here(folder.datasets / name)) for name in datasets),
        "results": f"{from_here(folder.results)}, {from_here(folder.tables)}/",
        "report": f"archgym report {shlex.quote(path)} makes one page of all this",
        "trials": ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in states.items()),
        "early": _early(result),
        "split": _split(result),
        "time": f"{result.wall_s:.1f} s",
    }
    for label, text in lines.items():
        if text:
            line(f"{label + ':':<10}{text}")


def _early(result: RunResult) -> str:
    """Which agents stopped before their budget was spent."""
    parts = []
    for agent in dict.fromkeys(t.agent for t in result.trials if t.trial_id in result.early):
        mine = [trial for trial in result.trials if trial.agent == agent]
        spent = [result.early[t.trial_id] for t in mine if t.trial_id in result.early]
        ends = " to ".join(dict.fromkeys(f"{one:,.6g}" for one in (min(spent), max(spent))))
        name = agent.rpartition(":")[2]
        parts.append(f"{name} in {len(spent):,} of {len(mine):,} trials, after {ends} simulations")
    head = "nothing new was proposed, though budget was left: "
    return head + "; ".join(parts) if parts else ""


def _split(result: RunResult) -> str:
    """Where the time of the trials went."""
    totals = result.totals
    if not totals.wall_s:
        return ""
    agents, simulators = totals.agent_s / totals.wall_s, totals.simulation_s / totals.wall_s
    framework = max(0.0, 1 - agents - simulators)
    return f"agents {agents:.1%}, simulators {simulators:.1%}, framework {framework:.1%}"


def _how_to_go_on(folder: Path) -> list[str]:
    words = ["archgym", *sys.argv[1:]]
    if not (folder / _TRIALS).exists():
        return [
            "Stopped before anything was evaluated; begin again with:",
            f"  {shlex.join(words)}",
        ]
    command = shlex.join(words if "--resume" in words else [*words, "--resume"])
    return ["Stopped. What was evaluated is kept; go on with:", f"  {command}"]
