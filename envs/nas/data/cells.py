"""Generated images of cell nuclei with their masks: a small stand-alone segmentation task.

An image has 3 to 8 elliptic nuclei of uneven brightness and soft edges, an uneven background,
noise, and things that are no nuclei: small bright specks and thin fibres. Some images are bright
on dark (as with a fluorescent dye), the others dark on bright (as with a stain), so that a network
has to look at more than the brightness of a pixel. All is drawn from one seeded generator.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archgym.envs.nas.data.dataset import Dataset

__all__ = ["draw", "load"]

SEED = 20260702
TRAIN_IMAGES = 160
TEST_IMAGES = 320
SIZE = 32
"""Rows and columns."""
NOISE = 0.12
"""Standard deviation of the noise; a nucleus stands out by 0.25 to 0.6."""

Image = NDArray[np.float64]


def load() -> Dataset:
    """Return the cells; the same numbers on every machine (images rounded to 1/255)."""
    rng = np.random.default_rng(SEED)
    drawn = [draw(rng) for _ in range(TRAIN_IMAGES + TEST_IMAGES)]
    stacked = np.stack([image for image, _ in drawn])[:, None]
    images = (np.rint(stacked * 255.0) / 255.0).astype(np.float32)
    masks = np.stack([mask for _, mask in drawn])[:, None].astype(np.float32)
    return Dataset(
        images[:TRAIN_IMAGES], masks[:TRAIN_IMAGES], images[TRAIN_IMAGES:], masks[TRAIN_IMAGES:]
    )


def draw(rng: np.random.Generator, size: int = SIZE) -> tuple[Image, NDArray[np.bool_]]:
    """One image of values about in [0, 1] and its mask, shapes (size, size)."""
    rows, columns = np.mgrid[0:size, 0:size].astype(np.float64)
    image = _background(rng, rows, columns, size)
    mask = np.zeros((size, size), dtype=bool)
    for _ in range(int(rng.integers(3, 9))):
        level = _ellipse(rng, rows, columns, size)
        light = rng.uniform(0.25, 0.6)
        texture = 1.0 + 0.25 * _waves(rng, rows, columns, size, 3.0)
        image += light * texture / (1.0 + np.exp(np.minimum(8.0 * (level - 1.0), 50.0)))
        mask |= level <= 1.0
    image += _debris(rng, rows, columns, size)
    if rng.random() < 0.5:
        image = 1.0 - image
    return image + NOISE * rng.standard_normal(image.shape), mask


def _background(rng: np.random.Generator, rows: Image, columns: Image, size: int) -> Image:
    return rng.uniform(0.05, 0.3) + 0.12 * _waves(rng, rows, columns, size, 0.7)


def _waves(
    rng: np.random.Generator, rows: Image, columns: Image, size: int, periods: float
) -> Image:
    """A sum of two slanted waves in [-1, 1] with up to ``periods`` across the image."""
    total = np.zeros_like(rows)
    for _ in range(2):
        along, across = rng.uniform(-periods, periods, 2)
        phase = rng.uniform(0.0, 2.0 * np.pi)
        total += 0.5 * np.sin(2.0 * np.pi * (along * rows + across * columns) / size + phase)
    return total


def _ellipse(rng: np.random.Generator, rows: Image, columns: Image, size: int) -> Image:
    """Squared distance from a random ellipse's centre, 1 on its edge."""
    row, column = rng.uniform(0.0, size - 1.0, 2)
    radius, flatness = rng.uniform(2.2, 5.5), rng.uniform(0.6, 1.0)
    angle = rng.uniform(0.0, np.pi)
    u = (rows - row) * np.cos(angle) + (columns - column) * np.sin(angle)
    v = (columns - column) * np.cos(angle) - (rows - row) * np.sin(angle)
    distance: Image = (u / radius) ** 2 + (v / (radius * flatness)) ** 2
    return distance


def _debris(rng: np.random.Generator, rows: Image, columns: Image, size: int) -> Image:
    """Specks and thin fibres: as bright as nuclei, but no nuclei."""
    total = np.zeros_like(rows)
    for _ in range(int(rng.integers(2, 7))):
        row, column = rng.uniform(0.0, size - 1.0, 2)
        distance = (rows - row) ** 2 + (columns - column) ** 2
        total += rng.uniform(0.3, 0.7) * np.exp(-distance / (2.0 * rng.uniform(0.5, 0.9) ** 2))
    for _ in range(int(rng.integers(0, 3))):
        row, column = rng.uniform(0.0, size - 1.0, 2)
        angle = rng.uniform(0.0, np.pi)
        distance = (rows - row) * np.cos(angle) - (columns - column) * np.sin(angle)
        total += rng.uniform(0.25, 0.5) * np.exp(-(distance**2) / (2.0 * 0.6**2))
    return total
