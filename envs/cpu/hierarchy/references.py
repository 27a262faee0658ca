"""The references of a program to its caches, in the order of the program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["References"]


@dataclass(frozen=True, eq=False)
class References:
    """What a program asks its first-level caches for.

    Attributes:
        kind: LOAD, STORE, FETCH or TRANSLATION of :mod:`archgym.envs.cpu.hierarchy.layout`, shape
            (n,). An instruction that reads and writes the same bytes is a load and a store.
        address: first byte, shape (n,).
        size: bytes, shape (n,).
        instruction: number of the instruction, ascending, shape (n,).
        ip: address of the instruction, shape (n,).
        instructions: how many instructions there are.
    """

    kind: NDArray[np.uint8]
    address: NDArray[np.int64]
    size: NDArray[np.uint16]
    instruction: NDArray[np.int32]
    ip: NDArray[np.int64]
    instructions: int

    def __len__(self) -> int:
        return len(self.kind)
