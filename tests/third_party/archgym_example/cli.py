"""Commands of a third-party environment: a group, and a command by itself."""

from __future__ import annotations

import typer

from archgym_example.adder import Adder  # type: ignore[import-not-found]

commands = typer.Typer(no_args_is_help=True, help="Look into adders.")


@commands.callback()
def _group() -> None:
    """Look into adders."""


@commands.command("blocks")
def blocks(block_bits: int) -> None:
    """Print the number of blocks of a 64-bit adder."""
    typer.echo(64 // block_bits)


def delay(block_bits: int, stages: int = 1) -> None:
    """Print the delay of a 64-bit adder, ns."""
    found = Adder().evaluate({"block_bits": block_bits, "stages": stages})
    typer.echo(f"{found.metrics['delay_ns']:.3f}")
