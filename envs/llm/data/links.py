"""Bandwidths between the nodes of a cluster: measured, from a file, or synthetic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError, UnknownNameError
from archgym.problem.reference import read_table

__all__ = ["read_links", "synthetic_links"]

_SYNTHETIC = ("seed", "least_share")


def read_links(spec: Any, nodes: int, rate: float) -> NDArray[np.float64]:
    """A matrix of bandwidths, 1e9 bytes a second and GPU, one way, shape (nodes, nodes).

    Args:
        spec: the path of a CSV file with a header of names and a line for each node; a cell is the
            bandwidth from the line's node to the column's, and the diagonal may be empty. Or the
            mapping ``{seed: 0, least_share: 0.3}`` of :func:`synthetic_links`.
        nodes: how many nodes there must be.
        rate: of a synthetic link at its best, 1e9 bytes a second and GPU.

    Raises:
        InvalidValueError: if the file cannot be read, or is no such matrix; names line and column.
            If a setting of synthetic links is not possible.
        UnknownNameError: if there is no setting of that name.
    """
    if isinstance(spec, Mapping):
        return _from_settings(spec, nodes, rate)
    if not isinstance(spec, str | Path):
        raise InvalidValueError(
            f"workload: links is {spec!r:.80}; it must be the path of a file, or a mapping with "
            f"{' and '.join(_SYNTHETIC)}"
        )
    path = spec
    columns, rows = read_table(Path(path))
    if len(columns) != nodes or len(rows) != nodes:
        raise InvalidValueError(
            f"{path}: {len(rows)} lines of {len(columns)} bandwidths; the workload has {nodes} "
            "nodes, so it must be as many of as many"
        )
    found = np.full((nodes, nodes), math.inf)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            value = row.number(column)
            if i == j:
                continue
            if value is None or not 0 < value < math.inf:
                raise row.error(column, "It must be a bandwidth above 0.")
            found[i, j] = value
    return found


def synthetic_links(
    nodes: int, rate: float, *, seed: int = 0, least_share: float = 0.3
) -> NDArray[np.float64]:
    """A made-up matrix of bandwidths, for studies without a measured one, shape (nodes, nodes).

    Each pair of nodes attains a share of the rate that is drawn evenly between ``least_share`` and
    1, the same one both ways. Measured clusters differ from link to link too; that their shares
    are spread in this way is an assumption.

    >>> synthetic_links(2, 25.0, least_share=1.0).tolist()
    [[inf, 25.0], [25.0, inf]]

    Args:
        nodes: how many there are.
        rate: of a link at its best, 1e9 bytes a second and GPU.
        seed: of the draw.
        least_share: of the rate, above 0 and at most 1.
    """
    drawn = np.random.default_rng(seed).uniform(least_share, 1.0, (nodes, nodes))
    shares = np.triu(drawn, 1)
    found = np.asarray(rate * (shares + shares.T), np.float64)
    np.fill_diagonal(found, math.inf)
    return found


def _from_settings(spec: Mapping[str, Any], nodes: int, rate: float) -> NDArray[np.float64]:
    for key in spec:
        if key not in _SYNTHETIC:
            raise UnknownNameError("key", key, _SYNTHETIC, "workload: links")
    seed, share = spec.get("seed", 0), spec.get("least_share", 0.3)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InvalidValueError(
            f"workload: links: seed is {seed!r:.80}; it must be a whole number from 0"
        )
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise InvalidValueError(
            f"workload: links: least_share is {share!r:.80}; it must be above 0 and at most 1"
        )
    if rate <= 0:
        raise InvalidValueError("workload: links: the cluster's network_gb_per_s is 0")
    return synthetic_links(nodes, rate, seed=seed, least_share=share)
