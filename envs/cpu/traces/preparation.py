"""A program's references to its caches, in the order of the program."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archgym.envs.cpu.hierarchy.layout import FETCH
from archgym.envs.cpu.hierarchy.layout import LOAD as LOADED
from archgym.envs.cpu.hierarchy.layout import STORE as STORED
from archgym.envs.cpu.hierarchy.references import References
from archgym.envs.cpu.traces.program import MODIFY, STORE, Program

__all__ = ["references_of"]


def references_of(program: Program) -> References:
    """One fetch for each executed instruction, then its loads and stores.

    An access that reads and writes becomes a load and a store.
    """
    twice = program.data_kind == MODIFY
    number = np.repeat(program.data_instruction, twice + 1)
    address = np.repeat(program.data_address, twice + 1)
    size = np.repeat(program.data_size, twice + 1)
    kind = np.repeat(np.where(program.data_kind == STORE, STORED, LOADED), twice + 1)
    second = np.cumsum(twice + 1)[twice] - 1
    kind[second] = STORED
    executed = len(program)
    fetch_at = np.arange(executed) + np.searchsorted(number, np.arange(executed), side="left")
    total = executed + len(number)
    is_fetch = np.zeros(total, bool)
    is_fetch[fetch_at] = True
    data_at = np.flatnonzero(~is_fetch)
    ip = program.ip[program.code]

    def merged(fetched: NDArray[np.generic], data: NDArray[np.generic]) -> NDArray[np.generic]:
        column = np.empty(total, fetched.dtype)
        column[fetch_at] = fetched
        column[data_at] = data
        return column

    return References(
        merged(np.full(executed, FETCH, np.uint8), kind.astype(np.uint8)),  # type: ignore[arg-type]
        merged(ip, address),  # type: ignore[arg-type]
        merged(np.maximum(program.length, 1)[program.code].astype(np.uint16), size),  # type: ignore[arg-type]
        merged(np.arange(executed, dtype=np.int32), number),  # type: ignore[arg-type]
        merged(ip, ip[number]),  # type: ignore[arg-type]
        executed,
    )
