"""What leaves the last level of a hierarchy, as a workload of DRAM-v0."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

import numpy as np

from archgym.envs.cpu.hierarchy.layout import make_caches
from archgym.envs.cpu.hierarchy.prefetchers import make_prefetchers
from archgym.envs.cpu.hierarchy.run import run_references
from archgym.envs.cpu.hierarchy.translation import TranslationConfig, translate
from archgym.envs.cpu.space import BASELINE, hierarchy_of, prefetchers_of, spaces, translation_of
from archgym.envs.cpu.traces.preparation import references_of
from archgym.envs.cpu.traces.workload import ProgramSpec, load_program, program_label
from archgym.envs.dram.traces.line_formats import scaled
from archgym.envs.dram.traces.recording import PAGE_BYTES
from archgym.envs.dram.traces.trace import Trace
from archgym.errors import InvalidValueError, TraceError

__all__ = ["filtered_trace"]

_REQUEST_BYTES: Final = 64
"""What one request of DRAM-v0 moves."""


def filtered_trace(
    workload: ProgramSpec,
    design: Mapping[str, Any] | None = None,
    *,
    clock_ghz: float = 4.0,
    instructions_per_clock: float = 2.0,
) -> Trace:
    """The requests of a program to memory behind the caches of a design.

    A request's time is the number of instructions executed until then, at the given rate: the
    trace is open loop, as recordings of DRAM-v0 are. Pages take the page frames from address 0 up,
    in the order in which they reach memory. A line of 128 bytes is two requests of 64 bytes, which
    a burst of DDR4 moves; one of 32 bytes is a request that uses half of its burst.

    Args:
        workload: a program of CPU-v0.
        design: parameters of the space ``memory``; those that are not given are the baseline's.
        clock_ghz: clock of the core, GHz.
        instructions_per_clock: instructions a clock while nothing waits for memory.

    Raises:
        UnknownNameError, InvalidValueError, DesignError: for what is not possible.
        TraceError: if no request leaves the caches.
    """
    for name, value in (
        ("clock_ghz", clock_ghz),
        ("instructions_per_clock", instructions_per_clock),
    ):
        if not 0.001 <= value <= 100:
            raise InvalidValueError(f"{name}={value!r} must be from 0.001 to 100")
    space = spaces()["memory"]
    baseline = {name: value for name, value in BASELINE.items() if name in space.names}
    chosen = space.canonical({**baseline, **(design or {})})
    config = hierarchy_of(chosen)
    translated = translate(
        references_of(load_program(workload)),
        translation_of(chosen) or TranslationConfig(),
        walks=True,
    )
    columns = translated.references
    requests = np.empty(1 << 16, np.int64)
    owner = np.empty(1 << 16, np.int64)
    while True:
        count = run_references(
            make_caches(config),
            make_prefetchers(config, *prefetchers_of(chosen)),
            columns.kind,
            columns.address,
            columns.size,
            columns.ip,
            requests,
            owner,
        )
        if count <= len(requests):
            break
        requests, owner = np.empty(count, np.int64), np.empty(count, np.int64)
    if count == 0:
        raise TraceError(f"{program_label(workload)!r} sends no request to memory")
    sent = requests[:count]
    is_write = (sent < 0).astype(np.uint8)
    address = np.where(sent < 0, -1 - sent, sent)
    page, offset = np.divmod(address, PAGE_BYTES)
    _, first, which = np.unique(page, return_index=True, return_inverse=True)
    frame = np.argsort(np.argsort(first))
    rate = Fraction(10**9, round(clock_ghz * 1000) * round(instructions_per_clock * 1000))
    instruction = columns.instruction[owner[:count]].astype(np.int64)
    bursts = max(1, config.llc.line_bytes // _REQUEST_BYTES)
    starts = np.repeat(frame[which] * PAGE_BYTES + offset, bursts)
    return Trace(
        program_label(workload),
        np.repeat(scaled(instruction, rate), bursts),
        starts + np.tile(np.arange(bursts, dtype=np.int64) * _REQUEST_BYTES, count),
        np.repeat(is_write, bursts),
    )
