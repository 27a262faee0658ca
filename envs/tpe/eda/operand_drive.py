"""Random operands for the ports of a processing element in a gate-level simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.envs.tpe.microarchitecture.pe import PE
from archgym.envs.tpe.workload.digit_statistics import digit_table
from archgym.envs.tpe.workload.operands import OperandDistribution

__all__ = ["Drive", "pe_drive"]

Drive = Callable[[int], Mapping[str, Sequence[int]]]
"""From the cycle to the bits of each input port, lowest first; bit i of each is stream i."""


def pe_drive(
    pe: PE,
    widths: Mapping[str, int],
    a: OperandDistribution,
    b: OperandDistribution,
    *,
    streams: int,
    rng: np.random.Generator,
) -> Drive:
    """Independent operands for the ports of a PE.

    :mod:`archgym.envs.tpe.eda.verilog.processing_element` describes the ports.

    Args:
        pe: the processing element.
        widths: bits of each input port.
        a: operand A; where digits arrive, theirs, the non-zero ones if zeros are skipped.
        b: operand B.
        streams: independent streams.
        rng: draws the operands.
    """
    a, b = a.extended(pe.width_a), b.extended(pe.width_b)
    table = digit_table(pe.width_a, pe.encoding).astype(np.int64)

    def words(operands: OperandDistribution) -> list[int]:
        drawn = rng.choice(operands.values, size=streams, p=operands.probability)
        return [_packed((drawn >> bit) & 1) for bit in range(operands.width)]

    def digits() -> list[int]:
        drawn = table[rng.choice(len(table), size=(8, streams), p=a.probability)]
        if not pe.temporal:
            return [line for digit in drawn[0].T for line in _lines(digit, pe.radix_bits)]
        pool = drawn.ravel()
        if pe.bit_weights == "temporal_sparse" and pool.any():
            pool = pool[pool != 0]
        return _lines(rng.choice(pool, size=streams), pe.radix_bits)

    makers: dict[str, Callable[[], list[int]]] = {
        "a": lambda: words(a),
        "b": lambda: words(b),
        "digits": digits,
    }

    def drive(cycle: int) -> dict[str, list[int]]:
        found = {}
        for name, width in widths.items():
            bits: list[int] = []
            if name in makers:
                bits = [bit for _ in range(pe.operand_pairs) for bit in makers[name]()]
            # Ports without a given distribution are random: the weight of a digit, for example.
            while len(bits) < width:
                bits.append(_packed(rng.integers(0, 2, streams)))
            found[name] = bits[:width]
        return found

    return drive


def _lines(digit: NDArray[np.int64], radix_bits: int) -> list[int]:
    """The lines of a digit: one, then two in radix 4, then negate."""
    two = [_packed(np.abs(digit) == 2)] if radix_bits == 2 else []
    return [_packed(np.abs(digit) == 1), *two, _packed(digit < 0)]


def _packed(bits: NDArray[Any]) -> int:
    """One bit a stream as a number."""
    return int.from_bytes(np.packbits(bits.astype(np.uint8), bitorder="little").tobytes(), "little")
