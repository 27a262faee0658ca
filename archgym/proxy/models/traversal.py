"""Decision trees as flat arrays, and the compiled walk through them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from archgym.errors import InvalidValueError
from archgym.proxy.models.base import Array, Features

__all__ = ["Trees"]

_DTYPES = {
    "feature": np.int32,
    "threshold": np.float32,
    "left": np.int32,
    "right": np.int32,
    "value": np.float64,
    "roots": np.int32,
}


@dataclass(frozen=True)
class Trees:
    """Many regression trees, their nodes in a row.

    Attributes:
        feature: that a node looks at, -1 in a leaf, shape (n_nodes,).
        threshold: a design goes left where the feature is at most this, shape (n_nodes,).
        left: node on the left, always a later one, shape (n_nodes,).
        right: node on the right.
        value: of leaves, shape (n_nodes, n_outputs).
        roots: first node of each tree, shape (n_trees,).
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: Array
    roots: NDArray[np.int32]

    @staticmethod
    def join(trees: Sequence[Mapping[str, NDArray[Any]]]) -> Trees:
        """One object of many trees, each with node numbers of its own from 0, its root."""
        sizes = [len(tree["feature"]) for tree in trees]
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)
        parts: dict[str, list[NDArray[Any]]] = {name: [] for name in _DTYPES if name != "roots"}
        for root, tree in zip(roots.tolist(), trees, strict=True):
            leaf = tree["feature"] < 0
            for name, found in parts.items():
                column = tree[name]
                found.append(np.where(leaf, 0, column + root) if name in _CHILDREN else column)
        joined = {
            name: np.ascontiguousarray(np.concatenate(found), dtype=_DTYPES[name])
            for name, found in parts.items()
        }
        return Trees(**joined, roots=roots)

    def sums(self, x: Features) -> tuple[Array, Array]:
        """Sum over the trees of their values, and of the squares, each (n, n_outputs)."""
        total = np.zeros((len(x), self.value.shape[1]))
        squares = np.zeros_like(total)
        _walk(
            np.ascontiguousarray(x),
            *(self.feature, self.threshold, self.left, self.right, self.value, self.roots),
            *(total, squares),
        )
        return total, squares

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        return {name: getattr(self, name) for name in _DTYPES}

    @staticmethod
    def of(arrays: Mapping[str, NDArray[Any]], n_features: int, n_outputs: int) -> Trees:
        """The inverse of :meth:`arrays`; a walk never leaves what it accepts, and always ends.

        Raises:
            InvalidValueError: if they are not trees.
        """
        if not _DTYPES.keys() <= arrays.keys():
            raise InvalidValueError("trees lack arrays")
        made = Trees(
            **{name: np.ascontiguousarray(arrays[name], dtype) for name, dtype in _DTYPES.items()}
        )
        n = len(made.feature)
        inner = made.feature >= 0
        numbers = np.arange(n)
        sound = made.value.shape == (n, n_outputs) and made.roots.ndim == 1
        for name in ("feature", "threshold", "left", "right"):
            sound = sound and getattr(made, name).shape == (n,)
        sound = (
            sound
            and bool((made.feature < n_features).all())
            and bool(((made.roots >= 0) & (made.roots < n)).all())
            and all(
                bool(((child > numbers) & (child < n))[inner].all())
                for child in (made.left, made.right)
            )
        )
        if not sound:
            raise InvalidValueError("the arrays are not trees")
        return made


_CHILDREN = ("left", "right")
_BLOCK = 64


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _walk(
    x: Features,
    feature: NDArray[np.int32],
    threshold: NDArray[np.float32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    value: Array,
    roots: NDArray[np.int32],
    total: Array,
    squares: Array,
) -> None:
    n_outputs = value.shape[1]
    # A tree stays in the nearest cache for a block of rows, and their walks overlap.
    for start in range(0, x.shape[0], _BLOCK):
        stop = min(start + _BLOCK, x.shape[0])
        for tree in range(roots.shape[0]):
            for row in range(start, stop):
                node = roots[tree]
                while feature[node] >= 0:
                    node = left[node] if x[row, feature[node]] <= threshold[node] else right[node]
                for output in range(n_outputs):
                    total[row, output] += value[node, output]
                    squares[row, output] += value[node, output] * value[node, output]
