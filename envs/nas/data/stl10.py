"""STL-10 from a folder: its binary version (Coates, Ng and Lee, AISTATS 2011).

An image is 27,648 bytes: red, then green, then blue, each column by column, 96 columns of 96
rows. Classes are one byte each, from 1 to 10. The images without a class are not used.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.nas.data.dataset import Dataset
from archgym.envs.nas.data.files import binary_records, folder_with
from archgym.errors import InvalidValueError

__all__ = ["LAYOUT", "load"]

LAYOUT: Final = (
    "the binary version of STL-10 as it is unpacked, stl10_binary with train_X.bin, train_y.bin, "
    "test_X.bin and test_y.bin"
)
_FILES: Final = ("train_X.bin", "train_y.bin", "test_X.bin", "test_y.bin")
_SIZE: Final = 96
_CLASSES: Final = 10


def load(folder: Path) -> Dataset:
    """Return STL-10: 5,000 images to learn from and 8,000 for the test in the original.

    Raises:
        InvalidValueError: if files are missing or are not STL-10's.
    """
    place = folder_with(folder, "stl10_binary", _FILES, LAYOUT)
    return Dataset(
        _images(place / "train_X.bin"),
        _labels(place / "train_y.bin"),
        _images(place / "test_X.bin"),
        _labels(place / "test_y.bin"),
    )


def _images(file: Path) -> NDArray[np.float32]:
    columns_first = binary_records(file, 3 * _SIZE * _SIZE).reshape(-1, 3, _SIZE, _SIZE)
    images = np.swapaxes(columns_first, 2, 3).astype(np.float32, order="C")
    return images / np.float32(255.0)


def _labels(file: Path) -> NDArray[np.int64]:
    found = binary_records(file, 1)[:, 0].astype(np.int64)
    if found.min() < 1 or found.max() > _CLASSES:
        raise InvalidValueError(
            f"{file}: classes from {found.min()} to {found.max()}; they must be 1 to {_CLASSES}"
        )
    return found - 1
