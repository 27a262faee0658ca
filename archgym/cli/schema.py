"""``archgym schema``."""

from __future__ import annotations

import typer

from archgym.cli.output import print_json

__all__ = ["add_to", "schema"]


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("schema")(schema)


def schema() -> None:
    """Print the JSON Schema of experiment files, for editors."""
    from archgym.experiment.spec.schema import Experiment

    print_json(Experiment.model_json_schema())
