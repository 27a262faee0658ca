"""Branches of an instruction stream, and the mispredictions of a unit on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archgym.envs.cpu.branch import layout as k
from archgym.envs.cpu.branch.settings import BranchUnit
from archgym.errors import TraceError

__all__ = ["Branches", "Mispredictions", "branch_kinds", "mispredictions"]

# The registers by which ChampSim's traces tell branches apart.
STACK_POINTER, FLAGS, INSTRUCTION_POINTER = 6, 25, 26


def branch_kinds(destinations: NDArray[np.uint8], sources: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The kind of each instruction by the registers that it names, as ChampSim's reader does.

    Args:
        destinations: registers written, shape (n, 2); 0: none.
        sources: registers read, shape (n, 4); 0: none.

    Returns:
        Codes of :mod:`~archgym.envs.cpu.branch.layout`, shape (n,).
    """
    special = (STACK_POINTER, FLAGS, INSTRUCTION_POINTER)
    writes_sp, writes_ip = (
        (destinations == register).any(axis=1) for register in (STACK_POINTER, INSTRUCTION_POINTER)
    )
    reads_sp, reads_flags, reads_ip = ((sources == register).any(axis=1) for register in special)
    reads_other = ((sources != 0) & ~np.isin(sources, special)).any(axis=1)
    calls = reads_sp & reads_ip & writes_sp & ~reads_flags
    plain = ~reads_sp & ~reads_flags
    choices = [
        (plain & ~reads_other, k.DIRECT_JUMP),
        (plain & ~reads_ip & reads_other, k.INDIRECT),
        (~reads_sp & reads_ip & ~writes_sp & (reads_flags | reads_other), k.CONDITIONAL),
        (calls & ~reads_other, k.DIRECT_CALL),
        (calls & reads_other, k.INDIRECT_CALL),
        (reads_sp & ~reads_ip & writes_sp, k.RETURN),
    ]
    kinds = np.select([when for when, _ in choices], [kind for _, kind in choices], k.OTHER)
    return np.where(writes_ip, kinds, k.NOT_BRANCH).astype(np.uint8)


@dataclass(frozen=True)
class Branches:
    """What branch prediction sees of a stream of n instructions.

    Attributes:
        ip: addresses, int64, shape (n,).
        kind: codes of :mod:`~archgym.envs.cpu.branch.layout`, uint8, shape (n,).
        taken: whether each one jumped, bool, shape (n,).
        target: where each one jumped to, 0 if it did not, int64, shape (n,).
        shares: whether some branch lies in the same word of four bytes, bool, shape (n,).
    """

    ip: NDArray[np.int64]
    kind: NDArray[np.uint8]
    taken: NDArray[np.bool_]
    target: NDArray[np.int64]
    shares: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        ip: Sequence[int] | NDArray[np.integer],
        kind: Sequence[int] | NDArray[np.integer],
        taken: Sequence[bool] | NDArray[np.integer] | NDArray[np.bool_],
    ) -> Branches:
        """The branches of a stream, whose targets are the next addresses.

        Args:
            ip: addresses, shape (n,).
            kind: codes of the kinds, shape (n,).
            taken: whether a conditional branch jumped, shape (n,); others always do.

        Raises:
            TraceError: if the lengths differ, or a kind is unknown.
        """
        addresses = np.ascontiguousarray(ip).astype(np.int64)
        kinds = np.ascontiguousarray(kind).astype(np.uint8)
        jumps = np.ascontiguousarray(taken).astype(bool)
        if not addresses.shape == kinds.shape == jumps.shape or addresses.ndim != 1:
            raise TraceError(
                f"ip, kind and taken have {addresses.shape}, {kinds.shape} and {jumps.shape} values"
            )
        if kinds.size and int(kinds.max()) > k.NOT_BRANCH:
            raise TraceError(f"kind: {kinds.max()}, expected 0 to {k.NOT_BRANCH}")
        by_direction = (kinds == k.CONDITIONAL) | (kinds == k.OTHER)
        jumps = np.where(kinds == k.NOT_BRANCH, False, np.where(by_direction, jumps, True))
        following = np.append(addresses[1:], 0)
        words = addresses >> 2
        shares = np.isin(words, np.unique(words[kinds != k.NOT_BRANCH]))
        return cls(addresses, kinds, jumps, np.where(jumps, following, 0), shares)


@dataclass(frozen=True)
class Mispredictions:
    """What a unit did on a stream.

    Attributes:
        branches: branches of each kind, by name.
        wrong: mispredicted ones of each kind, by name; in direction or in target.
        instructions: length of the stream.
    """

    branches: dict[str, int]
    wrong: dict[str, int]
    instructions: int

    @property
    def mpki(self) -> float:
        """Mispredictions in a thousand instructions."""
        return 1000 * sum(self.wrong.values()) / max(1, self.instructions)


def mispredictions(branches: Branches, unit: BranchUnit) -> Mispredictions:
    """Mispredictions of a unit that starts empty.

    Example:
        >>> loop = Branches.of([64, 68] * 100, [7, 2] * 100, [False, True] * 100)
        >>> mispredictions(loop, BranchUnit("bimodal")).wrong["conditional"]
        3
    """
    from archgym.envs.cpu.branch.unit import predict_stream

    tables = unit.tables()
    predict_stream(
        branches.ip, branches.kind, branches.taken, branches.target, branches.shares, tables
    )
    return Mispredictions(
        dict(zip(k.KINDS, tables.branches.tolist(), strict=True)),
        dict(zip(k.KINDS, tables.wrong.tolist(), strict=True)),
        len(branches.ip),
    )
