"""Commands of ``archgym trace`` about memory traces; :mod:`archgym.envs.cpu.cli` has the group."""

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

__all__ = ["check_target", "commands_of_a_run", "info", "recipe", "record"]

_DEFAULT_MEMORY = "DDR4-2400"
"""The memory of DRAM-v0 where none is named."""


def record(
    command: list[str],
    out: Path | None,
    clock_ghz: float,
    instructions_per_clock: float,
    requests_under_way: int | None,
    request_ns: float,
    skip_instructions: int,
    max_requests: int | None,
    timeout_s: float,
    stdin: Path | None,
    cache: list[str] | None,
) -> None:
    """Records a program's DRAM requests: ``archgym trace record`` without ``--cpu``."""
    from archgym.envs.dram.traces.recording import record as run_and_record

    path = out if out is not None else Path(f"{Path(command[0]).name}.npz")
    check_target(path)
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


def info(workload: str, memory: str | None, json: bool) -> None:
    """Says what a trace asks for: ``archgym trace info`` without ``--cpu``."""
    from dataclasses import asdict

    from archgym.cli.output import paragraph, print_json, print_table
    from archgym.envs.dram.device.data_sheets import device_names
    from archgym.envs.dram.device.memory import load_memory
    from archgym.envs.dram.traces.demand import (
        asked_gb_per_s,
        demand_of,
        demand_warning,
        peak_gb_per_s,
    )
    from archgym.envs.dram.traces.workload import load_workload
    from archgym.experiment.spec.load import parse_value

    trace = load_workload(parse_value(workload, "FILE"))
    chosen = device_names() if memory is None else [parse_value(memory, "--memory")]
    memories = [load_memory(one) for one in chosen]
    demand, sha256 = demand_of(trace), trace.sha256
    loads = [(one, asked_gb_per_s(trace, one), peak_gb_per_s(one)) for one in memories]
    if json:
        rows = [
            {"memory": one.name, "asked_gb_per_s": asked, "peak_gb_per_s": peak}
            for one, asked, peak in loads
        ]
        print_json({"trace": trace.name, "sha256": sha256, **asdict(demand), "memories": rows})
        return
    kib = demand.footprint_bytes / 1024
    size = f"{kib:,.0f} KiB" if kib < 10240 else f"{kib / 1024:,.0f} MiB"
    print_table(
        ("trace", trace.name),
        [
            ("requests", f"{demand.requests:,}, {demand.read_share:.1%} of them reads"),
            ("time", f"{demand.span_ns / 1e6:,.4g} ms from the first to the last"),
            ("footprint", f"{size} in lines of 64 bytes, up to {demand.highest_address:#x}"),
            ("busiest", f"{demand.burst_gb_per_s:.3g} GB/s in its busiest twentieth"),
            ("sha256", sha256[:16]),
        ],
    )
    print_table(
        ("memory", ">asked GB/s", ">peak GB/s", ">load"),
        [
            (one.name, f"{asked:.3g}", f"{peak:.3g}", f"{asked / peak:.0%}")
            for one, asked, peak in loads
        ],
    )
    for one in memories if memory is not None else ():
        if text := demand_warning(trace, one):
            paragraph(text, "yellow")


def recipe(name: str, out: Path | None, timeout_s: float) -> None:
    """Records a shipped program again: ``archgym trace recipe`` without ``--cpu``."""
    from archgym.envs.dram.traces.recording_recipes import make

    path = out if out is not None else Path(f"{name}.npz")
    check_target(path)
    with _shown_progress() as progress:
        trace, card = make(name, timeout_s=timeout_s, progress=progress)
    _save(trace, card, path)


def commands_of_a_run(
    workload: Annotated[
        str, typer.Argument(help="Name of a workload, path of a trace file, or a YAML mapping.")
    ],
    out: Annotated[Path, typer.Option(help="The CSV file to write.")],
    memory: Annotated[
        str,
        typer.Option(help="Name or file of a device, or a YAML mapping with ranks and channels."),
    ] = _DEFAULT_MEMORY,
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
    with interruptible(lambda: ["interrupted: nothing is written"]), status:
        yield update


def _save(trace: Trace, card: dict[str, Any], path: Path) -> None:
    from archgym.envs.dram.device.memory import load_memory
    from archgym.envs.dram.traces.demand import demand_warning
    from archgym.envs.dram.traces.recording import save_recording

    saved = save_recording(trace, card, path)
    console().print(
        f"{card['requests']:,} requests, {card['write_share']:.0%} of them writes, over "
        f"{card['span_ns'] / 1e6:.3f} ms{_rate(card)}, written to {saved} "
        f"(card: {saved.with_suffix('.json')})",
        soft_wrap=True,
        markup=False,
    )
    if text := demand_warning(trace, load_memory(_DEFAULT_MEMORY)):
        console().print(text, style="yellow", markup=False)


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


def check_target(path: Path) -> None:
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
