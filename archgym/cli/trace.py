"""``archgym trace``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archgym.cli.output import console

if TYPE_CHECKING:
    from archgym.envs.dram.cache import CacheHierarchy

__all__ = ["add_to"]

commands = typer.Typer(no_args_is_help=True, help="Record memory traces for DRAM environments.")


def add_to(app: typer.Typer) -> None:
    """Adds the commands."""
    app.add_typer(commands, name="trace")


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
        float, typer.Option(help="Instructions that complete in a clock without misses.")
    ] = 2.0,
    skip_instructions: Annotated[
        int, typer.Option(help="Instructions before recording; they warm the caches.")
    ] = 0,
    max_requests: Annotated[
        int | None, typer.Option(help="End after so many requests; all if left out.")
    ] = None,
    timeout_s: Annotated[float, typer.Option(help="Limit on the wall time, s.")] = 600.0,
    stdin: Annotated[
        Path | None, typer.Option(help="File that the program reads as stdin.")
    ] = None,
    cache: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A size of the caches, as in llc_bytes=4194304."),
    ] = None,
) -> None:
    """Record a program's DRAM requests under valgrind, through a model of the caches."""
    from archgym.envs.dram.record import record as run_and_record
    from archgym.envs.dram.record import save_recording

    path = out if out is not None else Path(f"{Path(command[0]).name}.npz")
    _check_target(path)
    trace, card = run_and_record(
        command,
        cache=_caches(cache),
        clock_ghz=clock_ghz,
        instructions_per_clock=instructions_per_clock,
        skip_instructions=skip_instructions,
        max_requests=max_requests,
        timeout_s=timeout_s,
        stdin=stdin,
    )
    saved = save_recording(trace, card, path)
    console().print(
        f"{card['requests']:,} requests, {card['write_share']:.0%} of them writes, over "
        f"{card['span_ns'] / 1e6:.3f} ms, written to {saved} (card: {saved.with_suffix('.json')})",
        soft_wrap=True,
        markup=False,
    )


def _caches(settings: list[str] | None) -> CacheHierarchy:
    from dataclasses import fields

    from archgym.cli.evaluate import pairs
    from archgym.envs.dram.cache import CacheHierarchy
    from archgym.errors import InvalidValueError, UnknownNameError

    allowed = [field.name for field in fields(CacheHierarchy)]
    values: dict[str, int] = {}
    for name, text in pairs(settings, "--cache "):
        if name not in allowed:
            raise UnknownNameError("cache setting", name, allowed, "--cache")
        if not text.isdigit():
            raise InvalidValueError(f"--cache {name} cannot be {text!r}: it is a whole number")
        values[name] = int(text)
    return CacheHierarchy(**values)


def _check_target(path: Path) -> None:
    """Says before minutes of recording that its result could not be saved."""
    from archgym.errors import InvalidValueError, TraceError

    if path.suffix != ".npz":
        raise InvalidValueError(f"--out {path}: a recording must have the ending '.npz'")
    if not os.access(path.parent, os.W_OK):
        raise TraceError(f"--out {path}: the folder {path.parent} cannot be written to")
