"""Energy of many arrays on a workload: `array_energy.EnergyModel` on columns.

How signals switch depends on a few fields and is computed once for each combination; the cells
that switch come from `cells`. A test compares with the energy of one array at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.envs.tpe.cost.cells import EdgeCosts, PECosts
from archgym.envs.tpe.cost.table import ArrayTable, Memo, each, packed
from archgym.envs.tpe.microarchitecture.edge import Barrier, EdgeBlock, OperandEncoder
from archgym.envs.tpe.microarchitecture.pe import Array
from archgym.envs.tpe.switching.activity import Activity, OperandActivity, operand_activity
from archgym.envs.tpe.switching.array_energy import (
    ENCODER_CELLS,
    FINDER_GATES,
    LINES_PER_DIGIT,
    RANDOM,
    cycles_per_mac,
)
from archgym.envs.tpe.switching.glitches import glitch_factors
from archgym.envs.tpe.switching.line_drive import drive_factor
from archgym.envs.tpe.switching.sum_activity import sum_activity
from archgym.envs.tpe.technology.energies import Energies
from archgym.envs.tpe.workload.operands import OperandDistribution
from archgym.envs.tpe.workload.workload import Workload

__all__ = ["EnergyCosts"]

FloatArray = NDArray[np.float64]
Operands = tuple[OperandDistribution, OperandDistribution]

_FRONT = len(OperandActivity._fields) + 1


class EnergyCosts:
    """Energy of many arrays on one workload in one cell library.

    Args:
        energies: of the library.
        workload: what the arrays run.
    """

    def __init__(self, energies: Energies, workload: Workload) -> None:
        self._energies = energies
        self._macs: dict[Operands, int] = {}
        for layer in workload.layers:
            pair = (layer.a, layer.b)
            self._macs[pair] = self._macs.get(pair, 0) + layer.macs
        shapes = [(x.m, x.k, x.n, x.count) for x in workload.layers]
        self._m, self._k, self._n, self._count = np.array(shapes, dtype=np.int64).T
        # For each pair of operands: what they do, and the cycles of `pairs` multiplications.
        self._fronts = Memo(each(self._front), _FRONT * len(self._macs))

    def dynamic_pj(
        self, table: ArrayTable, pe: PECosts, edges: Sequence[EdgeCosts], cycles: FloatArray
    ) -> FloatArray:
        """Energy of clock and data path over the whole workload, pJ, shape (n,).

        Args:
            table: the arrays.
            pe: what their PEs are made of.
            edges: the blocks around them that count.
            cycles: of each on the whole workload, shape (n,).
        """
        fronts = np.ascontiguousarray(self._fronts(self._keys(table), table).T)
        total, working = np.zeros(len(table)), np.zeros(len(table))
        for i, macs in enumerate(self._macs.values()):
            *front, steps = fronts[_FRONT * i : _FRONT * (i + 1)]
            busy = macs * steps / table.pairs
            total += busy * self._switched_fj(table, pe, _activity(table, *front))
            working += busy
        registers = table.pes * pe.cells["register_bit"]
        for block in edges:
            registers = registers + block.counts * block.registers
            total += block.event_fj * self._events(table, block.kind, working)
        return (total + self._energies.register_clock * registers * cycles) / 1e3

    def leakage_mw(self, area_um2: FloatArray) -> FloatArray:
        """Leakage of cells of some area, mW."""
        return area_um2 * self._energies.leakage_nw_per_um2 / 1e6

    def _events(self, table: ArrayTable, kind: type[EdgeBlock], working: FloatArray) -> FloatArray:
        """How often the blocks of a kind work over the workload, all copies, shape (n,)."""
        if kind is OperandEncoder:
            groups = -(-table.columns // table.columns_per_encoder)
            passes = -(-self._n // table.columns[:, None]) * groups[:, None]
            encoded = (self._m * self._k * self._count * passes).sum(axis=1)
            encoded = encoded * np.where(table.temporal, table.digits, 1)
            once = (self._m * self._k * self._count).sum()
            return np.where(table.is_("encoder_place", "memory"), float(once), encoded)
        if kind is Barrier:
            return working / table.pes
        tiles = -(-self._k // table.accumulation_length[:, None])
        return np.asarray(
            (self._m * self._n * self._count * tiles).sum(axis=1) * table.passes, float
        )

    @staticmethod
    def _keys(table: ArrayTable) -> NDArray[np.int64]:
        return packed(
            (table.width_a, 5),
            (table.width_b, 5),
            (table.encoding, 3),
            (table.bit_weights, 2),
            (table.hoisted, 1),
            (table.is_("kind", "systolic_ws"), 1),
        )

    def _front(self, array: Array) -> list[float]:
        pe, stationary = array.pe, array.kind == "systolic_ws"
        row: list[float] = []
        for a, b in self._macs:
            steps = cycles_per_mac(pe, a) * pe.operand_pairs
            row += [*operand_activity(pe, a, b, stationary=stationary), steps]
        return row

    def _switched_fj(self, table: ArrayTable, pe: PECosts, x: Any) -> FloatArray:
        """Energy of the data path of one PE in a cycle in which it works, fJ, shape (n,).

        The terms are those of :func:`archgym.envs.tpe.switching.array_energy.switching`.
        """
        e, cells, pairs = self._energies, pe.cells, table.pairs
        plain = table.array_multiplier | table.has_encoder
        digits = table.digit_bits * np.where(table.temporal, 1, table.digits)
        bits_a = pairs * np.where(plain, table.width_a, digits)
        bits_b = pairs * table.width_b
        accumulated = table.accumulators * table.words * table.accumulator_width
        rest = np.maximum(0, cells["register_bit"] - bits_a - bits_b - accumulated)
        quiet = np.where(table.separate, 1.0, np.minimum(1.0, x.accumulator / RANDOM))
        width = table.width_b + table.radix_bits - 1
        line = bits_b * x.operand_b * 2.0 * table.partial_products / pairs
        line += LINES_PER_DIGIT * table.partial_products * x.digit * width
        late = table.has_encoder & ~(table.sparse | table.cut_encode)
        drive = drive_factor(
            table.carry_save & ~(table.array_multiplier | table.cut_select | late),
            np.where(table.temporal, 1, table.digits),
            width,
            pe.tree_depth,
        )
        glitchy = glitch_factors(
            encoder=table.has_encoder
            & table.is_("encoding", "booth")
            & ~(table.sparse | table.cut_encode),
            cut_select=table.cut_select,
            cut_reduce=table.cut_reduce,
            cut_add=table.cut_add,
            depth=pe.tree_depth,
            separate=table.separate,
            carry_save=table.carry_save,
            ripple=table.is_("final_adder", "ripple"),
            product_width=table.product_width,
            accumulator_width=table.accumulator_width,
        )
        moved = np.where(table.separate, (x.product + x.accumulator) / 2.0, x.accumulator)
        last = np.where(table.carry_save, 0.0, table.accumulator_width * moved)
        product = np.where(table.separate, table.product_width * x.product, 0.0)
        chains = product * glitchy.product_adder + last * glitchy.last_adder
        finders = sum(cells[kind] * gates for kind, gates in FINDER_GATES.items())
        encoders = sum(cells[kind] for kind in ENCODER_CELLS)
        registers = bits_a * np.where(plain, x.operand_a, x.digit) + bits_b * x.operand_b
        registers = registers + accumulated * x.accumulator + rest * x.select
        half = cells["half_adder"] + cells["full_adder_one"]
        fj: FloatArray = (
            registers * e.register_data
            + (cells["select_bit"] + cells["sign_bit"]) * x.select * glitchy.selection * e.select
            + (cells["and_bit"] * x.select + finders * x.digit) * e.gate
            + cells["full_adder"] * (x.tree_sum + x.tree_carry) / 2.0 * glitchy.tree * e.full_adder
            + half * x.tree_sum * quiet * glitchy.tree * e.half_adder
            + chains * e.adder
            + encoders * x.digit * e.encoder
            + cells["mux_bit"] * x.select * glitchy.selection * e.multiplexer
            + line * (e.line + drive * e.drive)
        )
        return fj


def _activity(table: ArrayTable, *front: FloatArray) -> Any:
    """Columns of :class:`archgym.envs.tpe.switching.activity.Activity`."""
    back = sum_activity(
        *front[3:],
        pairs=table.pairs,
        separate=table.separate,
        carry_save=table.carry_save,
        width=table.accumulator_width,
        accumulation_length=table.accumulation_length,
    )
    columns: list[Any] = [*front[:4], *back]
    return Activity(*columns)
