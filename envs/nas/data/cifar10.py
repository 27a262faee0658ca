"""CIFAR-10 from a folder: its binary version.

Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009. A record is one byte, the
class from 0 to 9, and 3,072 bytes, the image: 32 rows of 32 columns of red, then green, then blue.
The version for Python is a pickle, which can run code when it is read: it is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.nas.data.dataset import Dataset
from archgym.envs.nas.data.files import binary_records, folder_with
from archgym.errors import InvalidValueError

__all__ = ["LAYOUT", "load"]

LAYOUT: Final = (
    "the binary version of CIFAR-10 as it is unpacked, cifar-10-batches-bin with "
    "data_batch_1.bin to data_batch_5.bin and test_batch.bin"
)
_TRAIN: Final = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
_TEST: Final = "test_batch.bin"
_SHAPE: Final = (3, 32, 32)
_CLASSES: Final = 10


def load(folder: Path) -> Dataset:
    """Return CIFAR-10: 50,000 images to learn from and 10,000 for the test in the original.

    Raises:
        InvalidValueError: if files are missing or are not CIFAR-10's.
    """
    if (folder / "data_batch_1").is_file() or (folder / "cifar-10-batches-py").is_dir():
        raise InvalidValueError(
            f"{folder} holds the version for Python, a pickle, which archgym does not read; "
            f"get {LAYOUT}"
        )
    place = folder_with(folder, "cifar-10-batches-bin", (*_TRAIN, _TEST), LAYOUT)
    train = _read(place / name for name in _TRAIN)
    test = _read([place / _TEST])
    return Dataset(*train, *test)


def _read(files: Iterable[Path]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    images, labels = [], []
    for file in files:
        records = binary_records(file, 1 + int(np.prod(_SHAPE)))
        if records[:, 0].max() >= _CLASSES:
            raise InvalidValueError(
                f"{file}: class {records[:, 0].max()}; classes are 0 to {_CLASSES - 1}"
            )
        labels.append(records[:, 0].astype(np.int64))
        images.append(records[:, 1:].reshape(-1, *_SHAPE).astype(np.float32) / np.float32(255.0))
    return np.concatenate(images), np.concatenate(labels)
