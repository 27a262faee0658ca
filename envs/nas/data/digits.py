"""Handwritten digits, 8x8, made hard enough that networks differ: few images, and noise.

The images are those of scikit-learn (`sklearn.datasets.load_digits`: the test part of the UCI
"Optical Recognition of Handwritten Digits" set, Alpaydin and Kaynak 1998, 1,797 images). Any
network learns them to 99 %; with noise on top, and fewer than half of them to learn from, the
accuracy depends on the architecture.
"""

from __future__ import annotations

import numpy as np

from archgym.envs.nas.data.dataset import Dataset

__all__ = ["load"]

SEED = 20260701
"""Of the split and of the noise."""
TRAIN_IMAGES = 640
"""Different images to learn from; the other 1,157 are for the test."""
NOISE = 0.2
"""Standard deviation of the noise, as a share of the range from white to black."""


def load() -> Dataset:
    """Return the noisy digits; the same numbers on every machine.

    Values are rounded to 1/255 after the noise, so that a last bit of a library's logarithm does
    not matter. They are not clipped: noise goes both ways.
    """
    from sklearn.datasets import load_digits

    source = load_digits()
    images = (source.images / 16.0).astype(np.float64)
    labels = source.target.astype(np.int64)
    rng = np.random.default_rng(SEED)
    order = rng.permutation(len(images))
    train, test = order[:TRAIN_IMAGES], order[TRAIN_IMAGES:]
    return Dataset(
        _noisy(images[train], rng), labels[train], _noisy(images[test], rng), labels[test]
    )


def _noisy(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    noisy = images + NOISE * rng.standard_normal(images.shape)
    return (np.rint(noisy * 255.0) / 255.0).astype(np.float32)[:, None]
