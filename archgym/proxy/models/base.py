"""What every learned model is: arrays and plain settings, so that files are safe."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError

Array = NDArray[np.float64]
Features = NDArray[np.float32]
Arrays = Mapping[str, NDArray[Any]]
"""What a model has learned, by name."""
Options = Mapping[str, Any]
"""Settings of a family; those not given have defaults."""
Layout = Mapping[str, tuple[type, str]]
"""Type and names of the axes of each array of a model; axes of one name have one size."""


class Model(ABC):
    """A regression of several targets, each with mean 0 and standard deviation 1.

    Attributes:
        kind: the name of the family.
        layout: its arrays, where their names are always the same.
    """

    kind: ClassVar[str]
    layout: ClassVar[Layout]

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = dict(arrays)

    @classmethod
    @abstractmethod
    def fit(cls, x: Features, z: Array, seed: int, settings: Options) -> Self:
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

    def arrays(self) -> Arrays:
        """All that it has learned."""
        return self._arrays

    @classmethod
    def of(cls, arrays: Arrays, n_features: int, n_targets: int) -> Self:
        """The model that :meth:`arrays` came from.

        Args:
            arrays: from a file, so nothing is believed: what does not fit is refused.
            n_features: that it is to take.
            n_targets: that it is to give.

        Raises:
            InvalidValueError: if the arrays are no such model.
        """
        return cls(checked(arrays, cls.layout, n_features, n_targets, cls.__name__))


def prefixed(prefix: str, arrays: Arrays) -> dict[str, NDArray[Any]]:
    """The arrays, each with a prefix before its name."""
    return {prefix + name: value for name, value in arrays.items()}


def under(prefix: str, arrays: Arrays) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin with a prefix, named without it."""
    return {
        name.removeprefix(prefix): value
        for name, value in arrays.items()
        if name.startswith(prefix)
    }


def checked(
    arrays: Arrays, layout: Layout, n_features: int, n_targets: int, what: str
) -> dict[str, NDArray[Any]]:
    """The arrays of a model in a file, each in the type and shape of the layout.

    Args:
        arrays: by name.
        layout: with ``features`` and ``targets`` as axes of known size, and ``1``.
        n_features: size of axis ``features``.
        n_targets: size of axis ``targets``.
        what: the name of the model, for the message.

    Raises:
        InvalidValueError: if one is missing or of another shape.
    """
    sizes = {"features": n_features, "targets": n_targets, "1": 1}
    found: dict[str, NDArray[Any]] = {}
    for name, (dtype, names) in layout.items():
        if name not in arrays:
            raise InvalidValueError(f"the arrays of the {what} lack {name!r}")
        axes, shape = names.split(), arrays[name].shape
        known = tuple(map(sizes.setdefault, axes, shape))
        if shape != known or len(axes) != len(shape) or not sizes.get("members", 1):
            raise InvalidValueError(
                f"the arrays are not {what} of these features and targets: {name} has shape {shape}"
            )
        found[name] = arrays[name].astype(dtype)
    return found


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
