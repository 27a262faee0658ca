"""Named tuples of arrays that the schedulers pass to each other and to compiled code."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Floats", "Ints", "Layers", "Plan", "Progress"]

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]


class Layers(NamedTuple):
    """A scheduling problem as arrays."""

    latency: Floats
    """Cycles, shape (n_layers, n_sub_accelerators); infinite where a layer cannot run."""
    energy: Floats
    """Any one unit, same shape."""
    starts: Ints
    """First layer of each network, and the number of layers, shape (n_networks + 1,)."""
    chain: Ints
    """Network of each layer, shape (n_layers,)."""


class Plan(NamedTuple):
    """Where and when each layer runs, to be written into; shape (n_layers,) each."""

    assignment: Ints
    """Sub-accelerator."""
    start: Floats
    """Cycle."""
    finish: Floats
    """Cycle."""


class Progress(NamedTuple):
    """How far a partial schedule has come."""

    at: Ints
    """Next layer of each network, shape (n_networks,)."""
    ready: Floats
    """When it could start, shape (n_networks,)."""
    free: Floats
    """When each sub-accelerator has finished, shape (n_sub_accelerators,)."""
