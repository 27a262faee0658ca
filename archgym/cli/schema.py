"""``archgym schema``."""

from __future__ import annotations

from archgym.cli.output import print_json

__all__ = ["schema"]


def schema() -> None:
    """Print the JSON Schema of experiment files, for editors."""
    from archgym.experiment.spec.schema import Experiment

    print_json(Experiment.model_json_schema())
