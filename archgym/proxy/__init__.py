"""Proxies: models trained on datasets that predict metrics in a simulator's place."""

from archgym.proxy.examples import TrainingData, read_training_data
from archgym.proxy.files import load_proxy, save_proxy
from archgym.proxy.proxy import Predictions, Proxy
from archgym.proxy.scores import Scores, score
from archgym.proxy.training import Settings, train

__all__ = [
    "Predictions",
    "Proxy",
    "Scores",
    "Settings",
    "TrainingData",
    "load_proxy",
    "read_training_data",
    "save_proxy",
    "score",
    "train",
]
