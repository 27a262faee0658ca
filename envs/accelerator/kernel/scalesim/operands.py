"""Addresses of a systolic array's operands, in the order in which SCALE-Sim fetches them; compiled.

An operand is a matrix. One of its sides is laid along a side of the array, in folds of the array's
width; the other one is its depth. The address of an element is the sum of a part that its place in
the depth gives and of one that its place along the array gives.
"""

from __future__ import annotations

import numpy as np

from archgym.envs.accelerator.kernel.arrays import Ints
from archgym.envs.accelerator.kernel.compiled import compiled

__all__ = ["fetch_order", "input_parts", "outside", "weight_parts"]


@compiled
def input_parts(layer: Ints) -> tuple[Ints, Ints, int]:
    """Address parts of the inputs of one group, by output pixel and by place in the window.

    Windows that overlap share addresses. The images of a batch follow each other as the rows of a
    matrix product, as in the adapter for SCALE-Sim.

    Args:
        layer: a row of ``LayerTable.bounds``.

    Returns:
        The parts of the pixels, those of the window, and how many addresses there are.
    """
    channels, high, wide, stride = layer[1], layer[2], layer[3], layer[6]
    pixels = layer[8] * layer[4] * layer[5]
    depth = channels * high * wide
    by_pixel = np.empty(pixels, np.int64)
    by_window = np.arange(depth)
    if layer[8] > 1:
        for m in range(pixels):
            by_pixel[m] = m * depth
        return by_pixel, by_window, pixels * depth
    columns = (layer[5] - 1) * stride + wide
    rows = (layer[4] - 1) * stride + high
    for m in range(pixels):
        by_pixel[m] = (m // layer[5] * columns + m % layer[5]) * stride * channels
    for k in range(depth):
        by_window[k] += k // (wide * channels) * (columns - wide) * channels
    return by_pixel, by_window, rows * columns * channels


@compiled
def outside(layer: Ints, addresses: int) -> Ints:
    """Which addresses of :func:`input_parts` lie past the input: 1 there, else 0."""
    found = np.zeros(addresses, np.int64)
    columns = (layer[5] - 1) * layer[6] + layer[3]
    rows = (layer[4] - 1) * layer[6] + layer[2]
    if (layer[9] == 0 and layer[10] == 0) or layer[8] > 1:
        return found
    for i in range(rows):
        for j in range(columns):
            if i >= rows - layer[9] or j >= columns - layer[10]:
                start = (i * columns + j) * layer[1]
                found[start : start + layer[1]] = 1
    return found


@compiled
def weight_parts(layer: Ints) -> tuple[Ints, Ints, int]:
    """Address parts of the weights of one group, by filter and by place in the window, and size."""
    depth = layer[1] * layer[2] * layer[3]
    by_filter = np.arange(layer[0]) * depth
    return by_filter, np.arange(depth), layer[0] * depth


@compiled
def fetch_order(deep: Ints, along: Ints, width: int, skewed: bool, void: Ints) -> Ints:
    """Addresses in the order in which the prefetcher brings them, shape (elements,).

    Folds come one after the other. Where the array takes an operand ``skewed``, the prefetcher goes
    along the diagonals of all folds; else along the rows.

    Args:
        deep: address parts of the depth.
        along: address parts along the array.
        width: of the array.
        skewed: whether each row of the array is a cycle behind the one before.
        void: 1 for addresses at which nothing is, which are left out.
    """
    depth = len(deep)
    folds = -(-len(along) // width)
    rows = folds * depth
    found = np.empty(depth * len(along), np.int64)
    n = 0
    if not skewed:
        for i in range(rows):
            start = i // depth * width
            for b in range(start, min(start + width, len(along))):
                found[n] = deep[i % depth] + along[b]
                n += 1 - void[found[n]]
        return found[:n]
    for diagonal in range(rows + width):
        for j in range(max(0, diagonal - rows + 1), min(diagonal, width - 1) + 1):
            i = diagonal - j
            b = i // depth * width + j
            if b < len(along):
                found[n] = deep[i % depth] + along[b]
                n += 1 - void[found[n]]
    return found[:n]
