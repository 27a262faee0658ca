"""What every learned model is: arrays and plain settings, so that files are safe."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError

Array = NDArray[np.float64]
Features = NDArray[np.float32]


class Model(ABC):
    """A regression of several targets, each with mean 0 and standard deviation 1.

    Attributes:
        kind: the name of the family.
    """

    kind: ClassVar[str]

    @classmethod
    @abstractmethod
    def fit(cls, x: Features, z: Array, seed: int, settings: Mapping[str, Any]) -> Model:
        """A model of some data.

        Args:
            x: features, shape (n, n_features).
            z: targets, shape (n, n_targets).
            seed: the only source of randomness.
            settings: of the family; those not given have defaults.
        """

    @abstractmethod
    def predict(self, x: Features) -> tuple[Array, Array]:
        """Mean and spread (a standard deviation, not calibrated), each (n, n_targets)."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that it has learned."""

    @classmethod
    @abstractmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]], n_features: int, n_targets: int) -> Model:
        """The model that :meth:`arrays` came from.

        Args:
            arrays: from a file, so nothing is believed: what does not fit is refused.
            n_features: that it is to take.
            n_targets: that it is to give.

        Raises:
            InvalidValueError: if the arrays are no such model.
        """


def under(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin with a prefix, named without it."""
    return {
        name.removeprefix(prefix): value
        for name, value in arrays.items()
        if name.startswith(prefix)
    }


def checked(
    arrays: Mapping[str, NDArray[Any]], names: Sequence[str], dtype: type, what: str
) -> list[NDArray[Any]]:
    """The named arrays of a model in a file, in one type.

    Raises:
        InvalidValueError: if one is missing.
    """
    for name in names:
        if name not in arrays:
            raise InvalidValueError(f"the arrays of the {what} lack {name!r}")
    return [arrays[name].astype(dtype) for name in names]


def training_steps(settings: Mapping[str, Any], n: int, batch: int, limits: tuple[int, int]) -> int:
    """Number of steps of gradient descent.

    Args:
        settings: with ``epochs`` as often as the data are seen; else 300 times, within the limits.
        n: designs in the data.
        batch: designs in a step.
        limits: minimum and maximum number of steps by default.
    """
    epochs = settings.get("epochs")
    steps = int(int(epochs or 300) * n / batch)
    return int(np.clip(steps, *limits)) if epochs is None else max(steps, 10)


@contextmanager
def one_thread(device: str = "cpu") -> Iterator[None]:
    """Lets PyTorch compute on one thread, so that sums have one order; a GPU is left alone."""
    import torch

    threads = torch.get_num_threads()
    if device == "cpu":
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
