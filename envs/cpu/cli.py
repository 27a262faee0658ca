"""The command ``archgym trace``: recordings of memory traces and of instruction streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archgym.cli.interruption import interruptible
from archgym.cli.output import console
from archgym.envs.dram import cli as dram

if TYPE_CHECKING:
    from archgym.envs.cpu.traces.program import Program

__all__ = ["commands"]

commands = typer.Typer(
    no_args_is_help=True,
    help="Record memory traces and instruction streams, and look into them.",
)
commands.command("commands")(dram.commands_of_a_run)


@commands.callback()
def _group() -> None:
    """Record memory traces and instruction streams, and look into them."""


@commands.command("info")
def info(
    workload: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="Path of a trace file, name of a workload, or a YAML mapping."
        ),
    ],
    memory: Annotated[
        str | None,
        typer.Option(
            help="Name or file of a device, or a YAML mapping with ranks and channels; all devices "
            "that ship if left out."
        ),
    ] = None,
    cpu: Annotated[
        bool, typer.Option("--cpu", help="A stream of instructions, a workload of CPU-v0.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a trace asks for, and which memories can give it."""
    if not cpu:
        dram.info(workload, memory, json)
        return
    from archgym.cli.output import print_json, print_table
    from archgym.envs.cpu.traces.recording import statistics_of
    from archgym.envs.cpu.traces.workload import load_program
    from archgym.experiment.spec.load import parse_value

    if memory is not None:
        raise typer.BadParameter("--memory does not go with --cpu")
    program = load_program(parse_value(workload, "FILE"))
    found = statistics_of(program)
    if json:
        print_json({"program": program.name, **found})
        return
    rows = [
        ("instructions", f"{found['instructions']:,}, {found['distinct_instructions']:,} distinct"),
        ("branches", f"{found['branch_share']:.1%} of the instructions"),
        ("loads", f"{found['loads']:,}"),
        ("stores", f"{found['stores']:,}"),
        ("code", f"{found['code_lines_64b'] / 16:,.0f} KiB in lines of 64 bytes"),
        ("data", f"{found['data_lines_64b'] / 16:,.0f} KiB in lines of 64 bytes"),
        ("sha256", found["sha256"][:16]),
    ]
    print_table(("program", program.name), rows)


@commands.command("record")
def record(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="The program and its arguments.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The .npz file to write; PROGRAM.npz if left out.")
    ] = None,
    cpu: Annotated[
        bool,
        typer.Option(
            "--cpu", help="Record instructions and data for CPU-v0, not requests to DRAM."
        ),
    ] = False,
    max_instructions: Annotated[
        int | None,
        typer.Option(help="With --cpu: stop after this number of instructions."),
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
    """Record a program under valgrind: its DRAM requests, or with --cpu its instructions.

    The program's output is discarded. Processes that it starts are not recorded:
    give the program itself, not a wrapper such as env or a shell script.
    Recording takes about one second for a million instructions.
    """
    if not cpu:
        if max_instructions is not None:
            raise typer.BadParameter("--max-instructions goes with --cpu")
        dram.record(
            command,
            out,
            clock_ghz,
            instructions_per_clock,
            requests_under_way,
            request_ns,
            skip_instructions,
            max_requests,
            timeout_s,
            stdin,
            cache,
        )
        return
    from archgym.envs.cpu.traces.recording import record_program

    if max_requests is not None or cache:
        raise typer.BadParameter("--max-requests and --cache do not go with --cpu")
    path = out if out is not None else Path(f"{Path(command[0]).name}.npz")
    dram.check_target(path)
    with _shown_progress() as progress:
        program, card = record_program(
            command,
            skip_instructions=skip_instructions,
            max_instructions=max_instructions,
            timeout_s=timeout_s,
            stdin=stdin,
            progress=progress,
        )
    _save(program, card, path)


@commands.command("recipe")
def recipe(
    name: Annotated[str, typer.Argument(help="A recorded workload of DRAM-v0 or CPU-v0.")],
    out: Annotated[
        Path | None, typer.Option(help="The .npz file to write; NAME.npz if left out.")
    ] = None,
    cpu: Annotated[
        bool, typer.Option("--cpu", help="A program of CPU-v0, not a workload of DRAM-v0.")
    ] = False,
    timeout_s: Annotated[float, typer.Option(help="Limit on the wall-clock time, s.")] = 3600.0,
) -> None:
    """Record one of the shipped programs again: its input, command and settings."""
    if not cpu:
        dram.recipe(name, out, timeout_s)
        return
    from archgym.envs.cpu.traces.recording_recipes import make

    path = out if out is not None else Path(f"{name}.npz")
    dram.check_target(path)
    with _shown_progress() as progress:
        program, card = make(name, timeout_s=timeout_s, progress=progress)
    _save(program, card, path)


@commands.command("filter")
def filter_program(
    workload: Annotated[
        str, typer.Argument(help="Name of a program, path of a stream, or a YAML mapping.")
    ],
    out: Annotated[Path, typer.Option(help="The .npz file to write, a workload of DRAM-v0.")],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A parameter of a design of CPU-v0, such as llc_kib=1024; repeatable.",
        ),
    ] = None,
    clock_ghz: Annotated[float, typer.Option(help="Clock of the core, GHz.")] = 4.0,
    instructions_per_clock: Annotated[
        float, typer.Option(help="Instructions per clock without cache misses.")
    ] = 2.0,
) -> None:
    """Write what leaves the last level of a design's caches, as a workload of DRAM-v0."""
    from archgym.cli.options import parsed_pairs
    from archgym.envs.cpu.traces.filtering import filtered_trace
    from archgym.envs.dram.traces.npz_format import write_npz
    from archgym.experiment.spec.load import parse_value

    dram.check_target(out)
    trace = filtered_trace(
        parse_value(workload, "WORKLOAD"),
        parsed_pairs(settings, "--set"),
        clock_ghz=clock_ghz,
        instructions_per_clock=instructions_per_clock,
    )
    write_npz(trace, out)
    console().print(
        f"{len(trace):,} requests, {trace.is_write.mean():.0%} of them writes, over "
        f"{trace.arrival_ps[-1] / 1e9:.3f} ms, written to {out}",
        soft_wrap=True,
        markup=False,
    )


@contextmanager
def _shown_progress() -> Iterator[Callable[[int, int], None]]:
    """Shows the progress of a recording on the terminal, and ends it cleanly when interrupted."""
    from rich.console import Console

    status = Console(stderr=True).status("starting the program")

    def update(executed: int, recorded: int) -> None:
        status.update(
            f"{executed / 1e6:,.0f} million instructions executed, "
            f"{recorded / 1e6:,.1f} million recorded"
        )

    with interruptible(lambda: ["interrupted: nothing is written"]), status:
        yield update


def _save(program: Program, card: dict[str, Any], path: Path) -> None:
    from archgym.envs.cpu.traces.recording import save_program

    save_program(program, card, path)
    console().print(
        f"{len(program):,} instructions, {card['loads']:,} loads and {card['stores']:,} stores, "
        f"written to {path} (card: {path.with_suffix('.json')})",
        soft_wrap=True,
        markup=False,
    )
