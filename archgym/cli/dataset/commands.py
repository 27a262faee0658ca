"""``archgym dataset``: the state of datasets, new ones from others, and other tools' files."""

from __future__ import annotations

import typer

from archgym.cli.dataset import exchange, new_datasets, state

__all__ = ["commands"]

commands = typer.Typer(
    no_args_is_help=True,
    help="Look into, check, choose from, merge and export trajectory datasets.",
)

for _part in (state, new_datasets, exchange):
    commands.add_typer(_part.commands)
