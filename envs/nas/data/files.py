"""Reads data files from a user's folder, and checks that they exist and have the right size.

Only formats without code in them are read: the binary versions of CIFAR-10 and STL-10, and PNG.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError
from archgym.reading.files import read_bytes

__all__ = ["binary_records", "folder_with"]

_LIMIT_BYTES: Final = 1 << 32
"""4 GiB; the largest set of the originals, STL-10's test images, has 221 MB."""


def folder_with(folder: Path, inner: str, needed: Sequence[str], layout: str) -> Path:
    """The folder that has all the files: the one given, or ``inner`` in it.

    Args:
        folder: as the user gave it.
        inner: what the archive of the data set unpacks to.
        needed: names of files or folders.
        layout: what should be there, for messages.

    Raises:
        InvalidValueError: says what is missing.
    """
    if not folder.is_dir():
        raise InvalidValueError(f"{folder} is no folder; it holds {layout}")
    candidates = (folder, folder / inner)
    for candidate in candidates:
        if all((candidate / name).exists() for name in needed):
            return candidate
    nearest = max(candidates, key=lambda place: sum((place / name).exists() for name in needed))
    missing = [name for name in needed if not (nearest / name).exists()]
    raise InvalidValueError(f"{nearest}: no {', '.join(missing)}; the folder holds {layout}")


def binary_records(file: Path, record_bytes: int) -> NDArray[np.uint8]:
    """A file of records of one length, shape (n_records, record_bytes).

    Raises:
        InvalidValueError: if the file cannot be read, is empty or ends within a record.
    """
    try:
        found = np.frombuffer(read_bytes(file, _LIMIT_BYTES), dtype=np.uint8)
    except OSError as error:
        raise InvalidValueError(f"{file}: cannot be read: {error}") from error
    if not found.size or found.size % record_bytes:
        raise InvalidValueError(
            f"{file}: {found.size} bytes; the file has {record_bytes} for each record, and at "
            "least one"
        )
    return found.reshape(-1, record_bytes)
