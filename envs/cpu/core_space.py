"""The design space of a whole core: caches, prefetchers and translation, and what executes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from archgym.envs.cpu.branch.layout import PREDICTORS
from archgym.envs.cpu.branch.settings import BranchUnit
from archgym.envs.cpu.core.config import CoreConfig, LevelTiming, MemoryTiming
from archgym.envs.cpu.cost.sram import cache_cost
from archgym.envs.cpu.hierarchy.config import LEVELS, HierarchyConfig
from archgym.envs.cpu.hierarchy.translation import TranslationConfig
from archgym.problem.metrics import Metric
from archgym.space import Categorical, Ordinal, Parameter

__all__ = [
    "CORE_BASELINE",
    "CORE_METRICS",
    "CORE_PARAMETERS",
    "branch_unit_of",
    "core_config_of",
    "core_parameters",
    "core_storage_bits",
    "timing_of",
]

CORE_BASELINE: Final[dict[str, Any]] = {
    "branch_predictor": "tage",
    "predictor_scale": 1,
    "btb_sets": 1024,
    "rob_size": 224,
    "lq_size": 72,
    "sq_size": 56,
    "scheduler_size": 97,
    "fetch_width": 6,
    "decode_width": 5,
    "dispatch_width": 6,
    "execute_width": 4,
    "retire_width": 4,
    "l1d_mshrs": 10,
    "l2_mshrs": 16,
}
"""The core around the baseline's caches: Skylake client's reorder buffer, queues and widths, with
TAGE and ChampSim's branch target buffer. Execution counts instructions of any kind."""

CORE_PARAMETERS: Final = frozenset(
    [
        *CORE_BASELINE,
        *CoreConfig.__dataclass_fields__,
        *(f"{level}_{what}" for level in LEVELS for what in ("latency", "mshrs")),
    ]
)
"""Every parameter of the core that a user's space may have."""

CORE_METRICS: Final = (
    Metric("ipc_rate", "", "maximize", "instructions that retire in a cycle, from a cold start"),
    Metric(
        "branch_mpki",
        "",
        "minimize",
        "mispredicted branches, in direction or target, per thousand instructions",
    ),
    Metric(
        "core_storage_bits",
        "bits",
        "minimize",
        "branch prediction, reorder buffer, queues and scheduler, by assumed widths of entries",
    ),
)

# Entries of the direction predictors at scale 1; ChampSim's, and 1,024 for each table of TAGE.
_ENTRIES: Final = {
    "bimodal": 16384,
    "gshare": 16384,
    "perceptron": 163,
    "hashed_perceptron": 4096,
    "tage": 1024,
}
# Bits of an entry, assumed: addresses of 48 bits, data of 64, and tags of registers.
_ROB_BITS, _LQ_BITS, _SQ_BITS, _SCHEDULER_BITS = 76, 64, 128, 96
_LEAST_CYCLES: Final = {"l1i": 4, "l1d": 4, "l2": 8, "llc": 12}


def core_parameters() -> list[Parameter]:
    """The parameters that the space of the core has beside those of its caches."""

    def width(name: str, values: tuple[int, ...], doc: str) -> Ordinal:
        return Ordinal(name, values, doc=doc)

    return [
        Categorical("branch_predictor", PREDICTORS, doc="predictor of directions"),
        Ordinal(
            "predictor_scale",
            (0.25, 0.5, 1, 2, 4),
            doc="tables of the predictor, relative to the published size",
        ),
        Ordinal("btb_sets", (64, 256, 1024), doc="sets of the branch target buffer, of 8 ways"),
        width("rob_size", (32, 64, 96, 128, 192, 224, 352, 512), "reorder buffer, instructions"),
        width("lq_size", (16, 32, 48, 72, 128), "load queue, loads"),
        width("sq_size", (8, 16, 32, 56, 72), "store queue, stores"),
        width("scheduler_size", (16, 32, 64, 97, 128), "instructions that wait for execution"),
        width("fetch_width", (1, 2, 4, 6, 8), "instructions predicted and fetched in a cycle"),
        width("decode_width", (1, 2, 3, 4, 5, 6), "instructions decoded in a cycle"),
        width("dispatch_width", (1, 2, 4, 6), "instructions dispatched in a cycle"),
        width("execute_width", (1, 2, 3, 4, 6, 8), "instructions that begin execution in a cycle"),
        width("retire_width", (1, 2, 4, 5, 8), "instructions retired in a cycle"),
        width("l1d_mshrs", (2, 4, 8, 10, 16), "misses of L1D under way at a time"),
        width("l2_mshrs", (8, 16, 32), "misses of L2 under way at a time"),
    ]


def branch_unit_of(design: Mapping[str, Any]) -> BranchUnit:
    """The branch prediction of a design."""
    values = {**CORE_BASELINE, **design}
    predictor = str(values["branch_predictor"])
    entries = round(_ENTRIES[predictor] * values["predictor_scale"])
    return BranchUnit(predictor, entries=entries, target_sets=int(values["btb_sets"]))


def core_config_of(design: Mapping[str, Any]) -> CoreConfig:
    """The core of a design; a user's space may search any other attribute of the core too."""
    values = {**CORE_BASELINE, **design}
    names = CoreConfig.__dataclass_fields__
    return CoreConfig(**{name: int(values[name]) for name in names if name in values})


def timing_of(
    design: Mapping[str, Any],
    config: HierarchyConfig,
    translation: TranslationConfig | None,
    clock_ghz: float,
) -> MemoryTiming:
    """Latencies of a design: cycles that the table of SRAMs gives for each cache.

    A user's space may have ``l1d_latency`` in cycles, and likewise for the other levels.

    Args:
        design: the design.
        config: its caches.
        translation: its translation buffers; None: ChampSim's.
        clock_ghz: clock of core and caches, GHz.
    """
    values = {**CORE_BASELINE, **design}
    default = MemoryTiming()
    buffers = translation or TranslationConfig()
    timings: dict[str, Any] = {}
    for name, level in zip(LEVELS, config.levels, strict=True):
        timing: LevelTiming = getattr(default, name)
        if level is not None:
            needs = math.ceil(cache_cost(level, first=name[:2] == "l1").access_ns * clock_ghz)
            cycles = int(values.get(f"{name}_latency", max(_LEAST_CYCLES[name], needs)))
            timing = LevelTiming(cycles, int(values.get(f"{name}_mshrs", timing.mshrs)))
        timings[name] = timing
    return MemoryTiming(
        **timings,
        itlb_sets=buffers.itlb_entries // buffers.itlb_ways,
        itlb_ways=buffers.itlb_ways,
        dtlb_sets=buffers.dtlb_entries // buffers.dtlb_ways,
        dtlb_ways=buffers.dtlb_ways,
        stlb_sets=buffers.stlb_entries // buffers.stlb_ways,
        stlb_ways=buffers.stlb_ways,
        clock_mhz=round(clock_ghz * 1000),
    )


def core_storage_bits(unit: BranchUnit, core: CoreConfig) -> float:
    """Bits of branch prediction and of the core's buffers."""
    return float(
        unit.storage_bits()
        + core.rob_size * _ROB_BITS
        + core.lq_size * _LQ_BITS
        + core.sq_size * _SQ_BITS
        + core.scheduler_size * _SCHEDULER_BITS
    )
