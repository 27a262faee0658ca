"""Designs as single integers."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class DesignKeys:
    """The base of a design space that gives keys.

    Integers that are equal exactly for equal canonical codes: mixed radix, -1 as the digit 0.

    Args:
        sizes: number of levels of each parameter.

    Attributes:
        largest_key: no design's :meth:`key` is larger.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self._radices = [size + 1 for size in sizes]
        behind = itertools.accumulate(self._radices[:0:-1], operator.mul, initial=1)
        self._weights = list(behind)[::-1]
        self._key_of_zeros = sum(self._weights)
        self.largest_key = math.prod(self._radices) - 1

    def key(self, codes: Sequence[int]) -> int:
        """An integer that is equal exactly for equal canonical codes."""
        key: int = sum(map(operator.mul, codes, self._weights), self._key_of_zeros)
        return key

    def keys(self, codes: NDArray[np.int64]) -> list[int]:
        """:meth:`key` of many rows, shape (n, n_parameters), in parts that 64 bits hold."""
        total: list[int] = [0] * len(codes)
        start = 0
        while start < len(self._radices):
            stop, span = start, 1
            while stop < len(self._radices) and span * self._radices[stop] < 1 << 62:
                span *= self._radices[stop]
                stop += 1
            part = np.zeros(len(codes), dtype=np.int64)
            for position in range(start, stop):
                part = part * self._radices[position] + codes[:, position] + 1
            values = part.tolist()
            total = (
                values if start == 0 else [a * span + b for a, b in zip(total, values, strict=True)]
            )
            start = stop
        return total
