"""Cell nuclei from a folder: the first stage of the 2018 Data Science Bowl.

Caicedo et al., Nature Methods 2019; set BBBC038 of the Broad Bioimage Benchmark Collection. Each
image has a folder: ``images`` with one PNG, ``masks`` with one PNG for each nucleus. The masks are
put together to one: nucleus or background. Images have many sizes; all are scaled to 128 x 128 by
the mean over the area of each new pixel, masks likewise and cut at a half. Every fifth image, in
the order of the folders' names, is for the test: the set has no masks for its own test.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.nas.data.dataset import Dataset
from archgym.errors import InvalidValueError
from archgym.reading.files import read_bytes

__all__ = ["LAYOUT", "SIZE", "load", "scaled"]

LAYOUT: Final = (
    "stage1_train of the 2018 Data Science Bowl: a folder for each image, with images/*.png and "
    "masks/*.png"
)
SIZE: Final = 128
"""Rows and columns after scaling."""
_TEST_EVERY: Final = 5
_LIMIT_BYTES: Final = 1 << 28
_MAX_PIXELS: Final = 1 << 26


def load(folder: Path) -> Dataset:
    """Return the nuclei, shape (n, 3, 128, 128), and their masks, (n, 1, 128, 128).

    Raises:
        InvalidValueError: if folders or files are missing, or an image and its masks differ in
            size.
    """
    place = folder / "stage1_train" if (folder / "stage1_train").is_dir() else folder
    if not place.is_dir():
        raise InvalidValueError(f"{place} is no folder; it holds {LAYOUT}")
    samples = sorted(each for each in place.iterdir() if (each / "images").is_dir())
    if len(samples) < _TEST_EVERY:
        raise InvalidValueError(
            f"{place}: {len(samples)} folders with images; there are at least {_TEST_EVERY} in "
            f"{LAYOUT}"
        )
    read = [_sample(sample) for sample in samples]
    images = np.stack([image for image, _ in read])
    masks = np.stack([mask for _, mask in read])
    test = np.arange(len(read)) % _TEST_EVERY == _TEST_EVERY - 1
    return Dataset(images[~test], masks[~test], images[test], masks[test])


def scaled(image: NDArray[np.float64], size: int = SIZE) -> NDArray[np.float64]:
    """An image of shape (rows, columns, ...) as (size, size, ...).

    Each new pixel is the mean over its area of the old image; smaller images are enlarged alike.
    """
    found = np.tensordot(_weights(image.shape[0], size), image, axes=(1, 0))
    across = np.tensordot(_weights(image.shape[1], size), found, axes=(1, 1))
    return np.ascontiguousarray(np.swapaxes(across, 0, 1))


def _weights(old: int, new: int) -> NDArray[np.float64]:
    """Shares of the old pixels in each new one, shape (new, old), rows that sum to 1."""
    edges = np.arange(new + 1) * old / new
    left, right = edges[:-1, None], edges[1:, None]
    pixel = np.arange(old)[None, :]
    overlap = np.minimum(right, pixel + 1) - np.maximum(left, pixel)
    shares: NDArray[np.float64] = np.maximum(overlap, 0.0) * new / old
    return shares


def _sample(folder: Path) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    files = sorted((folder / "images").glob("*.png"))
    parts = sorted((folder / "masks").glob("*.png"))
    if len(files) != 1 or not parts:
        raise InvalidValueError(
            f"{folder}: {len(files)} images and {len(parts)} masks; there is one image "
            "(images/*.png) and a mask for each nucleus (masks/*.png)"
        )
    image = _read(files[0])
    mask = np.zeros(image.shape[:2], dtype=bool)
    for part in parts:
        nucleus = _read(part)[:, :, 0]
        if nucleus.shape != mask.shape:
            raise InvalidValueError(f"{part}: {nucleus.shape} pixels, the image has {mask.shape}")
        mask |= nucleus > 0.5
    channels = np.moveaxis(scaled(image), 2, 0).astype(np.float32)
    covered = scaled(mask.astype(np.float64))[None] >= 0.5
    return channels, covered.astype(np.float32)


def _read(file: Path) -> NDArray[np.float64]:
    """A PNG's red, green and blue in [0, 1], shape (rows, columns, 3); opacity is left out."""
    from matplotlib import image

    try:
        content = read_bytes(file, _LIMIT_BYTES)
        columns, rows = (int.from_bytes(content[at : at + 4]) for at in (16, 20))
        if columns * rows > _MAX_PIXELS:
            raise ValueError(f"{columns} x {rows} pixels")
        found = np.asarray(image.imread(io.BytesIO(content), format="png"), dtype=np.float64)
    except (OSError, ValueError, SyntaxError) as error:
        raise InvalidValueError(f"{file}: cannot be read as PNG: {error}") from error
    if found.ndim == 2:
        found = found[:, :, None]
    if found.shape[2] < 3:
        found = np.repeat(found[:, :, :1], 3, axis=2)
    return found[:, :, :3]
