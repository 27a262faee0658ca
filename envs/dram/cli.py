"""The command ``archgym trace``: records memory traces, and writes the commands of a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archgym.cli.interruption import interruptible
from archgym.cli.output import console

if TYPE_CHECKING:
    from archgym.envs.dram.traces.cache_model import CacheHierarchy
    from archgym.envs.dram.traces.trace import Trace

__all__ = ["commands"]

commands = typer.Typer(no_args_is_help=True, help="Record memory traces for DRAM environments.")


@commands.callback()
def _group() -> None:
    """Record memory traces for DRAM environments."""


@commands.command("record")
def record(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="The program and its arguments.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The .npz file to write; PROGRAM.npz if left out.")
    ] = None,
    clock_ghz: Annotated[float, typer.Option(help="Clock of the core, GHz.")] = 4.0,
    instructions_per_clock: Annotated[
        float, typer.Option(help="Instructions per clock without cache misses.")
    ] = 2.0,
    requests_under_way: Annotated[
        int | None,
        typer.Option(help="Requests in flight at which the core waits; 12 for vector code."),
    ] = None,
    request_ns: Annotated[
        float, typer.Option(help="Time for which a request counts as in flight, ns.")
    ] = 60.0,
    skip_instructions: Annotated[
        int, typer.Option(help="Instructions to run before recording; they warm the caches.")
    ] = 0,
    max_requests: Annotated[
        int | None, typer.Option(help="Stop after this number of requests; record all if left out.")
    ] = None,
    timeout_s: Annotated[float, typer.Option(help="Limit on the wall-clock time, s.")] = 600.0,
    stdin: Annotated[
        Path | None, typer.Option(help="File that the program reads as stdin.")
    ] = None,
    cache: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="A parameter of the caches, such as llc_bytes=4194304."
        ),
    ] = None,
) -> None:
    """Record a program's DRAM requests under valgrind, through a model of the caches.

    The program's output is discarded. Processes that it starts are not recorded:
    give the program itself, not a wrapper such as env or a shell script.
    Recording takes about one second for a million instructions.
    """
    from archgym.envs.dram.traces.recording import record as run_and_record

    path = out if out is not None else Path(f"{Path(command[0]).name}.npz")
    _check_target(path)
    hierarchy = _caches(cache)
    with _shown_progress() as progress:
        trace, card = run_and_record(
            command,
            cache=hierarchy,
            clock_ghz=clock_ghz,
            instructions_per_clock=instructions_per_clock,
            requests_under_way=requests_under_way,
            request_ns=request_ns,
            skip_instructions=skip_instructions,
            max_requests=max_requests,
            timeout_s=timeout_s,
            stdin=stdin,
            progress=progress,
        )
    _save(trace, card, path)


@commands.command("recipe")
def recipe(
    name: Annotated[str, typer.Argument(help="A recorded workload of DRAM-v0.")],
    out: Annotated[
        Path | None, typer.Option(help="The .npz file to write; NAME.npz if left out.")
    ] = None,
    timeout_s: Annotated[float, typer.Option(help="Limit on the wall-clock time, s.")] = 3600.0,
) -> None:
    """Record one of the shipped programs again: its input, command and settings."""
    from archgym.envs.dram.traces.recording_recipes import make

    path = out if out is not None else Path(f"{name}.npz")
    _check_target(path)
    with _shown_progress() as progress:
        trace, card = make(name, timeout_s=timeout_s, progress=progress)
    _save(trace, card, path)


@commands.command("commands")
def commands_of_a_run(
    workload: Annotated[
        str, typer.Argument(help="Name of a workload, path of a trace file, or a YAML mapping.")
    ],
    out: Annotated[Path, typer.Option(help="The CSV file to write.")],
    memory: Annotated[
        str,
        typer.Option(help="Name or file of a device, or a YAML mapping with ranks and channels."),
    ] = "DDR4-2400",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of the controller, such as page_policy=closed; repeatable.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Check every timing rule; exit with status 1 if one is broken."
        ),
    ] = False,
) -> None:
    """Write the commands that the controller sends to the memory as a CSV file."""
    from archgym.cli.options import parsed_pairs
    from archgym.cli.output import fail
    from archgym.envs.dram.validation.command_trace import command_trace
    from archgym.experiment.spec.load import parse_value

    values = parsed_pairs(settings, "--set")
    trace = command_trace(
        parse_value(workload, "WORKLOAD"), parse_value(memory, "--memory"), values
    )
    number = trace.write_csv(out)
    console().print(
        f"{number:,} commands of {trace.memory.name}, {trace.cycles:,} cycles, written to {out}",
        soft_wrap=True,
        markup=False,
    )
    if check:
        wrong = trace.violations()
        if wrong:
            shown = wrong[:20] + ([f"and {len(wrong) - 20:,} more"] if len(wrong) > 20 else [])
            fail(f"{len(wrong):,} timing violations:\n" + "\n".join(shown))
            raise typer.Exit(1)
        console().print("No timing rule is broken.")


@contextmanager
def _shown_progress() -> Iterator[Callable[[int, int], None]]:
    """Shows the progress of a recording on the terminal, and ends it cleanly when interrupted."""
    from rich.console import Console

    status = Console(stderr=True).status("starting the program")

    def update(instructions: int, requests: int) -> None:
        status.update(
            f"{instructions / 1e6:,.0f} million instructions executed, "
            f"{requests:,} requests recorded"
        )

    # A program without output would outlive us; valgrind runs in a separate process group.
    with interruptible(), status:
        yield update


def _save(trace: Trace, card: dict[str, Any], path: Path) -> None:
    from archgym.envs.dram.traces.recording import save_recording

    saved = save_recording(trace, card, path)
    console().print(
        f"{card['requests']:,} requests, {card['write_share']:.0%} of them writes, over "
        f"{card['span_ns'] / 1e6:.3f} ms{_rate(card)}, written to {saved} "
        f"(card: {saved.with_suffix('.json')})",
        soft_wrap=True,
        markup=False,
    )


def _rate(card: dict[str, Any]) -> str:
    """Mean bandwidth that the recording demands; empty if it took no time."""
    if not card["span_ns"]:
        return ""
    return f" ({card['requests'] * card['cache']['line_bytes'] / card['span_ns']:.1f} GB/s)"


def _caches(settings: list[str] | None) -> CacheHierarchy:
    from dataclasses import fields

    from archgym.cli.options import pairs
    from archgym.envs.dram.traces.cache_model import CacheHierarchy
    from archgym.errors import InvalidValueError, UnknownNameError

    allowed = [field.name for field in fields(CacheHierarchy)]
    values: dict[str, int] = {}
    for name, text in pairs(settings, "--cache ").items():
        if name not in allowed:
            raise UnknownNameError("cache setting", name, allowed, "--cache")
        if not text.isdigit():
            raise InvalidValueError(f"--cache {name} is {text!r}; it must be a whole number")
        values[name] = int(text)
    return CacheHierarchy(**values)


def _check_target(path: Path) -> None:
    """Refuses an output path that cannot be written, before minutes of recording are spent."""
    from archgym.errors import InvalidValueError, TraceError

    if path.suffix != ".npz":
        raise InvalidValueError(f"--out {path}: a recording must have the ending '.npz'")
    if not path.parent.is_dir():
        raise TraceError(f"--out {path}: the folder {path.parent} does not exist")
    if path.is_dir():
        raise InvalidValueError(f"--out {path} is a folder: it must be a file")
    if not os.access(path.parent, os.W_OK):
        raise TraceError(f"--out {path}: the folder {path.parent} cannot be written to")
