"""Clock cycles that an array takes for matrix products.

A product (m, k) by (k, n) is cut into tiles: as many rows of A and columns of B as the array has,
and as many steps along k as a PE accumulates. Tiles follow one another without a gap; a tile takes
the longer of

- its *steps*: each brings every PE its operand pairs. A step is one cycle; one a digit if digits
  come one after the other; where zero digits are skipped the tile takes as long as the slowest of
  the streams of digits that run side by side (:mod:`archgym.envs.tpe.cost.synchronisation`);
- its *results*: what the PEs of the tile before have accumulated leaves through the result adders
  (:func:`archgym.envs.tpe.microarchitecture.edge.edge_blocks`), one result a cycle each; bit
  weights that accumulate one after the other leave one by one.

A weight-stationary array holds B and streams A; exchanging the weights takes a cycle a row, right
behind the last operands. Operands of a systolic array reach the last PE rows + columns - 2 cycles
after the first (Kung, "Why Systolic Architectures?", IEEE Computer 15(1), 1982), elsewhere at
once. PEs beyond the edge of a partial tile idle.

The operand memories keep pace with the array (the port is a legality rule), so that there are no
stalls for operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from archgym.envs.tpe.cost.synchronisation import tile_cycles
from archgym.envs.tpe.microarchitecture.edge import ResultAdder, edge_blocks
from archgym.envs.tpe.microarchitecture.encodings import digit_count
from archgym.envs.tpe.microarchitecture.pe import PE, Array, Encoding
from archgym.envs.tpe.workload.workload import Layer, Workload

__all__ = ["Digits", "Schedules", "digits_of", "layer_cycles", "workload_cycles"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

Steps = Literal["spatial", "temporal_dense", "temporal_sparse"]


@dataclass(frozen=True)
class Digits:
    """How the operands of a step are worked off.

    Attributes:
        steps: all digits at once, one a cycle, or one non-zero one a cycle.
        encoding: of operand A.
        width_a: bits of operand A.
        lanes: operand pairs that share a compressor.
    """

    steps: Steps
    encoding: Encoding
    width_a: int
    lanes: int


@dataclass(frozen=True)
class Schedules:
    """The fields that the timing of many arrays depends on; every column has shape (n,).

    Attributes:
        systolic: whether operands pass from PE to PE.
        stationary: whether B stays in the PEs.
        rows, columns: PEs.
        depth: operand pairs that a PE reduces in space.
        length: products that a PE accumulates.
        stages: registers on the way from an operand to its result.
        adders: result adders.
        passes: how often the accumulators of a tile are emptied.
        digits: index into ``kinds``.
        kinds: the ways of working off digits that occur.
    """

    systolic: NDArray[np.bool_]
    stationary: NDArray[np.bool_]
    rows: IntArray
    columns: IntArray
    depth: IntArray
    length: IntArray
    stages: IntArray
    adders: IntArray
    passes: IntArray
    digits: IntArray
    kinds: tuple[Digits, ...]

    def __len__(self) -> int:
        """Number of arrays."""
        return len(self.rows)

    @cached_property
    def of_kind(self) -> list[IntArray]:
        """The arrays of each of ``kinds``."""
        order = np.argsort(self.digits, kind="stable")
        return np.split(order, np.searchsorted(self.digits[order], range(1, len(self.kinds))))

    @classmethod
    def of(cls, arrays: Sequence[Array]) -> Schedules:
        """The schedules of some arrays."""
        kinds: dict[Digits, int] = {}
        rows = []
        for array in arrays:
            pe = array.pe
            kind = digits_of(pe)
            hoisted = pe.temporal and pe.shift_hoisted
            rows.append(
                (
                    array.kind in ("systolic_os", "systolic_ws"),
                    array.kind == "systolic_ws",
                    array.rows,
                    array.columns,
                    array.depth,
                    array.accumulation_length,
                    pe.pipeline_depth + (pe.encoder_place == "edge") + 1,
                    _result_adders(array),
                    pe.digits if hoisted else 1,
                    kinds.setdefault(kind, len(kinds)),
                )
            )
        table = np.array(rows, dtype=np.int64).reshape(len(rows), 10).T
        return cls(
            systolic=table[0] != 0,
            stationary=table[1] != 0,
            rows=table[2],
            columns=table[3],
            depth=table[4],
            length=table[5],
            stages=table[6],
            adders=table[7],
            passes=table[8],
            digits=table[9],
            kinds=tuple(kinds),
        )


def digits_of(pe: PE) -> Digits:
    """How a PE works off the digits of an operand."""
    if pe.bit_weights == "spatial":
        return Digits("spatial", "booth", 8, 1)  # whatever they are, they take one cycle
    return Digits(pe.bit_weights, pe.encoding, pe.width_a, pe.lanes)


def workload_cycles(schedules: Schedules, workload: Workload) -> FloatArray:
    """Mean cycles for each layer of a workload, shape (n_arrays, n_layers)."""
    return np.stack([layer_cycles(schedules, layer) for layer in workload.layers], axis=1)


def layer_cycles(schedules: Schedules, layer: Layer) -> FloatArray:
    """Mean cycles for the products of one layer, shape (n_arrays,).

    An expectation over independent operands; exact for all but digits that are skipped with
    several lanes (see :func:`archgym.envs.tpe.cost.synchronisation.tile_cycles`).
    """
    s = schedules
    skew = np.where(s.systolic, s.rows + s.columns - 2, 0)
    streaming = np.where(s.stationary, _stationary_cycles(s, layer), _accumulating_cycles(s, layer))
    return np.asarray(layer.count * streaming + skew + s.stages, dtype=np.float64)


def _stationary_cycles(s: Schedules, layer: Layer) -> FloatArray:
    """Cycles of one product that holds tiles of B and streams A past them."""
    tiles = -(-layer.k // (s.rows * s.depth)) * -(-layer.n // s.columns)
    return np.asarray(tiles * (layer.m + s.rows), dtype=np.float64)


def _accumulating_cycles(s: Schedules, layer: Layer) -> FloatArray:
    """Cycles of one product whose results grow in the PEs."""
    total = np.zeros(len(s))
    for k_tiles, k in _tiles(layer.k, s.length):
        for m_tiles, m in _tiles(layer.m, s.rows):
            steps = _step_cycles(s, layer, k, m, (k_tiles > 0) & (m_tiles > 0))
            for n_tiles, n in _tiles(layer.n, s.columns):
                results = -(-m * n * s.passes // s.adders)
                total += k_tiles * m_tiles * n_tiles * np.maximum(steps, results)
    return total


def _tiles(size: int, maximum: IntArray) -> tuple[tuple[IntArray, IntArray], ...]:
    """How many full tiles and how large; then whether there is a partial one and how large."""
    full, rest = np.divmod(size, maximum)
    return (full, maximum), ((rest > 0).astype(np.int64), rest)


def _step_cycles(
    s: Schedules, layer: Layer, k: IntArray, m: IntArray, wanted: NDArray[np.bool_]
) -> FloatArray:
    """Cycles in which the PEs of a tile see k products of m rows; 0 where not wanted."""
    steps = (-(-k // s.depth)).astype(np.float64)
    for kind, here in zip(s.kinds, s.of_kind, strict=True):
        if kind.steps == "spatial":
            continue
        if kind.steps == "temporal_dense":
            steps[here] *= digit_count(kind.width_a, kind.encoding)
            continue
        operands = layer.a.extended(kind.width_a)
        where = here[wanted[here]]
        steps[here] = 0.0
        steps[where] = [
            tile_cycles(operands, kind.encoding, length, streams, kind.lanes)
            for length, streams in zip(k[where].tolist(), m[where].tolist(), strict=True)
        ]
    return steps


def _result_adders(array: Array) -> int:
    """Results that leave in a cycle."""
    return next(n for block, n in edge_blocks(array) if isinstance(block, ResultAdder))
