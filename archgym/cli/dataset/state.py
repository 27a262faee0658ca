"""``archgym dataset``: what a dataset holds, whether it is sound, and what keeps it so."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from archgym.cli.dataset.arguments import Source
from archgym.cli.options import Agents, Json, ReadFiles, Seed, Where, Workloads, selected
from archgym.cli.output import echo, fail, line, print_json, print_table
from archgym.errors import ArchgymError, DatasetError, InvalidValueError

if TYPE_CHECKING:
    from archgym.data.checks import Check
    from archgym.validation.replay import Replayed

__all__ = ["commands"]

commands = typer.Typer()
_ROWS_TO_REPLAY = 100
_SHOWN = 20


@commands.command("info")
def info(folder: Source, json: Json = False) -> None:
    """Show what a dataset holds."""
    from archgym.data import find_datasets
    from archgym.data.files import provenance

    found = [
        {**dataset.info(), "made_by": [_operation(s) for s in provenance(dataset)["operations"]]}
        for dataset in find_datasets(folder)
    ]
    if json:
        print_json(found)
        return
    for data in found:
        rows = [
            (name.replace("_", " "), _text(value))
            for name, value in data.items()
            if name != "directory" and value != []
        ]
        print_table(("dataset", data["directory"]), rows)


class _ReplayCommand(TyperCommand):
    """Lets ``--replay`` stand without its number."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        filled: list[str] = []
        for i, argument in enumerate(args):
            filled.append(argument)
            following = args[i + 1] if i + 1 < len(args) else ""
            if argument == "--replay" and not (following.isdigit() or following == "all"):
                filled.append(str(_ROWS_TO_REPLAY))
        return super().parse_args(ctx, filled)


@commands.command("validate", cls=_ReplayCommand)
def validate(
    folder: Source,
    replay: Annotated[
        str,
        typer.Option(
            metavar="[N|all]",
            help=f"Also evaluate N rows again (drawn at random; {_ROWS_TO_REPLAY} if N is left "
            "out), and report what does not reproduce.",
        ),
    ] = "",
    seed: Seed = 0,
    environment: Annotated[
        str, typer.Option(help="Environment to evaluate with, in place of the recorded one.")
    ] = "",
    simulator: Annotated[
        str, typer.Option(help="Simulator to evaluate with, in place of the recorded one.")
    ] = "",
    tolerance: Annotated[
        float, typer.Option(help="Largest relative difference of values that count as equal.")
    ] = 1e-9,
    read_files: ReadFiles = False,
    accept_source: Annotated[
        bool,
        typer.Option(
            help="If all rows reproduce, let results of the edited simulator (another source or "
            "version) join these.",
        ),
    ] = False,
    where: Where = None,
    agent: Agents = None,
    workload: Workloads = None,
    json: Json = False,
) -> None:
    """Check a dataset: schema, ranges, rules, steps, duplicates, rewards, and by replay.

    The exit code is 1 if something is wrong. --where, --agent and --workload choose the rows to
    replay; everything else is checked on the whole dataset.
    """
    from archgym.data import find_dataset
    from archgym.data.checks import EXAMPLES, Check
    from archgym.data.checks import validate as check
    from archgym.experiment.folder.manifest import problems_of_run
    from archgym.experiment.folder.run_folder import RunFolder
    from archgym.validation.accept import accept_simulator
    from archgym.validation.replay import replay as play

    if replay and not (replay.isdigit() and int(replay)) and replay != "all":
        raise InvalidValueError(f"--replay takes a number of rows or 'all', not {replay!r}")
    if accept_source and not replay:
        raise InvalidValueError(
            "--accept-source goes with --replay, which shows that metrics are equal"
        )
    dataset = find_dataset(folder, seal=False)  # a check changes nothing
    checks = check(dataset)
    if (folder / "datasets").is_dir():
        wrong = problems_of_run(RunFolder(folder))
        what = "its other files are as they were written, and agree with the trials"
        checks.append(Check("run", what, len(wrong), wrong[:EXAMPLES]))
    sound = all(c.passed for c in checks if c.name in ("files", "trials", "designs"))
    found: Replayed | None = None
    if replay and sound:
        chosen = selected(folder, where, agent, workload)
        rows = None if replay == "all" else int(replay)
        found = play(
            chosen,
            rows,
            seed=seed,
            environment=environment,
            simulator=simulator,
            tolerance=tolerance,
            read_files=read_files,
        )
    passed = all(c.passed for c in checks) and (found is None or not found.mismatches)
    nothing = found is not None and not found.rows
    if json:
        data = {"passed": passed and not nothing, "checks": [c.to_json() for c in checks]}
        print_json({**data, "replay": None if found is None else found.to_json()})
    else:
        _show_checks(checks, found)
    if replay and not sound:
        fail("not replayed: designs or trials cannot be read")
    if nothing:
        fail("no row could be evaluated again")
    if not passed or nothing:
        raise typer.Exit(1)
    if accept_source and found is not None:
        echo(accept_simulator(dataset, found), err=json)


@commands.command("repair")
def repair(folder: Source, json: Json = False) -> None:
    """Keep what the checksums of a damaged dataset prove, and set its files aside.

    Of each trial the longest beginning without a gap is kept; archgym run --resume goes on from it.
    In a run, trials that are none of the run are set aside too.
    """
    from archgym.experiment.folder.manifest import is_of_run
    from archgym.experiment.folder.run_folder import RunFolder
    from archgym.validation.repair import repair as keep

    belongs = None
    if (folder / "dataset.json").is_file():
        damaged = [folder]
    else:
        damaged = sorted(path.parent for path in folder.glob("datasets/*/dataset.json"))
        with contextlib.suppress(ArchgymError):
            ids = {trial.trial_id for trial in RunFolder(folder).trials()}
            belongs = partial(is_of_run, trials=ids) if ids else None
    if not damaged:
        raise DatasetError(f"{folder} holds neither a run nor a dataset")
    done, failed = [], []
    for directory in damaged:  # each, whatever becomes of the others
        try:
            done.append(keep(directory, belongs))
        except DatasetError as error:
            failed.append(error)
    if json and done:
        aside = [None if one.set_aside is None else str(one.set_aside) for one in done]
        print_json([{**vars(one), "set_aside": a} for one, a in zip(done, aside, strict=True)])
    for one in () if json else done:
        before = f"before: {one.set_aside}" if one.set_aside else "nothing is damaged"
        echo(f"{one.kept:,} evaluations of {one.trials:,} trials kept; {before}")
    if failed:
        raise failed[0]


@commands.command("seal")
def seal(folder: Source, json: Json = False) -> None:
    """Turn the journals of a dataset, or of a run's datasets, into Parquet.

    Closing an environment does this, and so does reading the dataset. It remains to be done where
    processes of other machines were killed. Journals that a process holds open stay as they are.
    """
    from archgym.data import find_datasets
    from archgym.data.files import seal_by_command

    found = [seal_by_command(dataset) for dataset in find_datasets(folder, seal=False)]
    if json:
        print_json([vars(one) for one in found])
    for one in () if json else found:
        still = f"; a process still writes to {one.open}" if one.open else ""
        plural = "" if one.sealed == 1 else "s"
        echo(f"{one.directory}: {one.sealed} journal{plural} sealed{still}")


def _operation(step: dict[str, Any]) -> str:
    """One of the operations that made a dataset, in a line."""
    parts = {name: value for name, value in step.items() if name not in ("operation", "sources")}
    words = [step["operation"], *(f"{name}={value}" for name, value in parts.items())]
    return " ".join([*words, *(source["dataset"] for source in step.get("sources", ()))])


def _show_checks(checks: list[Check], found: Replayed | None) -> None:
    from rich.text import Text

    rows: list[tuple[Any, ...]] = []
    for check in checks:
        text, style = ("passed", "green") if check.passed else (f"{check.wrong:,} wrong", "red")
        rows.append((check.name, Text(text, style), check.what))
    lines = [f"{check.name}: {text}" for check in checks for text in check.examples]
    if found is not None:
        wrong = found.rows_that_differ
        text = f"{wrong:,} of {found.rows:,} differ" if wrong else "passed"
        text = text if found.rows else "nothing"
        style = "red" if wrong or not found.rows else "green"
        rows.append(("replay", Text(text, style), f"{found.rows:,} rows were evaluated again"))
        more = len(found.mismatches) - _SHOWN
        notes = [*found.notes, *map(str, found.mismatches[:_SHOWN])]
        notes += [f"and {more:,} values more (--json lists all)"] if more > 0 else []
        skipped = found.skipped.items()
        notes += [f"{count:,} rows not evaluated: {reason}" for reason, count in skipped]
        lines += [f"replay: {note}" for note in notes]
    print_table(("check", "result", "what"), rows)
    for text in lines:
        line(text)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {count}" for key, count in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)
