"""Energy of an array on a workload, from switching activity and energy per change.

The parts are the clock pins of all registers in every cycle; the data path of a PE in the cycles in
which it works (:mod:`archgym.envs.tpe.switching.activity`); encoders and result adders at the edge
for every operand encoded and every result finished; and leakage for as long as it takes. PEs that
wait or idle cost clock and leakage, no more: their operands do not change.

What a change costs is :mod:`archgym.envs.tpe.technology.energies`', and how often signals change
before they settle :mod:`archgym.envs.tpe.switching.glitches`'. Operand lines that limit the clock
are driven harder (:mod:`archgym.envs.tpe.switching.line_drive`).

Not in it: wires, the clock tree, operand memories.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from archgym.envs.tpe.microarchitecture.edge import Barrier, EdgeBlock, OperandEncoder, edge_blocks
from archgym.envs.tpe.microarchitecture.pe import PE, Array
from archgym.envs.tpe.microarchitecture.structure import Counts, counts
from archgym.envs.tpe.switching.activity import activity
from archgym.envs.tpe.switching.glitches import chain_factor, glitches, tree_factors
from archgym.envs.tpe.switching.line_drive import line_drive
from archgym.envs.tpe.technology.energies import Energies
from archgym.envs.tpe.workload.digit_statistics import mean_digits
from archgym.envs.tpe.workload.operands import OperandDistribution
from archgym.envs.tpe.workload.workload import Workload

__all__ = ["EnergyModel", "switching", "work_energy_fj"]

FloatArray = NDArray[np.float64]

RANDOM = 0.5
LINES_PER_DIGIT = 3
FINDER_GATES = {"pending_digit": 2.0, "pick_bit": 1.5, "serial_encoder": 1.0, "magnitude_bit": 1.5}
"""Simple gates that cells of a digit finder amount to."""
ENCODER_CELLS = ("booth_encoder", "stored_encoder", "ent_digit", "csd_digit", "csd_bit")


def switching(
    pe: PE,
    a: OperandDistribution,
    b: OperandDistribution,
    *,
    stationary: bool = False,
    accumulation_length: int = 256,
    with_glitches: bool = True,
) -> dict[str, float]:
    """Mean number of changes of the signals of each class in a cycle in which the PE works.

    The keys are those of :class:`Energies` with ``register`` for register data.

    Args:
        pe: the processing element.
        a: operand A, at most as wide as the PE's.
        b: operand B, likewise.
        stationary: whether B stays while operands A stream past.
        accumulation_length: products that an accumulator collects.
        with_glitches: whether changes count that a signal takes back before the cycle ends.
    """
    x = activity(pe, a, b, stationary=stationary, accumulation_length=accumulation_length)
    cells = counts(pe)
    pairs = pe.operand_pairs
    plain = pe.encoding == "radix2" or pe.has_encoder
    bits_a = pairs * (pe.width_a if plain else pe.digit_bits * (1 if pe.temporal else pe.digits))
    bits_b = pairs * pe.width_b
    rest = max(0, cells.register_bits - bits_a - bits_b - pe.accumulated_bits)
    # In a tree that takes the accumulated word back, half adders stand where there is little
    # else, in its upper columns, and are as quiet as these.
    quiet = 1.0 if pe.accumulator == "separate" else min(1.0, x.accumulator / RANDOM)
    fanout = bits_b * x.operand_b * 2.0 * pe.partial_products / pairs
    fanout += LINES_PER_DIGIT * pe.partial_products * x.digit * pe.partial_product_width
    finders = sum(cells[kind] * gates for kind, gates in FINDER_GATES.items())
    factors = [float(factor[0]) if with_glitches else 1.0 for factor in glitches(pe)]
    selection, tree, product_adder, last_adder = factors
    product, last = _adder_switching(pe, cells, x.product, x.accumulator)
    return {
        "register": bits_a * (x.operand_a if plain else x.digit)
        + bits_b * x.operand_b
        + pe.accumulated_bits * x.accumulator
        + rest * x.select,
        "select": (cells["select_bit"] + cells["sign_bit"]) * x.select * selection,
        "gate": cells["and_bit"] * x.select + finders * x.digit,
        "full_adder": cells["full_adder"] * (x.tree_sum + x.tree_carry) / 2.0 * tree,
        "half_adder": (cells["half_adder"] + cells["full_adder_one"]) * x.tree_sum * quiet * tree,
        "adder": product * product_adder + last * last_adder,
        "encoder": sum(cells[kind] for kind in ENCODER_CELLS) * x.digit,
        "multiplexer": cells["mux_bit"] * x.select * selection,
        "line": fanout,
        "drive": fanout * line_drive(pe),
    }


def work_energy_fj(energies: Energies, signals: Mapping[str, float]) -> float:
    """Energy of signals that change, fJ; without the clock."""
    return sum(
        n * (energies.register_data if kind == "register" else getattr(energies, kind))
        for kind, n in signals.items()
    )


class EnergyModel:
    """Energy of arrays on one workload in one cell library.

    Args:
        energies: of the library.
        workload: what the arrays run.
        cells: counts the cells of an edge block.
    """

    def __init__(
        self, energies: Energies, workload: Workload, cells: Callable[[EdgeBlock], Counts]
    ) -> None:
        self._energies = energies
        self._workload = workload
        self._cells = cells
        self._macs: dict[tuple[OperandDistribution, OperandDistribution], int] = {}
        for layer in workload.layers:
            key = (layer.a, layer.b)
            self._macs[key] = self._macs.get(key, 0) + layer.macs
        shapes = [(x.m, x.k, x.n, x.count) for x in workload.layers]
        self._m, self._k, self._n, self._count = np.array(shapes, dtype=np.int64).T
        self._work_of = lru_cache(maxsize=65536)(self._datapath_fj)
        self._block_of = lru_cache(maxsize=16384)(self._block)

    def dynamic_energy_pj(
        self, arrays: Sequence[Array], cycles: FloatArray, *, edges: bool = True
    ) -> FloatArray:
        """Energy of clock and data path over the whole workload.

        Args:
            arrays: the arrays.
            cycles: of each on the whole workload, shape (n_arrays,).
            edges: whether edge blocks count, or PEs alone.

        Returns:
            Energy, pJ, shape (n_arrays,).
        """
        clock = self._energies.register_clock
        found = np.empty(len(arrays))
        for i, (array, taken) in enumerate(zip(arrays, cycles.tolist(), strict=True)):
            stationary = array.kind == "systolic_ws"
            registers = array.pes * counts(array.pe).register_bits
            total = self._work_of(array.pe, stationary, array.accumulation_length)
            for block, n in edge_blocks(array) if edges else ():
                bits, event = self._block_of(block)
                registers += n * bits
                total += event * self._events(block, array)
            found[i] = total + clock * registers * taken
        return found / 1e3

    def event_energy_fj(self, block: EdgeBlock) -> float:
        """Energy of one event in an edge block: an operand encoded, a result finished, fJ."""
        return self._block_of(block)[1]

    def leakage_power_mw(self, areas_um2: FloatArray) -> FloatArray:
        """Leakage of cells of some area, mW."""
        return areas_um2 * self._energies.leakage_nw_per_um2 / 1e6

    def _datapath_fj(self, pe: PE, stationary: bool, length: int) -> float:
        """Energy of all PEs' data paths over the workload, fJ."""
        return sum(
            macs
            * cycles_per_mac(pe, a)
            * work_energy_fj(
                self._energies,
                switching(pe, a, b, stationary=stationary, accumulation_length=length),
            )
            for (a, b), macs in self._macs.items()
        )

    def _block(self, block: EdgeBlock) -> tuple[int, float]:
        """Registers of an edge block, and the energy of one event in it, fJ."""
        cells = self._cells(block)
        tree, chains = _edge_glitches(cells)
        if isinstance(block, Barrier):
            # A counter counts down: two bits change in a cycle, of each stream.
            return cells.register_bits, 2.0 * block.streams * self._energies.register_data
        random = {
            "register": cells.register_bits * RANDOM,
            "gate": sum(cells[kind] * gates for kind, gates in FINDER_GATES.items()) * RANDOM,
            "full_adder": cells["full_adder"] * RANDOM * tree,
            "half_adder": (cells["half_adder"] + cells["full_adder_one"]) * RANDOM * tree,
            "adder": chains * RANDOM,
            "encoder": sum(cells[kind] for kind in ENCODER_CELLS) * RANDOM,
            "multiplexer": cells["mux_bit"] * RANDOM,
        }
        return cells.register_bits, work_energy_fj(self._energies, random)

    def _events(self, block: EdgeBlock, array: Array) -> float:
        """How often blocks of a kind do their work in the whole workload, all copies together."""
        pe = array.pe
        if isinstance(block, OperandEncoder):
            if pe.encoder_place == "memory":  # once, when it is written
                return float(np.sum(self._m * self._k * self._count))
            groups = -(-array.columns // array.columns_per_encoder)
            passes = -(-self._n // array.columns) * groups
            serial = pe.digits if pe.temporal else 1
            return float(np.sum(self._m * self._k * self._count * passes)) * serial
        if isinstance(block, Barrier):
            return sum(macs * cycles_per_mac(pe, a) for (a, _), macs in self._macs.items()) / max(
                1, array.pes
            )
        passes = pe.digits if pe.temporal and pe.shift_hoisted else 1
        tiles = -(-self._k // array.accumulation_length)
        return float(np.sum(self._m * self._n * self._count * tiles)) * passes


def _adder_switching(
    pe: PE, cells: Counts, product: float, accumulator: float
) -> tuple[float, float]:
    """Bits by the switching of their sums: of adders of the product, of the last adder."""
    if pe.accumulator == "carry_save":
        return 0.0, 0.0
    *first, last = cells.adders
    if not first:
        return 0.0, last.width * accumulator
    # The product, sign-extended, switches in the upper bits where the sum hardly does.
    both = last.width * (product + accumulator) / 2.0
    return sum(adder.width for adder in first) * product, both


def _edge_glitches(cells: Counts) -> tuple[float, float]:
    """Of an edge block, whose inputs come from registers: factor of its tree, bits of adders."""
    depth = np.array([max((stage.depth for stage in cells.stages), default=0.0)])
    tree, out = tree_factors(np.ones(1), depth)
    widths = np.array([adder.width for adder in cells.adders], dtype=np.int64)
    ripple = np.array([adder.form == "ripple" for adder in cells.adders], dtype=np.bool_)
    return float(tree[0]), float(np.sum(widths * chain_factor(out, widths, ripple)))


def cycles_per_mac(pe: PE, a: OperandDistribution) -> float:
    """Cycles in which a PE works, for each multiplication."""
    if pe.bit_weights == "spatial":
        return 1.0 / pe.operand_pairs
    if pe.bit_weights == "temporal_dense":
        return pe.digits / pe.lanes
    return mean_digits(a.extended(pe.width_a), pe.encoding) / pe.lanes
