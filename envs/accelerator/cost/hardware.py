"""The hardware of one accelerator design: array, register files, buffer, links, number format."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from numbers import Real
from typing import Final, Literal

from archgym.envs.accelerator.cost.technology import TECHNOLOGIES
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = [
    "DATAFLOWS",
    "MEMORY_CLASSES",
    "ORDERED_DATAFLOWS",
    "SPATIAL_DATAFLOWS",
    "SYSTOLIC_DATAFLOWS",
    "Dataflow",
    "Hardware",
]

Dataflow = Literal[
    "systolic_os",
    "systolic_ws",
    "systolic_is",
    "nvdla_ws",
    "shidiannao_os",
    "eyeriss_rs",
    "kx_free",
    "xp_ws",
    "nlr_cp",
    "custom",
]

SYSTOLIC_DATAFLOWS: Final[tuple[str, ...]] = ("systolic_os", "systolic_ws", "systolic_is")
"""Rigid systolic arrays, output-, weight- and input-stationary (SCALE-Sim; systolic.py)."""

SPATIAL_DATAFLOWS: Final[tuple[str, ...]] = (
    "nvdla_ws",
    "shidiannao_os",
    "eyeriss_rs",
    "kx_free",
    "xp_ws",
    "nlr_cp",
)
"""Arrays with a network on chip that multicasts (spatial.py).

nvdla_ws: output channels over rows, input channels over columns, weights stationary (NVDLA).
shidiannao_os: output rows over rows, output columns over columns, outputs stationary (ShiDianNao).
eyeriss_rs: filter rows over rows, output rows over columns, row stationary (Eyeriss).
kx_free: output channels over rows, output columns over columns, any temporal order (ZigZag).
xp_ws: output columns over all PEs, weights stationary (MAESTRO's "X partitioned").
nlr_cp: input channels over all PEs, no local reuse (MAESTRO's "C partitioned").
"""

DATAFLOWS: Final[tuple[str, ...]] = (*SYSTOLIC_DATAFLOWS, *SPATIAL_DATAFLOWS, "custom")
"""All dataflows; ``custom`` is defined by a given mapping (``mapping.py``)."""

ORDERED_DATAFLOWS: Final = ("nvdla_ws", "kx_free", "shidiannao_os", "eyeriss_rs")
"""Dataflows whose rows and columns unroll one loop each: ZigZag orders what is left of them."""

MEMORY_CLASSES: Final = ("regfile", "smartbuffer_RF", "SRAM", "smartbuffer_SRAM")
"""How a memory is built: latches or SRAM, with or without address generators (Timeloop's names)."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """One accelerator.

    Examples:
        >>> design = Hardware("nvdla_ws", rows=16, columns=64, buffer_bytes=524288)
        >>> design.pes, design.macs_per_cycle
        (1024, 1024)
    """

    dataflow: str
    """One of `DATAFLOWS`."""
    rows: int
    """Rows of processing elements (for a clustered dataflow: clusters)."""
    columns: int
    """Columns of processing elements (PEs of one cluster)."""
    lanes: int = 1
    """Multiply-accumulates of one processing element a cycle."""
    input_rf_bytes: int = 32
    """Register file for inputs, bytes of one processing element; 0 is none."""
    weight_rf_bytes: int = 256
    """Register file for weights, bytes of one processing element; 0 is none."""
    output_rf_bytes: int = 64
    """Register file for partial sums, bytes of one processing element; 0 is none."""
    buffer_bytes: int = 262144
    """Global buffer, bytes, both halves where it is double buffered."""
    buffer_split_bytes: tuple[int, int, int] | None = None
    """Fixed parts for inputs, weights and outputs, bytes; None lets the mapping divide it.

    If given they sum to ``buffer_bytes``.
    """
    banks: int = 16
    """Banks of the global buffer; each serves one port a cycle."""
    noc_bytes_per_cycle: float = 64.0
    """Between global buffer and array, bytes a cycle."""
    dram_bytes_per_cycle: float = 16.0
    """Between memory and chip, bytes a cycle."""
    dram_links: Literal["shared", "separate", "duplex"] = "shared"
    """One memory link for all, one for each operand (SCALE-Sim), or one each way (Timeloop)."""
    word_bits: int = 8
    """Bits of an input and of a weight."""
    accumulator_bits: int = 24
    """Bits of a partial sum."""
    double_buffered: bool = True
    """Whether transfers overlap computation."""
    keeps_halves: bool = True
    """Whether a double-buffered memory has two halves, of which one is filled while the other is
    used; else a tile may fill all of it, and new words replace used ones (ZigZag, Timeloop)."""
    weights_bypass_buffer: bool = False
    """Whether weights go from memory straight to the register files (Eyeriss)."""
    waits_for_first_tile: bool = False
    """Whether the array waits for a whole buffer tile before it starts, not only for the first
    words that it needs."""
    drains: bool = False
    """Whether the last results leave the array step by step, a cycle for every further row and
    column in use (ZigZag's systolic arrays; matters with ``tiles`` that are ``loop_orders``)."""
    prefetch: Literal["as_needed", "storage_order"] = "as_needed"
    """What a systolic array's buffers fetch: what the folds need next, or the operand in storage
    order, half a buffer at a time, again and again (SCALE-Sim; needs ``buffer_split_bytes``)."""
    tiles: Literal["any", "divide", "loop_orders"] = "any"
    """What the mapper chooses from: its own mappings; those of Timeloop's sample Eyeriss, whose
    tiles divide the layer's loops (``divide``: of a row-stationary array with weights that bypass
    the buffer); or those of ZigZag, orders of the factors of the loops of which every memory holds
    as many as fit, with ZigZag's count of stalls (``loop_orders``: of `ORDERED_DATAFLOWS` with one
    lane, double buffers and a shared memory link). Other designs keep their own."""
    loop_factors: int = 4
    """With ``tiles`` that are ``loop_orders``: factors into which all loops together are split, at
    most, or one a loop; the time that the mapper takes grows steeply with it."""
    victory_condition: int = 0
    """With tiles that divide: mappings in a row without a better one after which Timeloop's random
    search ends, whose median result is taken; 0 takes the best mapping of all."""
    memory_classes: tuple[str, str, str, str] = ("regfile", "regfile", "regfile", "SRAM")
    """How the memories for inputs, weights and partial sums and the buffer are built."""
    unused_bytes: int = 0
    """Memory of the array that the dataflow does not use, bytes; it takes area."""
    spare_pes: int = 0
    """Processing elements that no row or column uses; they take area."""
    technology: str = "cmos45"
    """A table of technology.py."""
    clock_mhz: float | None = None
    """Clock; None is the technology's own."""

    def __post_init__(self) -> None:
        if self.dataflow not in DATAFLOWS:
            raise UnknownNameError("dataflow", self.dataflow, DATAFLOWS)
        for field in ("buffer_split_bytes", "memory_classes"):
            if isinstance(getattr(self, field), list):  # as files give it
                object.__setattr__(self, field, tuple(getattr(self, field)))
        for field, low in (
            ("rows", 1),
            ("columns", 1),
            ("lanes", 1),
            ("input_rf_bytes", 0),
            ("weight_rf_bytes", 0),
            ("output_rf_bytes", 0),
            ("buffer_bytes", 1),
            ("banks", 1),
            ("word_bits", 1),
            ("accumulator_bits", 1),
            ("unused_bytes", 0),
            ("spare_pes", 0),
            ("victory_condition", 0),
            ("loop_factors", 1),
        ):
            value = getattr(self, field)
            if not _is_number(value) or value < low or value != int(value):
                raise InvalidValueError(
                    f"{field} is {value!r}; it must be a whole number of at least {low}"
                )
        for field in ("noc_bytes_per_cycle", "dram_bytes_per_cycle"):
            value = getattr(self, field)
            if not _is_number(value) or value <= 0:
                raise InvalidValueError(f"{field} is {value!r}; it must be a number above 0")
        if self.loop_factors > _MAX_LOOP_FACTORS:
            raise InvalidValueError(
                f"loop_factors is {self.loop_factors}; it must be at most {_MAX_LOOP_FACTORS}"
            )
        self._check_choices()
        clock = self.clock_mhz
        if clock is not None and (not _is_number(clock) or clock <= 0):
            raise InvalidValueError(f"clock_mhz is {clock!r}; it must be a number above 0, or None")
        split = self.buffer_split_bytes
        if split is not None and not (
            isinstance(split, tuple)
            and len(split) == 3
            and all(_is_number(size) and size >= 0 for size in split)
            and sum(split) == self.buffer_bytes
        ):
            raise InvalidValueError(
                f"buffer_split_bytes is {split}; three sizes that sum to "
                f"buffer_bytes ({self.buffer_bytes})"
            )

    def _check_choices(self) -> None:
        for field, allowed in (
            ("dram_links", ("shared", "separate", "duplex")),
            ("prefetch", ("as_needed", "storage_order")),
            ("tiles", ("any", "divide", "loop_orders")),
            ("technology", TECHNOLOGIES),
        ):
            if getattr(self, field) not in allowed:
                raise UnknownNameError(field, getattr(self, field), allowed)
        for field in (
            "double_buffered",
            "keeps_halves",
            "weights_bypass_buffer",
            "waits_for_first_tile",
            "drains",
        ):
            value = getattr(self, field)
            if value not in (True, False):
                raise InvalidValueError(f"{field} is {value!r}; it must be true or false")
        if not isinstance(self.memory_classes, tuple) or len(self.memory_classes) != 4:
            raise InvalidValueError(
                f"memory_classes is {self.memory_classes!r}; it must be one class each for inputs, "
                f"weights, partial sums and the buffer, of {', '.join(MEMORY_CLASSES)}"
            )
        for name in self.memory_classes:
            if name not in MEMORY_CLASSES:
                raise UnknownNameError("memory class", name, MEMORY_CLASSES)
        if self.prefetch == "storage_order" and self.buffer_split_bytes is None:
            raise InvalidValueError(
                "prefetch is 'storage_order': buffer_split_bytes is needed with it"
            )

        if self.tiles == "divide" and not (
            self.weights_bypass_buffer and self.buffer_split_bytes is None
        ):
            raise InvalidValueError(
                "tiles is 'divide': weights_bypass_buffer must be true, buffer_split_bytes None; "
                f"they are {self.weights_bypass_buffer} and {self.buffer_split_bytes}"
            )

    @property
    def pes(self) -> int:
        """Processing elements that can work."""
        return self.rows * self.columns

    @property
    def ordered(self) -> bool:
        """Whether its mappings are orders of loops, as ``tiles`` says."""
        return (
            self.tiles == "loop_orders"
            and self.dataflow in ORDERED_DATAFLOWS
            and self.lanes == 1
            and self.double_buffered
            and self.dram_links == "shared"
        )

    @property
    def macs_per_cycle(self) -> int:
        """Peak multiply-accumulates a cycle."""
        return self.pes * self.lanes

    @property
    def word_bytes(self) -> float:
        """Bytes of an input, of a weight, and of a finished output."""
        return self.word_bits / 8

    @property
    def accumulator_bytes(self) -> float:
        """Bytes of a partial sum."""
        return self.accumulator_bits / 8

    def replace(self, **changes: object) -> Hardware:
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]


_MAX_LOOP_FACTORS: Final = 8
"""40,320 orders."""


def _is_number(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
