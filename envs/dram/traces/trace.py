"""A memory trace: timed read and write requests, the workload of the DRAM environment."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archgym.errors import TraceError

__all__ = ["Trace"]


@dataclass(frozen=True, eq=False)
class Trace:
    """Requests in the order in which they reach the memory controller.

    Attributes:
        name: what the trace is called in tables and datasets.
        arrival_ps: arrival time of each request, picoseconds, non-decreasing, shape (n,).
        address: byte address of each request, shape (n,). A device of another line size or
            capacity folds it (see the address mapping).
        is_write: 1 for a write, 0 for a read, shape (n,).

    Raises:
        TraceError: if the arrays are empty, of unequal length, negative or out of order.
    """

    name: str
    arrival_ps: NDArray[np.int64]
    address: NDArray[np.int64]
    is_write: NDArray[np.uint8]

    def __post_init__(self) -> None:
        n = len(self.arrival_ps)
        if n == 0:
            raise TraceError(f"trace {self.name!r} is empty: it must hold at least one request")
        if len(self.address) != n or len(self.is_write) != n:
            raise TraceError(
                f"trace {self.name!r}: arrival_ps, address and is_write differ in length "
                f"({n}, {len(self.address)}, {len(self.is_write)})"
            )
        object.__setattr__(self, "arrival_ps", np.ascontiguousarray(self.arrival_ps, np.int64))
        object.__setattr__(self, "address", np.ascontiguousarray(self.address, np.int64))
        object.__setattr__(self, "is_write", np.ascontiguousarray(self.is_write, np.uint8))
        if self.arrival_ps[0] < 0 or self.address.min() < 0:
            raise TraceError(f"trace {self.name!r}: times and addresses must not be negative")
        steps = np.diff(self.arrival_ps)
        if steps.size and steps.min() < 0:
            at = int(np.argmax(steps < 0)) + 1
            raise TraceError(
                f"trace {self.name!r}: request {at} arrives at {self.arrival_ps[at]} ps, before "
                f"the request ahead of it ({self.arrival_ps[at - 1]} ps)"
            )

    def __len__(self) -> int:
        return len(self.arrival_ps)

    def prefix(self, share: float) -> Trace:
        """Its first requests, as many as that share of all, rounded up."""
        n = math.ceil(share * len(self))
        return Trace(self.name, self.arrival_ps[:n], self.address[:n], self.is_write[:n])

    @property
    def sha256(self) -> str:
        """Hash of the requests (not of the name): equal hashes mean equal workloads."""
        digest = hashlib.sha256()
        for column in (self.arrival_ps, self.address, self.is_write):
            digest.update(column.tobytes())
        return digest.hexdigest()
