"""One form for every data set, and the function that loads one by its name."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["Dataset", "checked_folders", "load"]

_GENERATED: Final = ("cells", "digits")
_FROM_FOLDER: Final = ("cifar10", "nuclei", "stl10")


@dataclass(frozen=True)
class Dataset:
    """Images with their labels or masks.

    Images have shape (n, channels, rows, columns), float32, about in [0, 1]. Labels are classes,
    shape (n,), int64, or masks, shape (n, 1, rows, columns), float32 of 0 and 1.
    """

    train_images: NDArray[np.float32]
    train_labels: NDArray[np.int64] | NDArray[np.float32]
    test_images: NDArray[np.float32]
    test_labels: NDArray[np.int64] | NDArray[np.float32]

    def __post_init__(self) -> None:
        for split in ("train", "test"):
            images, labels = getattr(self, f"{split}_images"), getattr(self, f"{split}_labels")
            if len(images) != len(labels) or not len(images):
                raise InvalidValueError(
                    f"{split}: {len(images)} images and {len(labels)} labels; there is at least "
                    "one image, and one label for each"
                )

    @property
    def digest(self) -> str:
        """First 16 hexadecimal digits of the SHA-256 of all four arrays."""
        total = hashlib.sha256()
        for array in (self.train_images, self.train_labels, self.test_images, self.test_labels):
            total.update(np.ascontiguousarray(array).tobytes())
        return total.hexdigest()[:16]


@lru_cache(maxsize=4)
def load(name: str, folder: Path | None = None) -> Dataset:
    """Return a data set; ``folder`` holds the files of those that cannot be shipped.

    Raises:
        UnknownNameError: if there is no data set of that name.
        InvalidValueError: if the data set needs a folder and there is none, or its files are bad.
    """
    if name not in _GENERATED + _FROM_FOLDER:
        raise UnknownNameError("data set", name, _GENERATED + _FROM_FOLDER)
    module = importlib.import_module(f"archgym.envs.nas.data.{name}")
    if name in _GENERATED:
        made: Dataset = module.load()
        return made
    if folder is None:
        raise InvalidValueError(
            f"data set {name!r} does not ship with archgym: give the folder that holds it "
            f"({module.LAYOUT})"
        )
    read: Dataset = module.load(Path(folder))
    return read


def checked_folders(data: Mapping[str, str | Path] | None) -> dict[str, Path]:
    """Folders of data sets that do not ship, by the data set's name, as a user gives them.

    Raises:
        InvalidValueError: if it is no mapping.
        UnknownNameError: if there is no data set of that name, or it ships.
    """
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise InvalidValueError(
            f"data is {data!r:.80}; it must be a mapping of data sets ({', '.join(_FROM_FOLDER)}) "
            "to folders"
        )
    for name in data:
        if name not in _FROM_FOLDER:
            raise UnknownNameError("data set", name, _FROM_FOLDER, "data")
    return {name: Path(folder) for name, folder in data.items()}
