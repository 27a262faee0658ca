"""What an evaluator remembers of the designs that it simulated: small, and quick to ask."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Known"]

_MIX = 0x9E3779B97F4A7C15  # 2**64 / golden ratio: spreads neighbouring keys over the table
_WORD = (1 << 64) - 1


class Known:
    """Rows of metrics under integer keys: about 55 bytes a design with four metrics.

    A dictionary of Python integers would take three times as much. Rows are numbered in the
    order in which they were added; a hash table with open addressing finds a key's row.

    Args:
        n_metrics: metrics a row.
        largest_key: no key is larger.

    >>> known = Known(2, 100)
    >>> known.add(7, 0, [1.5, 2.5])
    0
    >>> known.find(7), known.find(8), known.values(0)
    (0, -1, [1.5, 2.5])
    """

    def __init__(self, n_metrics: int, largest_key: int) -> None:
        self._width = n_metrics
        self._keys: array[int] | list[int] = array("Q") if largest_key <= _WORD else []
        self._metrics = array("d")
        self._status = array("b")
        self._reasons: dict[int, str] = {}
        self._texts: dict[str, str] = {}
        self._bits = 8
        self._table = self._empty_table()

    def __len__(self) -> int:
        return len(self._status)

    def find(self, key: int) -> int:
        """Row of a key, -1 if it is not known."""
        return self._table[self._slot(key)]

    def add(self, key: int, status: int, metrics: Sequence[float], reason: str = "") -> int:
        """Remembers a new key; its row."""
        row = len(self._status)
        if 3 * row >= 2 << self._bits:
            self._bits += 1
            self._fill_table()
        self._table[self._slot(key)] = row
        self._keys.append(key)
        self._metrics.extend(metrics)
        self._status.append(status)
        if reason:
            self._reasons[row] = self._texts.setdefault(reason, reason)
        return row

    def forget_from(self, row: int) -> None:
        """Forgets that row and all after it."""
        if row < len(self._status):
            del self._keys[row:], self._metrics[row * self._width :], self._status[row:]
            self._reasons = {r: reason for r, reason in self._reasons.items() if r < row}
            self._fill_table()

    def status(self, row: int) -> int:
        """Status of a row."""
        return self._status[row]

    def reason(self, row: int) -> str:
        """Reason of a row; empty if it has none."""
        return self._reasons.get(row, "")

    def values(self, row: int) -> list[float]:
        """Metrics of a row."""
        return self._metrics[row * self._width : (row + 1) * self._width].tolist()

    def statuses(self, rows: NDArray[np.int64]) -> NDArray[np.int8]:
        """Status of many rows, shape (n,)."""
        return np.frombuffer(self._status, dtype=np.int8)[rows]

    def metrics(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Metrics of many rows, shape (n, n_metrics)."""
        return np.frombuffer(self._metrics).reshape(-1, self._width)[rows]

    def _slot(self, key: int) -> int:
        """Where the key is in the table, or where it would go."""
        table, keys, last = self._table, self._keys, len(self._table) - 1
        slot = (hash(key) * _MIX & _WORD) >> (64 - self._bits)
        while (row := table[slot]) >= 0 and keys[row] != key:
            slot = (slot + 1) & last
        return slot

    def _empty_table(self) -> array[int]:
        return array("i", [-1]) * (1 << self._bits)

    def _fill_table(self) -> None:
        self._table = self._empty_table()
        for row, key in enumerate(self._keys):
            self._table[self._slot(key)] = row
