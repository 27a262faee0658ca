"""The binary form of instruction streams: a compressed NumPy archive that is never unpickled.

Executed instructions are stored as jumps between runs of neighbours, data as differences from what
the same instruction touched before, so that a million instructions take some 100 kilobytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.cpu.traces.program import Program
from archgym.envs.dram.traces.npz_format import (
    from_planes,
    stored_fields,
    to_planes,
    whole_number,
)
from archgym.errors import TraceError

__all__ = ["read_npz", "write_npz"]

_VERSION: Final = 1
_PLANES: Final = (
    "ip_step",
    "jump_gap",
    "jump_target",
    "data_gap",
    "data_kind",
    "data_size",
    "data_step",
)
_PLAIN: Final = ("length", "branch", "destinations", "sources")
_FIELDS: Final = ("version", "executed", "taken", *_PLANES, *_PLAIN)


def write_npz(program: Program, path: Path) -> Path:
    """Write a stream; exact, the name is left to the file's name.

    Args:
        program: what to write.
        path: where; must end in ``.npz``.
    """
    if path.suffix != ".npz":
        raise TraceError(f"{path}: a binary stream must have the ending '.npz'")
    program = _sorted(program)
    code = program.code.astype(np.int64)
    jumps = np.flatnonzero(np.diff(code, prepend=-5) != 1)
    key, order = _grouped(code, program.data_instruction)
    with path.open("wb") as file:
        np.savez_compressed(
            file,
            version=np.int64(_VERSION),
            executed=np.int64(len(program)),
            taken=np.packbits(program.taken),
            length=program.length,
            branch=program.branch,
            destinations=np.ascontiguousarray(program.destinations.T),
            sources=np.ascontiguousarray(program.sources.T),
            ip_step=to_planes(np.diff(program.ip, prepend=0)),
            jump_gap=to_planes(np.diff(jumps, prepend=0)),
            jump_target=to_planes(code[jumps]),
            data_gap=to_planes(np.diff(program.data_instruction.astype(np.int64), prepend=0)),
            data_kind=to_planes(_steps(program.data_kind.astype(np.int64), key, order)),
            data_size=to_planes(_steps(program.data_size.astype(np.int64), key, order)),
            data_step=to_planes(_steps(program.data_address, key, order)),
        )
    return path


def read_npz(path: Path, name: str) -> Program:
    """Read what :func:`write_npz` wrote.

    Raises:
        TraceError: if the file is missing, damaged or of another kind.
    """
    fields = stored_fields(path, _FIELDS, _VERSION, "stream")
    try:
        return _decoded(fields, name)
    except (TraceError, ValueError, IndexError, TypeError, MemoryError) as error:
        raise TraceError(f"{path}: the binary stream is damaged: {error}") from error


def _decoded(fields: dict[str, NDArray[Any]], name: str) -> Program:
    for field in _PLANES:
        planes = fields[field]
        if planes.dtype != np.uint8 or planes.ndim != 2 or len(planes) > 8:
            raise ValueError(f"{field} has an unknown form")
    for field in (*_PLAIN, "taken"):
        if fields[field].dtype != np.uint8:
            raise ValueError(f"{field} has an unknown form")
    executed = whole_number(fields["executed"])
    jumps = np.cumsum(from_planes(fields["jump_gap"]))
    target = from_planes(fields["jump_target"])
    if (
        not len(jumps)
        or jumps[0] != 0
        or executed <= jumps[-1]
        or executed > 8 * len(fields["taken"])
    ):
        raise ValueError("its jumps do not fit together")
    if (np.diff(jumps) <= 0).any() or len(target) != len(jumps):
        raise ValueError("its jumps do not fit together")
    lengths = np.diff(jumps, append=executed)
    code = np.repeat(target - jumps, lengths) + np.arange(executed)
    instruction = np.cumsum(from_planes(fields["data_gap"]))
    if len(instruction) and not 0 <= instruction.min() <= instruction.max() < executed:
        raise ValueError("its data do not fit together")
    key, order = _grouped(code, instruction.astype(np.int32))
    return Program(
        name,
        np.cumsum(from_planes(fields["ip_step"])),
        fields["length"],
        fields["branch"],
        np.ascontiguousarray(fields["destinations"].T),
        np.ascontiguousarray(fields["sources"].T),
        code.astype(np.int32),
        np.unpackbits(fields["taken"], count=executed),
        instruction.astype(np.int32),
        _values(from_planes(fields["data_kind"]), key, order).astype(np.uint8),
        _values(from_planes(fields["data_step"]), key, order),
        _values(from_planes(fields["data_size"]), key, order).astype(np.uint16),
    )


def _sorted(program: Program) -> Program:
    """The stream with its distinct instructions in the order of their addresses."""
    order = np.argsort(program.ip, kind="stable")
    if (order == np.arange(len(order))).all():
        return program
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return Program(
        program.name,
        program.ip[order],
        program.length[order],
        program.branch[order],
        program.destinations[order],
        program.sources[order],
        rank[program.code],
        program.taken,
        program.data_instruction,
        program.data_kind,
        program.data_address,
        program.data_size,
    )


def _grouped(
    code: NDArray[np.int64], instruction: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Data of the same operand of the same instruction: a key of each, and their stable order."""
    place = np.arange(len(instruction)) - np.searchsorted(instruction, instruction)
    key = code[instruction] * 16 + np.minimum(place, 15)
    return key, np.argsort(key, kind="stable")


def _steps(
    values: NDArray[np.int64], key: NDArray[np.int64], order: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Differences from the value before of the same key; the first ones as they are."""
    ordered = values[order]
    steps = np.diff(ordered, prepend=0)
    begins = np.diff(key[order], prepend=-1) != 0
    steps[begins] = ordered[begins]
    found = np.empty_like(steps)
    found[order] = steps
    return found


def _values(
    steps: NDArray[np.int64], key: NDArray[np.int64], order: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The inverse of :func:`_steps`."""
    if len(steps) != len(key):
        raise ValueError("its data do not fit together")
    if not len(steps):
        return steps
    ordered = steps[order]
    begins = np.flatnonzero(np.diff(key[order], prepend=-1) != 0)
    total = np.cumsum(ordered)
    before = np.repeat(total[begins] - ordered[begins], np.diff(begins, append=len(steps)))
    found = np.empty_like(total)
    found[order] = total - before
    return found
