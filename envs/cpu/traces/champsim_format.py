"""ChampSim's trace format: 64 bytes an instruction, plain or compressed by xz or gzip.

A record has the address of the instruction, whether it is a branch and taken, two registers that it
writes and four that it reads, and as many addresses of memory, 0 for none. Lengths of instructions
and sizes of accesses are not in it. An instruction that reads and writes the same address has it
in both lists.
"""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final, cast

import numpy as np
from numpy.typing import NDArray

from archgym.envs.cpu.traces.program import LOAD, MODIFY, STORE, Program
from archgym.errors import TraceError
from archgym.reading.files import meant_file, opened

__all__ = ["ENDINGS", "read_champsim", "write_champsim"]

ENDINGS: Final = (".champsimtrace", ".champsim")
_COMPRESSED: Final = (".xz", ".gz")
_MAX_RECORDS: Final = 200_000_000
_MAX_WHOLE: Final = 16_000_000  # some gigabytes of memory while they are read
_CHUNK: Final = 1 << 16
_ADDRESS: Final = (1 << 62) - 1

RECORD: Final = np.dtype(
    [
        ("ip", "<u8"),
        ("branch", "u1"),
        ("taken", "u1"),
        ("destinations", "u1", 2),
        ("sources", "u1", 4),
        ("written", "<u8", 2),
        ("read", "<u8", 4),
    ]
)
"""One record, 64 bytes."""


def read_champsim(path: Path, name: str, instructions: int | None = None) -> Program:
    """Read a trace, or its first instructions.

    An instruction's length is taken as the distance to the one that follows it when it is not a
    taken branch, if that is at most 15 bytes; sizes of accesses are taken as 1.

    Args:
        path: the file.
        name: of the stream.
        instructions: how many are read, up to 200 million; all if None, up to 16 million.

    Raises:
        TraceError: if the file is missing, damaged or too long, or holds no record.
    """
    if not path.exists():
        raise TraceError(f"{path}: there is no such trace file{meant_file(path)}")
    most = _MAX_WHOLE + 1 if instructions is None else min(instructions, _MAX_RECORDS)
    try:
        parts = list(_records(path, most))
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise TraceError(f"{path}: cannot read the trace: {error}") from error
    count = sum(len(part) for part in parts)
    if not count:
        raise TraceError(f"{path}: the trace is empty: it holds no record")
    if instructions is None and count > _MAX_WHOLE:
        raise TraceError(
            f"{path}: the trace holds more than {_MAX_WHOLE} instructions: say how many of its "
            f"first ones are read, as {{'file': {path.name!r}, 'instructions': 1000000}}"
        )
    return _program(np.concatenate(parts), name)


def _records(path: Path, most: int) -> Iterator[NDArray[np.void]]:
    """The first records of a trace, in parts."""
    with ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(opened(path))
        if path.suffix in _COMPRESSED:
            unpack = lzma.open if path.suffix == ".xz" else gzip.open
            file = stack.enter_context(cast(IO[bytes], unpack(file)))
        while most > 0:
            text = _whole_chunk(file, min(_CHUNK, most) * RECORD.itemsize)
            if not text:
                return
            if len(text) % RECORD.itemsize:
                raise TraceError(f"{path}: the last record is cut off; records have 64 bytes")
            part = np.frombuffer(text, RECORD)
            # A few packed bytes can stand for gigabytes of zeros.
            if not part["ip"].any():
                raise TraceError(f"{path}: {len(part)} records in a row have no address")
            most -= len(part)
            yield part


def write_champsim(program: Program, path: Path) -> Path:
    """Write a stream as ChampSim reads it; the ending says how it is compressed.

    More than four loads or two stores of one instruction are left out.
    """
    records = np.zeros(len(program), RECORD)
    code = program.code
    records["ip"] = program.ip[code]
    records["branch"] = program.branch[code]
    records["taken"] = program.taken
    records["destinations"] = program.destinations[code]
    records["sources"] = program.sources[code]
    for column, other in (("read", STORE), ("written", LOAD)):
        chosen = program.data_kind != other
        owner = program.data_instruction[chosen]
        place = np.arange(len(owner)) - np.searchsorted(owner, owner)
        fits = place < RECORD[column].shape[0]
        records[column][owner[fits], place[fits]] = program.data_address[chosen][fits]
    with _packed(path) as file:
        file.write(records.tobytes())
    return path


def _packed(path: Path) -> IO[bytes]:
    if path.suffix == ".xz":
        return lzma.open(path, "wb")
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.open(path, "wb"))
    return path.open("wb")


def _whole_chunk(file: IO[bytes], size: int) -> bytes:
    """As many bytes as asked for, or all that are left."""
    parts = []
    while size > 0 and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _program(records: NDArray[np.void], name: str) -> Program:
    if (beyond := records["ip"] > _ADDRESS).any():
        number = int(beyond.argmax())
        raise TraceError(
            f"trace {name!r}: record {number} has the address of an instruction "
            f"{int(records['ip'][number]):#x}, which must be at most {_ADDRESS:#x}: is the file a "
            "ChampSim trace, 64 bytes an instruction?"
        )
    static = np.zeros(len(records), RECORD)
    for column in ("ip", "branch", "destinations", "sources"):
        static[column] = records[column]
    # Of equal addresses with other registers the first one counts as another instruction.
    keys = np.ascontiguousarray(static).view(np.dtype((np.void, RECORD.itemsize))).ravel()
    _, first, code = np.unique(keys, return_index=True, return_inverse=True)
    order = np.lexsort((first, records["ip"][first]))
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    first = first[order]
    codes: NDArray[np.int32] = rank[code].astype(np.int32)
    distinct = records[first]
    instruction, kind, address = _data(records)
    ip = distinct["ip"].astype(np.int64)
    return Program(
        name,
        ip,
        _lengths(ip, codes, records["taken"]),
        distinct["branch"].astype(np.uint8),
        distinct["destinations"].copy(),
        distinct["sources"].copy(),
        codes,
        records["taken"].astype(np.uint8),
        instruction,
        kind,
        address,
        np.ones(len(address), np.uint16),
    )


def _data(
    records: NDArray[np.void],
) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.int64]]:
    read, written = records["read"], records["written"]
    both = (read[:, :, None] == written[:, None, :]) & (read[:, :, None] != 0)
    kinds = np.full((len(records), 6), LOAD, np.uint8)
    kinds[:, :4] = np.where(both.any(axis=2), MODIFY, LOAD)
    kinds[:, 4:] = STORE
    addresses = np.concatenate([read, np.where(both.any(axis=1), 0, written)], axis=1)
    there = addresses != 0
    instruction = np.nonzero(there)[0].astype(np.int32)
    return instruction, kinds[there], (addresses[there] & _ADDRESS).astype(np.int64)


def _lengths(
    ip: NDArray[np.int64], code: NDArray[np.int32], taken: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """Lengths of instructions by what follows them; 0 where nothing says it."""
    step = ip[code[1:]] - ip[code[:-1]]
    plain = (taken[:-1] == 0) & (step > 0) & (step <= 15)
    length = np.zeros(len(ip), np.uint8)
    length[code[:-1][plain]] = step[plain]
    return length
