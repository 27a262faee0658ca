"""Experiments: a YAML file of environments, agents and seeds, run locally or through Ray Tune."""

from archgym.experiment.expand import Trial, expand
from archgym.experiment.load import load_experiment, shipped_experiments
from archgym.experiment.run import RunOptions, RunResult, run_experiment
from archgym.experiment.schema import Experiment, read_experiment

__all__ = [
    "Experiment",
    "RunOptions",
    "RunResult",
    "Trial",
    "expand",
    "load_experiment",
    "read_experiment",
    "run_experiment",
    "shipped_experiments",
]
