"""Experiments: a YAML file of environments, agents and seeds, run locally or through Ray Tune."""

from archgym.experiment.results.run_result import RunResult
from archgym.experiment.run.run import RunOptions, run_experiment
from archgym.experiment.simulate.simulators import environment_with_workers
from archgym.experiment.spec.expand import Trial, expand
from archgym.experiment.spec.load import load_experiment, shipped_experiments
from archgym.experiment.spec.schema import Experiment, read_experiment

__all__ = [
    "Experiment",
    "RunOptions",
    "RunResult",
    "Trial",
    "environment_with_workers",
    "expand",
    "load_experiment",
    "read_experiment",
    "run_experiment",
    "shipped_experiments",
]
