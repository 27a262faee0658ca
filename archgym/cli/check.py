"""``archgym check``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from archgym.cli.output import console, print_json

__all__ = ["add_to", "check"]


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("check")(check)


def check(
    target: Annotated[
        str,
        typer.Argument(metavar="ENV|AGENT", help="A registered name, or module:Class."),
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Option("--arg", metavar="KEY=VALUE", help="One of its arguments; repeatable."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Hold an environment or an agent to the standard.

    Environments: Gymnasium's, Stable-Baselines3's and our own checks. Agents: the table that every
    agent of ours runs through, on every kind of environment.
    """
    from rich.text import Text

    from archgym import check as checks
    from archgym.cli.evaluate import pairs
    from archgym.experiment.load import parse_value

    given = {name: parse_value(text, f"--arg {name}") for name, text in pairs(arguments, "--arg ")}
    out = console()

    def show(result: checks.CheckResult) -> None:
        mark = ("passed", "green") if result.passed else ("FAILED", "bold red")
        detail = f"  {result.detail}" if result.detail else ""
        out.print(Text.assemble(mark, f"  {result.name}{detail}"), soft_wrap=True)
        sys.stdout.flush()

    results = checks.check(target, on_result=None if json else show, **given)
    failed = [result for result in results if not result.passed]
    if json:
        fields = ("name", "passed", "detail")
        print_json([{field: getattr(result, field) for field in fields} for result in results])
    else:
        out.print(Text(f"{len(results) - len(failed)} of {len(results)} checks passed"))
    if failed:
        raise typer.Exit(1)
