"""Proxies: models trained on datasets that predict metrics in a simulator's place."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from archgym.proxy.files import load_proxy, save_proxy
    from archgym.proxy.proxy import Predictions, Proxy
    from archgym.proxy.scores import Scores, score
    from archgym.proxy.training.data import TrainingData, read_training_data
    from archgym.proxy.training.settings import Settings
    from archgym.proxy.training.train import train

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

_MODULES = {
    "files": ("load_proxy", "save_proxy"),
    "proxy": ("Predictions", "Proxy"),
    "scores": ("Scores", "score"),
    "training.data": ("TrainingData", "read_training_data"),
    "training.settings": ("Settings",),
    "training.train": ("train",),
}


def __getattr__(name: str) -> object:
    """Loads what is used: predictions need neither Arrow nor a library that trains."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(f"archgym.proxy.{module}"), name)
    raise AttributeError(f"module 'archgym.proxy' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What is here, loaded or not: completion and the documentation ask for it."""
    return sorted({*globals(), *__all__})
