"""``archgym check``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from archgym.cli.options import Json, Named, parsed_pairs
from archgym.cli.output import console, line, print_json

__all__ = ["check"]


def check(
    target: Named,
    arguments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One of its arguments; repeatable."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Run this check only, or all that begin so; repeatable."),
    ] = None,
    json: Json = False,
) -> None:
    """Check that an environment or an agent keeps its contract.

    Environments: the checks of Gymnasium, of Stable-Baselines3 and of archgym. Agents: the checks
    that every agent of archgym passes, on every kind of environment. Searches, comparisons and
    datasets rely on the required checks; the others are polish for published environments.

    Of a YAML file that declares an environment, the program is run: the baseline twice, and each
    parameter moved once. The last line says how long a search will take.
    """
    from rich.text import Text

    from archgym import check as checks

    def show(result: checks.CheckResult) -> None:
        failed = ("FAILED", "bold red") if result.required else ("failed", "yellow")
        mark = ("passed", "green") if result.passed else failed
        kind = "required" if result.required else "polish  "
        detail = f"  {result.detail}" if result.detail else ""
        console().print(Text.assemble(mark, f"  {kind}  {result.name}{detail}"), soft_wrap=True)
        sys.stdout.flush()

    given = parsed_pairs(arguments, "--set")
    results = checks.check(target, only=only or (), on_result=None if json else show, **given)
    if json:
        fields = ("name", "passed", "detail", "required")
        print_json([{field: getattr(result, field) for field in fields} for result in results])
    else:
        for required, kind in ((True, "required"), (False, "polish")):
            some = [result.passed for result in results if result.required is required]
            if some:
                line(f"{sum(some)} of {len(some)} {kind} checks passed")
    if not all(result.passed for result in results):
        raise typer.Exit(1)
