"""``archgym schema``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from archgym.cli.options import one_of
from archgym.cli.output import print_json

__all__ = ["schema"]


class Kind(StrEnum):
    """Files that have a schema."""

    experiment = "experiment"
    environment = "environment"


def schema(
    kind: Annotated[
        Kind,
        typer.Argument(
            parser=one_of(Kind, "kind"),
            metavar="KIND",
            help="Of which files: experiment, or environment (a program declared in YAML).",
        ),
    ] = Kind.experiment,
) -> None:
    """Print the JSON Schema of experiment files or of declared environments, for editors."""
    if kind is Kind.environment:
        from archgym.declared import Declaration

        print_json(Declaration.model_json_schema(by_alias=True))
        return
    from archgym.experiment.spec.schema import Experiment

    print_json(Experiment.model_json_schema())
