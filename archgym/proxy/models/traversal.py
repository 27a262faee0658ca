"""Decision trees as flat arrays, and the compiled walk through them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError
from archgym.proxy.models.base import Array, Arrays, Features, checked
from archgym.simulators.compilation import compiled_once

_LAYOUT = {
    "feature": (np.int32, "nodes"),
    "threshold": (np.float32, "nodes"),
    "left": (np.int32, "nodes"),
    "right": (np.int32, "nodes"),
    "value": (np.float64, "nodes targets"),
    "roots": (np.int32, "trees"),
}
_CHILDREN = ("left", "right")
_BLOCK = 64
_AT_ONCE = 8


class Trees:
    """Many regression trees, their nodes in a row.

    Args:
        arrays: ``feature`` that a node looks at, -1 in a leaf, shape (n_nodes,); ``threshold``: a
            design goes left where the feature is at most this, shape (n_nodes,); ``left``: node on
            the left, always a later one, shape (n_nodes,); ``right``: node on the right; ``value``
            of leaves, shape (n_nodes, n_outputs); ``roots``: first node of each tree, (n_trees,).

    Attributes:
        arrays: the same.
    """

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = dict(arrays)
        feature, threshold, left, right, value, roots = (arrays[name] for name in _LAYOUT)
        # The walk takes the roots first, then pairs of children. The right child comes after the
        # left one; a leaf is its own left child, never left.
        inner = np.flatnonzero(feature >= 0)
        source = np.concatenate([roots, np.stack([left[inner], right[inner]], axis=1).ravel()])
        lefts = np.zeros(len(feature), dtype=np.int32)
        lefts[inner] = len(roots) + 2 * np.arange(len(inner))
        leaf = feature[source] < 0
        self._feature = np.where(leaf, 0, feature[source]).astype(np.int32)
        self._threshold = np.where(leaf, np.inf, threshold[source]).astype(np.float32)
        self._child = np.where(leaf, np.arange(len(source)), lefts[source]).astype(np.int32)
        self._value = np.ascontiguousarray(value[source])

    @staticmethod
    def join(trees: Sequence[Arrays]) -> Trees:
        """One object of many trees, each with nodes numbered from 0, its root."""
        sizes = [len(tree["feature"]) for tree in trees]
        joined = {name: np.concatenate([tree[name] for tree in trees]) for name in trees[0]}
        roots = np.cumsum([0, *sizes[:-1]])
        inner = joined["feature"] >= 0
        for side in _CHILDREN:
            joined[side] = np.where(inner, joined[side] + np.repeat(roots, sizes), 0)
        joined["roots"] = roots
        return Trees({name: joined[name].astype(dtype) for name, (dtype, _) in _LAYOUT.items()})

    def sums(self, x: Features) -> Array:
        """Sum over the trees of their values, shape (n, n_outputs)."""
        return self._sums(x, self._value)

    def square_sums(self, x: Features) -> Array:
        """Sum over the trees of the squares of their values, shape (n, n_outputs)."""
        return self._sums(x, self._value**2)

    def _sums(self, x: Features, value: Array) -> Array:
        n = len(x)
        padded = np.zeros((-(-n // _AT_ONCE) * _AT_ONCE, x.shape[1]), dtype=np.float32)
        padded[:n] = x
        total = np.zeros((len(padded), value.shape[1]))
        nodes = (self._feature, self._threshold, self._child)
        _walk(padded, *nodes, value, len(self.arrays["roots"]), total)
        return total[:n]

    @staticmethod
    def of(arrays: Arrays, n_features: int, n_outputs: int) -> Trees:
        """The trees in a file; a walk never leaves what it accepts, and always ends.

        Raises:
            InvalidValueError: if they are not trees.
        """
        found = checked(arrays, _LAYOUT, n_features, n_outputs, "trees")
        feature, roots = found["feature"], found["roots"]
        inner = np.flatnonzero(feature >= 0)
        children = np.stack([found[side][inner] for side in _CHILDREN])
        sound = [
            (children > inner) & (children < len(feature)),
            feature < n_features,
            (roots >= 0) & (roots < len(feature)),
        ]
        if not all(map(np.all, sound)):
            raise InvalidValueError("the arrays are not trees")
        return Trees(found)


@compiled_once(nogil=True)
def _walk(
    x: Features,
    feature: NDArray[np.int32],
    threshold: NDArray[np.float32],
    child: NDArray[np.int32],
    value: Array,
    trees: int,
    total: Array,
) -> None:
    # A tree stays in the nearest cache for a block of rows. Eight walks at a time, without a
    # branch for where they go: the processor overlaps them, about twice as fast as one by one.
    # The number of rows is a multiple of eight.
    nodes = np.empty(_AT_ONCE, dtype=np.int32)
    for start in range(0, x.shape[0], _BLOCK):
        for root in range(trees):
            for row in range(start, min(start + _BLOCK, x.shape[0]), _AT_ONCE):
                nodes[:] = root
                moved = 1
                while moved:
                    moved = 0
                    for k in range(_AT_ONCE):
                        node = nodes[k]
                        after = child[node] + (x[row + k, feature[node]] > threshold[node])
                        moved |= after ^ node
                        nodes[k] = after
                for k in range(_AT_ONCE):
                    for output in range(value.shape[1]):
                        total[row + k, output] += value[nodes[k], output]
