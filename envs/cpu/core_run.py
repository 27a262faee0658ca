"""A program as the core reads it, and its metrics on the designs of the space ``core``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.cpu.branch import layout as b
from archgym.envs.cpu.branch.stream import (
    FLAGS,
    INSTRUCTION_POINTER,
    STACK_POINTER,
    branch_kinds,
)
from archgym.envs.cpu.core import layout as k
from archgym.envs.cpu.core.run import run_core
from archgym.envs.cpu.core_space import (
    branch_unit_of,
    core_config_of,
    core_storage_bits,
    timing_of,
)
from archgym.envs.cpu.metrics import metrics_of
from archgym.envs.cpu.space import as_champsim, hierarchy_of, prefetchers_of, translation_of
from archgym.envs.cpu.traces.program import Program
from archgym.errors import TraceError

__all__ = ["CORE_OBJECTIVE", "CoreRuns", "core_stream"]

CORE_OBJECTIVE: Final[dict[str, Any]] = {
    "product": {"ipc_rate": 2, "energy_per_instruction_pj": 1, "core_storage_bits": 0.2},
    "limits": ["area_um2 <= 4000000"],
}
"""Instructions per cycle squared over energy, as in energy times delay squared, with a small price
for the buffers of the core, whose energy is not modelled."""

_CLOCK_GHZ: Final = 4.0
_PAGE_BITS: Final = 12
_REGION_BITS: Final = 12


def _folded(program: Program, kinds: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Registers written, without a stack pointer whose value the decoder can tell.

    As ChampSim: calls, returns, pushes, pops and constants added to the stack pointer make nobody
    wait; an instruction that computes it from other registers does.
    """
    destinations = program.destinations.copy()
    special = (STACK_POINTER, FLAGS, INSTRUCTION_POINTER)
    reads_other = ((program.sources != 0) & ~np.isin(program.sources, special)).any(axis=1)
    touches = np.zeros(len(program.ip), bool)
    touches[program.code[program.data_instruction]] = True
    folds = (kinds != b.NOT_BRANCH) | touches | ~reads_other
    destinations[(destinations == STACK_POINTER) & folds[:, None]] = 0
    return destinations


def core_stream(program: Program) -> k.Stream:
    """A program as the model of the core reads it."""
    kinds = branch_kinds(program.destinations, program.sources)
    words = program.ip >> 2
    by_direction = (kinds == b.CONDITIONAL) | (kinds == b.OTHER)
    executed = kinds[program.code]
    taken = np.where(by_direction[program.code], program.taken != 0, executed != b.NOT_BRANCH)
    pages, numbers = np.unique(
        np.concatenate([program.ip, program.data_address]) >> _PAGE_BITS, return_inverse=True
    )
    if len(pages) > k.MAX_PAGES:
        raise TraceError(
            f"program {program.name!r} touches {len(pages)} pages of 4 KiB; the core takes "
            f"{k.MAX_PAGES} at most"
        )
    regions = np.zeros((len(pages), 4), np.int32)
    for level in range(4):
        regions[:, level] = np.unique(pages >> (_REGION_BITS * level), return_inverse=True)[1]
    static = np.zeros(len(program.ip), k.INSTRUCTION)
    static["ip"] = program.ip
    static["page"] = numbers[: len(program.ip)]
    static["kind"] = kinds
    static["shares"] = np.isin(words, words[kinds != b.NOT_BRANCH])
    registers = {"destinations": _folded(program, kinds), "sources": program.sources}
    for name, numbered in registers.items():
        zeros_last = np.argsort(numbered == 0, axis=1, kind="stable")
        static[name] = np.take_along_axis(numbered, zeros_last, axis=1)
        static[f"n_{name}"] = np.count_nonzero(numbered, axis=1)
    return k.Stream(
        static=static,
        code=program.code.astype(np.int32),
        taken=np.ascontiguousarray(taken),
        data_first=program.data_first.astype(np.int64),
        data_kind=np.ascontiguousarray(program.data_kind),
        data_address=program.data_address.astype(np.int64),
        data_page=numbers[len(program.ip) :].astype(np.int32),
        page=pages.astype(np.int64),
        regions=regions,
    )


class CoreRuns:
    """A program, prepared once for all designs.

    Args:
        program: the program.
        memory_ns: time of a read of memory, for the mean access time, ns.
    """

    def __init__(self, program: Program, memory_ns: float) -> None:
        self._stream = core_stream(program)
        self._memory_ns = memory_ns

    def metrics(self, design: Mapping[str, Any], as_in_champsim: bool) -> dict[str, float]:
        """The metrics of a design.

        Args:
            design: the design.
            as_in_champsim: whether hits of stores and write-backs are no use of a line, but to
                SRRIP, and page frames are handed out in the order of time.
        """
        caches = hierarchy_of(design)
        if as_in_champsim:
            caches = as_champsim(caches)
        l1d, l2 = prefetchers_of(design)
        unit, core = branch_unit_of(design), core_config_of(design)
        timing = timing_of(design, caches, translation_of(design), _CLOCK_GHZ)
        result = run_core(
            self._stream,
            caches,
            core,
            unit,
            timing,
            l1d_prefetcher=l1d,
            l2_prefetcher=l2,
            frames_in_time=as_in_champsim,
        )
        found = metrics_of(
            caches,
            result.counts,
            result.events,
            instructions=result.instructions,
            walks=result.page_walks,
            memory_ns=self._memory_ns,
        )
        return found | {
            "ipc_rate": result.ipc,
            "branch_mpki": result.branch_mpki,
            "core_storage_bits": core_storage_bits(unit, core),
        }
