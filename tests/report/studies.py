"""Small runs that the report's tests share, and an environment that its own rows fail in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from archgym.agent import Sampler
from archgym.evaluation.outcome import Outcomes
from archgym.experiment import RunOptions, read_experiment, run_experiment
from archgym.space import Designs

__all__ = ["Broken", "run"]


class Broken(Sampler):
    """Raises before it has proposed anything."""

    name = "broken"

    def ask(self, n: int) -> Designs:
        raise RuntimeError("no idea")

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        raise AssertionError("nothing was asked")


def run(folder: Path, **changes: Any) -> Path:
    """Runs an experiment of a few seconds in this process; gives its folder."""
    experiment = read_experiment(
        {
            "name": "small",
            "baseline_first": False,
            "budget": 30,
            "seeds": 2,
            "environments": [{"id": "Conformance-v0", "space": "finite"}],
            "agents": [
                {"name": "random"},
                {"name": "ga", "hyperparameters": {"population_size": [4, 8]}},
            ],
            **changes,
        }
    )
    run_experiment(experiment, folder, RunOptions(local=True, quiet=True))
    return folder
