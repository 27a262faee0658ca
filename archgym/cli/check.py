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
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Run this check only; repeatable."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Hold an environment or an agent to the standard.

    Environments: Gymnasium's, Stable-Baselines3's and our own checks. Agents: the table that every
    agent of ours runs through, on every kind of environment. Searches, comparisons and datasets
    rely on the required ones; the others are polish, which users of what is published expect.
    """
    from rich.text import Text

    from archgym import check as checks
    from archgym.cli.evaluate import pairs
    from archgym.experiment.spec.load import parse_value

    given = {name: parse_value(text, f"--arg {name}") for name, text in pairs(arguments, "--arg ")}
    out = console()

    def show(result: checks.CheckResult) -> None:
        failed = ("FAILED", "bold red") if result.required else ("failed", "yellow")
        mark = ("passed", "green") if result.passed else failed
        kind = "required" if result.required else "polish  "
        detail = f"  {result.detail}" if result.detail else ""
        out.print(Text.assemble(mark, f"  {kind}  {result.name}{detail}"), soft_wrap=True)
        sys.stdout.flush()

    results = checks.check(target, only=only or (), on_result=None if json else show, **given)
    failed = [result for result in results if not result.passed]
    if json:
        fields = ("name", "passed", "detail", "required")
        print_json([{field: getattr(result, field) for field in fields} for result in results])
    else:
        for required, kind in ((True, "required"), (False, "polish")):
            some = [result.passed for result in results if result.required is required]
            if some:
                out.print(Text(f"{sum(some)} of {len(some)} {kind} checks passed"))
    if failed:
        raise typer.Exit(1)
