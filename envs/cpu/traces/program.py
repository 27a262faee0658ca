"""An instruction stream: the instructions that a program executed, and the bytes they touched."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from archgym.errors import TraceError

__all__ = ["LOAD", "MODIFY", "STORE", "Program"]

LOAD: Final = 0
STORE: Final = 1
MODIFY: Final = 2  # an instruction reads and writes the same bytes


@dataclass(frozen=True, eq=False)
class Program:
    """Executed instructions of one thread, in order.

    Attributes:
        name: what the stream is called in tables and datasets.
        ip: address of each distinct instruction, shape (s,).
        length: its bytes; 0 where they are not known, shape (s,).
        branch: 1 for an instruction that may change the flow, shape (s,).
        destinations: registers that it writes, numbered as ChampSim does, 0 for none; 6 is the
            stack pointer, 25 the flags, 26 the instruction pointer; shape (s, 2).
        sources: registers that it reads, shape (s, 4).
        code: which of these each executed instruction is, shape (n,).
        taken: 1 for an executed branch that was taken, shape (n,).
        data_instruction: number of the executed instruction that touches memory, ascending,
            shape (m,).
        data_kind: LOAD, STORE or MODIFY, shape (m,).
        data_address: first byte, virtual address, shape (m,).
        data_size: bytes; 1 where the size is not known, shape (m,).

    Raises:
        TraceError: if the arrays do not fit together.
    """

    name: str
    ip: NDArray[np.int64]
    length: NDArray[np.uint8]
    branch: NDArray[np.uint8]
    destinations: NDArray[np.uint8]
    sources: NDArray[np.uint8]
    code: NDArray[np.int32]
    taken: NDArray[np.uint8]
    data_instruction: NDArray[np.int32]
    data_kind: NDArray[np.uint8]
    data_address: NDArray[np.int64]
    data_size: NDArray[np.uint16]

    def __post_init__(self) -> None:
        distinct, executed, touched = len(self.ip), len(self.code), len(self.data_kind)
        if executed == 0:
            raise TraceError(f"program {self.name!r} is empty: it must hold an instruction")
        shapes = {
            "ip": (distinct,),
            "length": (distinct,),
            "branch": (distinct,),
            "destinations": (distinct, 2),
            "sources": (distinct, 4),
            "code": (executed,),
            "taken": (executed,),
            "data_instruction": (touched,),
            "data_kind": (touched,),
            "data_address": (touched,),
            "data_size": (touched,),
        }
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise TraceError(
                    f"program {self.name!r}: {name} has the shape {getattr(self, name).shape}; "
                    f"it must be {shape}"
                )
        if self.code.min() < 0 or self.code.max() >= distinct:
            raise TraceError(f"program {self.name!r}: code names an instruction that is not there")
        if self.ip.min() < 0 or (touched and self.data_address.min() < 0):
            raise TraceError(f"program {self.name!r}: addresses must not be negative")
        if touched:
            steps = np.diff(self.data_instruction)
            if self.data_instruction[0] < 0 or self.data_instruction[-1] >= executed:
                raise TraceError(f"program {self.name!r}: data of an instruction that is not there")
            if len(steps) and steps.min() < 0:
                raise TraceError(f"program {self.name!r}: data_instruction must not descend")
            if self.data_kind.max() > MODIFY or self.data_size.min() < 1:
                raise TraceError(f"program {self.name!r}: a kind or a size of data is not possible")

    def __len__(self) -> int:
        """Executed instructions."""
        return len(self.code)

    @cached_property
    def data_first(self) -> NDArray[np.int64]:
        """Where the data of each executed instruction begin, and where the last ones end."""
        return np.searchsorted(self.data_instruction, np.arange(len(self.code) + 1)).astype(
            np.int64
        )

    def part(self, start: int, stop: int, name: str | None = None) -> Program:
        """The executed instructions from ``start`` on, before ``stop``."""
        first, last = np.searchsorted(self.data_instruction, (start, stop))
        used, code = np.unique(self.code[start:stop], return_inverse=True)
        return Program(
            self.name if name is None else name,
            self.ip[used],
            self.length[used],
            self.branch[used],
            self.destinations[used],
            self.sources[used],
            code.astype(np.int32),
            self.taken[start:stop],
            (self.data_instruction[first:last] - start).astype(np.int32),
            self.data_kind[first:last],
            self.data_address[first:last],
            self.data_size[first:last],
        )

    @cached_property
    def sha256(self) -> str:
        """Hash of the stream (not of the name): equal hashes mean equal workloads."""
        digest = hashlib.sha256()
        for field in fields(self):
            if field.name != "name":
                digest.update(np.ascontiguousarray(getattr(self, field.name)).tobytes())
        return digest.hexdigest()
