"""The designs that a trial has evaluated, and duplicates of them among those proposed."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

_MIX = 0x9E3779B97F4A7C15  # 2**64 / golden ratio: spreads neighbouring keys over the table
_WORD = (1 << 64) - 1


class KeyIndex:
    """Numbers integer keys in the order in which they were added: about 20 bytes a key.

    A dictionary or set of Python integers takes four to seven times as much. A hash table with
    open addressing finds a key's index.

    Args:
        largest_key: no key is larger.

    >>> index = KeyIndex(100)
    >>> index.add(7), index.add(9), index.find(9), index.find(8), 7 in index
    (0, 1, 1, -1, True)
    """

    def __init__(self, largest_key: int) -> None:
        self._set_keys(array("Q") if largest_key <= _WORD else [], 8)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: int) -> bool:
        return self._table[self._slot(key)] >= 0

    def find(self, key: int) -> int:
        """Index of a key, -1 if it was never added."""
        return self._table[self._slot(key)]

    def add(self, key: int) -> int:
        """Index of a key, a new one if it was never added."""
        slot = self._slot(key)
        number = self._table[slot]
        if number >= 0:
            return number
        number = len(self._keys)
        if 3 * number >= 2 << self._bits:
            self._set_keys(self._keys, self._bits + 1)
            slot = self._slot(key)
        self._keys.append(key)  # first, so that its length tells of an interruption
        self._table[slot] = number
        return number

    def forget_from(self, number: int) -> None:
        """Forgets the key of that index and all after it."""
        if number < len(self._keys):
            self._set_keys(self._keys[:number], self._bits)

    def _slot(self, key: int) -> int:
        """Slot of the table that holds the key, or would hold it."""
        table, keys, last = self._table, self._keys, len(self._table) - 1
        slot = (hash(key) * _MIX & _WORD) >> (64 - self._bits)
        while (number := table[slot]) >= 0 and keys[number] != key:
            slot = (slot + 1) & last
        return slot

    def _set_keys(self, keys: array[int] | list[int], bits: int) -> None:
        """Makes a table of different keys with ``2**bits`` slots."""
        last = (1 << bits) - 1
        table = array("i", [-1]) * (last + 1)
        for number, key in enumerate(keys):
            slot = (hash(key) * _MIX & _WORD) >> (64 - bits)
            while table[slot] >= 0:
                slot = (slot + 1) & last
            table[slot] = number
        self._keys, self._bits, self._table = keys, bits, table  # whole: an interruption may come


class EvaluationCache:
    """The results of a trial's simulations, under integer keys of designs.

    It takes about 55 bytes a design with four metrics.

    Rows are numbered in the order in which they were added.

    Args:
        n_metrics: metrics a row.
        largest_key: no key is larger.

    >>> cache = EvaluationCache(2, 100)
    >>> cache.add(7, 0, [1.5, 2.5])
    0
    >>> cache.find(7), cache.find(8), cache.values(0)
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
        """Row of a key, -1 if it is not in the cache."""

    def __len__(self) -> int:
        return len(self._index)

    def sort_out(
        self,
        keys: Sequence[int],
        illegal: Collection[int],
        max_new: float,
        max_proposed: float,
    ) -> tuple[list[int], list[int]]:
        """Recognises duplicates: designs in the cache, or proposed twice among these.

        Args:
            keys: of the proposed designs.
            illegal: positions of designs that break a rule.
            max_new: designs that may still be simulated.
            max_proposed: designs that may still be proposed.

        Returns:
            The row of each design, as many as fit: -1 for one that breaks a rule, for a new one
            the row that it is going to have. Then the positions of the new ones.
        """
        rows: list[int] = []
        new: list[int] = []
        pending: dict[int, int] = {}
        for i, key in enumerate(keys):
            if i >= max_proposed or len(new) >= max_new:
                break
            if i in illegal:
                rows.append(-1)
                continue
            row = self.find(key)
            if row < 0:
                row = pending.get(key, -1)
            if row < 0:
                row = pending[key] = len(self) + len(pending)
                new.append(i)
            rows.append(row)
        return rows, new

    def add(self, key: int, status: int, metrics: Sequence[float], reason: str = "") -> int:
        """Keeps the result of a new key; returns its row."""
        row = self._index.add(key)
        self._metrics.extend(metrics)
        self._status.append(status)
        if reason:
            self._reasons[row] = self._texts.setdefault(reason, reason)
        return row

    def forget_from(self, row: int) -> None:
        """Forgets that row and all after it."""
        if row < len(self._index):
            del self._metrics[row * self._width :], self._status[row:]
            self._reasons = {r: reason for r, reason in self._reasons.items() if r < row}
            self._index.forget_from(row)  # last: until then its length tells what is to forget

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
