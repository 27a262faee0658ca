"""The hardware of designs as columns: rates, capacities and energies of each part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.llm.device.columns import Columns
from archgym.envs.llm.device.data.records import Memory, Software, Technology, load_memory

__all__ = ["Hardware", "Tier"]

Array = NDArray[np.float64]
GIB: Final = float(1 << 30)
_DOT: Final = 64
"""Inputs that a row of multipliers adds up in one clock."""
_VECTOR_SHARE: Final = 1 / 16
"""Lanes of the vector unit by multiplier; an assumption."""


class Tier:
    """A memory of each design, several channels and ranks of one kind.

    Attributes:
        bytes: capacity.
        bytes_per_s: stream bandwidth of all channels.
        channels: their number.
        ranks: ranks of a channel.
        pj_per_bit: energy of a bit that reaches the processor, standby left out.
        standby_w: while it streams.
        idle_w: otherwise.
    """

    def __init__(self, names: NDArray[np.str_], channels: Array, ranks: Array) -> None:
        kinds, self._kind = np.unique(names, return_inverse=True)
        self._memories = [load_memory(str(name)) for name in kinds if name != "none"]
        self._offset = len(kinds) - len(self._memories)
        if self._offset:  # "none" is not the first of the sorted names
            order = [i for i, name in enumerate(kinds) if name != "none"]
            place = np.full(len(kinds), len(order))
            place[order] = np.arange(len(order))
            self._kind = place[self._kind]
        self.channels, self.ranks = channels, ranks
        self.bytes = self.of(lambda m: m.gib * GIB) * channels * ranks
        self.bytes_per_s = self.of(lambda m: m.timing.stream_gb_per_s * 1e9) * channels
        self.pj_per_bit = self.of(
            lambda m: m.energy.column_pj_per_bit + m.energy.row_pj_per_bit + m.io_pj_per_bit
        )
        parts = channels * ranks
        self.standby_w = self.of(lambda m: m.energy.standby_mw * 1e-3) * parts
        self.idle_w = self.of(lambda m: m.energy.idle_mw * 1e-3) * parts

    def of(self, figure: Callable[[Memory], float]) -> Array:
        """A figure of the memory of each design, shape (n,); 0 where there is none."""
        figures = np.array([figure(memory) for memory in self._memories] + [0.0])
        return np.asarray(figures[self._kind])

    def at_bank_pj_per_bit(self, share: float) -> Array:
        """Energy of a bit that a unit at its bank reads.

        Args:
            share: of a column's energy that is spent at the bank.
        """
        return self.of(lambda m: m.energy.row_pj_per_bit + share * m.energy.column_pj_per_bit)

    def row_ns(self, column_ns: Array, banks_per_unit: Array) -> Array:
        """Time in which all banks multiply a row each, ns, shape (n,)."""
        found = np.zeros(len(column_ns))
        for i, memory in enumerate(self._memories):
            here = self._kind == i
            if here.any():
                t = memory.timing
                clock = t.t_ck_ps * 1e-3
                groups = max(1.0, t.banks / t.opened_together)
                opening = (groups - 1) * max(t.t_faw, t.opened_together * t.t_rrd) + t.t_rcd
                column = np.maximum(column_ns[here], t.t_ccd_l * clock)
                busy = opening * clock + t.columns_per_row * column * banks_per_unit[here]
                cycle = np.maximum(busy + t.t_rtp * clock, t.t_ras * clock) + t.t_rp * clock
                found[here] = cycle / (1 - t.refresh_share)
        return found


class Hardware:
    """Rates of the processor, and its memories.

    Attributes:
        near: the memory beside the processor; caches of keys and values are there.
        far: a second one, perhaps without capacity.
        flash_bytes_per_s, flash_bytes: of flash.
        buffer_bytes: SRAM for activations and weights on their way.
        resident_bytes: SRAM for weights that stay.
        macs_per_s: multiplications of 8 bits a second.
        rows: columns of outputs that are computed at a time.
        vector_per_s: operations of the vector unit a second.
    """

    def __init__(self, columns: Columns, software: Software, technology: Technology) -> None:
        self.columns, self.software, self.technology = columns, software, technology
        share = software.memory_share
        self.near = Tier(columns["memory"], columns["channels"], columns["ranks"])
        far = columns["far_channels"]
        self.far = Tier(columns["far_memory"], far, np.ones_like(far))
        self.near.bytes_per_s = self.near.bytes_per_s * share
        self.far.bytes_per_s = self.far.bytes_per_s * share
        self.flash_bytes_per_s = columns["flash_gb_per_s"] * 1e9
        self.flash_bytes = np.where(self.flash_bytes_per_s > 0, technology.flash_gib * GIB, 0.0)
        sram = columns["sram_mib"] * float(1 << 20)
        self.resident_bytes = sram * columns["sram_resident_share"]
        self.buffer_bytes = sram - self.resident_bytes
        self.clock_hz = columns["clock_mhz"] * 1e6
        self.macs_per_s = columns["mac_units"] * self.clock_hz * software.matrix_share
        self.rows = np.maximum(1.0, columns["mac_units"] / _DOT)
        lanes = np.maximum(1.0, columns["mac_units"] * _VECTOR_SHARE)
        self.vector_per_s = lanes * self.clock_hz

    def filled_share(self, inputs: Array, items: Array) -> Array:
        """Share of the multipliers that are busy on products of that shape.

        Args:
            inputs: elements that are added up.
            items: results, of all vectors.
        """
        deep = inputs / (np.ceil(inputs / _DOT) * _DOT)
        return np.asarray(deep * items / (np.ceil(items / self.rows) * self.rows))

    def passes(self, left_bits: Array, right_bits: Array) -> Array:
        """Passes through multipliers of 8 bits that operands of these widths take."""
        return np.asarray(np.ceil(left_bits / 8) * np.ceil(right_bits / 8))
