"""What is remembered of designs that were met: small, and quick to ask."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["KeyIndex", "Known"]

_MIX = 0x9E3779B97F4A7C15  # 2**64 / golden ratio: spreads neighbouring keys over the table
_WORD = (1 << 64) - 1


class KeyIndex:
    """Numbers integer keys in the order in which they were added: about 20 bytes a key.

    A dictionary or set of Python integers takes four to seven times as much. A hash table with
    open addressing finds a key's number.

    Args:
        largest_key: no key is larger.

    >>> index = KeyIndex(100)
    >>> index.add(7), index.add(9), index.find(9), index.find(8), 7 in index
    (0, 1, 1, -1, True)
    """

    def __init__(self, largest_key: int) -> None:
        self._keys: array[int] | list[int] = array("Q") if largest_key <= _WORD else []
        self._bits = 8
        self._table = self._empty_table()

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: int) -> bool:
        return self._table[self._slot(key)] >= 0

    def find(self, key: int) -> int:
        """Number of a key, -1 if it was never added."""
        return self._table[self._slot(key)]

    def add(self, key: int) -> int:
        """Number of a key, a new one if it was never added."""
        slot = self._slot(key)
        number = self._table[slot]
        if number >= 0:
            return number
        number = len(self._keys)
        if 3 * number >= 2 << self._bits:
            self._bits += 1
            self._fill_table()
            slot = self._slot(key)
        self._table[slot] = number
        self._keys.append(key)
        return number

    def forget_from(self, number: int) -> None:
        """Forgets the key of that number and all after it."""
        if number < len(self._keys):
            del self._keys[number:]
            self._fill_table()

    def _slot(self, key: int) -> int:
        """Where the key is in the table, or where it would go."""
        table, keys, last = self._table, self._keys, len(self._table) - 1
        slot = (hash(key) * _MIX & _WORD) >> (64 - self._bits)
        while (number := table[slot]) >= 0 and keys[number] != key:
            slot = (slot + 1) & last
        return slot

    def _empty_table(self) -> array[int]:
        return array("i", [-1]) * (1 << self._bits)

    def _fill_table(self) -> None:
        self._table = self._empty_table()
        for number, key in enumerate(self._keys):
            self._table[self._slot(key)] = number


class Known:
    """Rows of metrics under integer keys: about 55 bytes a design with four metrics.

    Rows are numbered in the order in which they were added.

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
        self._index = KeyIndex(largest_key)
        self._metrics = array("d")
        self._status = array("b")
        self._reasons: dict[int, str] = {}
        self._texts: dict[str, str] = {}
        self.find = self._index.find
        """Row of a key, -1 if it is not known."""

    def __len__(self) -> int:
        return len(self._status)

    def add(self, key: int, status: int, metrics: Sequence[float], reason: str = "") -> int:
        """Remembers a new key; its row."""
        row = self._index.add(key)
        self._metrics.extend(metrics)
        self._status.append(status)
        if reason:
            self._reasons[row] = self._texts.setdefault(reason, reason)
        return row

    def forget_from(self, row: int) -> None:
        """Forgets that row and all after it."""
        if row < len(self._status):
            self._index.forget_from(row)
            del self._metrics[row * self._width :], self._status[row:]
            self._reasons = {r: reason for r, reason in self._reasons.items() if r < row}

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
