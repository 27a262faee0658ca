"""Record a program: its instructions and data under valgrind's tool lackey.

Lackey says where each instruction and each access lies and how long it is. Which registers an
instruction uses, and whether it is a branch, is read from its bytes in the files that the process
has mapped: by capstone if it is installed, else branches only.
"""

from __future__ import annotations

import datetime
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.envs.cpu.traces.decoding import MappedCode, decode
from archgym.envs.cpu.traces.npz_format import write_npz
from archgym.envs.cpu.traces.program import LOAD, MODIFY, STORE, Program
from archgym.envs.dram.traces import cache_model
from archgym.envs.dram.traces.valgrind import Accesses, run_under_lackey, valgrind_version
from archgym.errors import TraceError

__all__ = ["record_program", "save_program", "statistics_of"]

_KINDS = np.zeros(4, np.uint8)
_KINDS[cache_model.LOAD], _KINDS[cache_model.STORE], _KINDS[cache_model.MODIFY] = (
    LOAD,
    STORE,
    MODIFY,
)
_MAX_INSTRUCTIONS = 200_000_000


def record_program(
    command: Sequence[str],
    *,
    skip_instructions: int = 0,
    max_instructions: int | None = None,
    timeout_s: float = 600.0,
    name: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    stdin: str | os.PathLike[str] | None = None,
    environment: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Program, dict[str, Any]]:
    """Run a program and return what it executes.

    Args:
        command: the program and its arguments; no shell is involved.
        skip_instructions: how many of the first instructions are left out.
        max_instructions: end the program after so many recorded instructions; at its end if None.
        timeout_s: limit on the wall time, s. Valgrind runs a program about 100 times slower.
        name: name of the stream; the program's if None.
        folder: working folder of the program.
        stdin: file that the program reads as its standard input.
        environment: all its environment variables; those of this process if None.
        progress: called many times a second with the instructions executed and recorded so far.

    Returns:
        The stream, and its card: a mapping for JSON with everything that made it.

    Raises:
        MissingDependencyError: if valgrind is not installed.
        TraceError: if the program does not exist, fails, takes too long or ends too early, or for
            a setting out of range.
    """
    limit = _MAX_INSTRUCTIONS if max_instructions is None else max_instructions
    if not 1 <= limit <= _MAX_INSTRUCTIONS:
        raise TraceError(
            f"record: max_instructions={max_instructions!r} must be from 1 to {_MAX_INSTRUCTIONS}"
        )
    if skip_instructions < 0:
        raise TraceError(f"record: skip_instructions={skip_instructions!r} must not be negative")
    mapped = MappedCode()
    stream = run_under_lackey(
        command,
        timeout_s=timeout_s,
        folder=None if folder is None else Path(folder),
        stdin=None if stdin is None else Path(stdin),
        environment=environment,
        started=mapped.watch,
    )
    executed = 0
    parts: list[Accesses] = []
    with closing(stream):  # type: ignore[type-var]
        for chunk in stream:
            mapped.look()
            before = executed
            executed += int((chunk.kind == cache_model.INSTRUCTION_FETCH).sum())
            if executed > skip_instructions:
                parts.append(_from(chunk, skip_instructions - before))
            if progress is not None:
                progress(executed, max(0, executed - skip_instructions))
            if executed - skip_instructions >= limit:
                break
    if not parts:
        raise TraceError(
            f"{command[0]!r} ended after {executed} instructions: none is left after "
            f"skip_instructions={skip_instructions}"
        )
    whole = _program(parts, name or Path(command[0]).name)
    stopped = len(whole) > limit or (max_instructions is not None and len(whole) == limit)
    program = whole.part(0, limit) if len(whole) > limit else whole
    program, decoder = _decoded(program, mapped)
    card = {
        "command": list(command),
        "recorded_on": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "recorded_with": f"valgrind {valgrind_version()}, tool lackey, --trace-mem=yes",
        "decoded_with": decoder,
        "instructions_skipped": skip_instructions,
        "ended_by": "max_instructions" if stopped else "exit",
    }
    return program, card | statistics_of(program)


def save_program(program: Program, card: dict[str, Any], path: Path) -> Path:
    """Write ``NAME.npz`` and, beside it, the card ``NAME.json``.

    Args:
        program: what was recorded.
        card: what :func:`record_program` returned, with any entries added.
        path: the ``.npz`` file; its folder must exist.
    """
    if not path.parent.is_dir():
        raise TraceError(f"{path}: the folder {str(path.parent)!r} does not exist")
    text = json.dumps(card, indent=2, ensure_ascii=False) + "\n"
    # Written aside and renamed: an interruption leaves no half a file.
    with tempfile.TemporaryDirectory(prefix=f".{path.stem}-", dir=path.parent) as aside:
        new = write_npz(program, Path(aside) / path.name)
        new.with_suffix(".json").write_text(text, encoding="utf-8")
        for file in (new.with_suffix(".json"), new):
            os.replace(file, path.parent / file.name)
    return path


def statistics_of(program: Program) -> dict[str, Any]:
    """What a stream holds: instructions, accesses, and lines of 64 bytes that they touch."""
    lines: NDArray[np.int64] = np.unique(program.data_address >> 6)
    return {
        "instructions": len(program),
        "distinct_instructions": len(program.ip),
        "branch_share": round(float(program.branch[program.code].mean()), 4),
        "loads": int((program.data_kind != STORE).sum()),
        "stores": int((program.data_kind != LOAD).sum()),
        "code_lines_64b": len(np.unique(program.ip >> 6)),
        "data_lines_64b": len(lines),
        "sha256": program.sha256,
    }


def _from(chunk: Accesses, skipped: int) -> Accesses:
    """A chunk without its first instructions and what belongs to them."""
    if skipped < 0:
        return chunk
    fetches = np.flatnonzero(chunk.kind == cache_model.INSTRUCTION_FETCH)
    start = int(fetches[skipped])
    return Accesses(chunk.kind[start:], chunk.address[start:], chunk.size[start:])


def _program(parts: Sequence[Accesses], name: str) -> Program:
    kind = np.concatenate([part.kind for part in parts])
    address = np.concatenate([part.address for part in parts])
    size = np.concatenate([part.size for part in parts])
    fetch = kind == cache_model.INSTRUCTION_FETCH
    number = np.cumsum(fetch, dtype=np.int32) - 1
    # Code at one address may change: address and length together name an instruction.
    key = address[fetch] * 256 + size[fetch]
    distinct, code = np.unique(key, return_inverse=True)
    ip, length = distinct // 256, (distinct % 256).astype(np.uint8)
    codes: NDArray[np.int32] = code.astype(np.int32)
    data = ~fetch
    none = np.zeros(len(ip), np.uint8)
    return Program(
        name,
        ip,
        length,
        none,
        np.zeros((len(ip), 2), np.uint8),
        np.zeros((len(ip), 4), np.uint8),
        codes,
        np.zeros(len(codes), np.uint8),
        number[data],
        _KINDS[kind[data]],
        address[data],
        size[data].astype(np.uint16),
    )


def _decoded(program: Program, mapped: MappedCode) -> tuple[Program, str]:
    """The stream with branches and registers."""
    code = mapped.bytes_of(program.ip, program.length)
    if not any(code):
        raise TraceError(
            f"{program.name}: it ended before its code could be read from the files that it maps"
        )
    found = decode(code, program.ip)
    following = program.ip[program.code[1:]]
    behind = program.ip[program.code] + program.length[program.code]
    moved: NDArray[np.bool_] = np.append(following != behind[:-1], False)
    taken = (moved & (found.branch[program.code] == 1)).astype(np.uint8)
    return (
        replace(
            program,
            branch=found.branch,
            destinations=found.destinations,
            sources=found.sources,
            taken=taken,
        ),
        found.decoder,
    )
