"""Signed-digit encodings of the multiplicand: the bit-weight dimension of a matrix product.

An operand A of `width` bits (two's complement) is written as a sum over bit weights,
A = sum over bw of digit[bw] * radix**bw, and every non-zero digit becomes one partial product.

| encoding | radix | digits of an n-bit operand | digit values | needs |
|---|---|---|---|---|
| `booth` | 4 | ceil(n / 2) | -2 to 2 | a window of three bits |
| `ent` | 4 | ceil(n / 2) | -2 to 2 | sign and magnitude, then a carry chain |
| `csd` | 4 (pairs of binary digits) | ceil(n / 2) | -2 to 2 | a carry chain |
| `radix2`, `serial_twos` | 2 | n | 0, 1; the top one 0, -1 | nothing |
| `serial_sign_magnitude` | 2 | n | -1 to 1, all of one sign | sign and magnitude |

Sources: modified Booth recoding after O. L. MacSorley, "High-Speed Arithmetic in Binary
Computers", Proc. IRE 49(1), 1961; canonical signed digits after G. W. Reitwiesner, "Binary
Arithmetic", Advances in Computers 1, 1960; EN-T after Q. Wu et al., "EN-T: Optimizing Tensor
Computing Engines Performance via Encoder-Based Methodology", arXiv 2404.12550, with the carry rule
as the register-transfer code of "Exploring the Performance Improvement of Tensor Processing
Engines through Transformation in the Bit-weight Dimension of MACs" (HPCA 2025) has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.envs.tpe.microarchitecture.pe import ENCODINGS, Encoding
from archgym.errors import UnknownNameError

__all__ = ["digit_count", "digits", "operand_range", "radix", "weights"]

#: Widest operand: its digits and products of two of them stay exact in 64-bit integers.
_WIDEST = 31

IntArray = NDArray[np.int64]


def digits(values: Any, width: int, encoding: Encoding) -> NDArray[np.int8]:
    """The signed digits of operands, lowest bit weight first.

    Args:
        values: Integers of any shape, each in the two's complement range of `width` bits.
        width: Bits of an operand, 1 to 31.
        encoding: One of `pe.ENCODINGS`.

    Returns:
        Digits, int8, shape `values.shape + (digit_count(width, encoding),)`, such that
        `digits(...) @ weights(width, encoding)` gives the values again.

    Raises:
        UnknownNameError: For an unknown encoding.
        ValueError: For a value outside the range or a width that is not 1 to 31.

    Example:
        >>> digits([124, 91], 8, "ent").tolist()
        [[0, -1, 0, 2], [-1, -1, 2, 1]]
    """
    encode = _ENCODERS[_known(encoding)]
    low, high = operand_range(width)
    operands = np.asarray(values)
    if operands.dtype.kind not in "iu":
        raise ValueError(f"operands are integers, not {operands.dtype}")
    if operands.size and (operands.min() < low or operands.max() > high):
        beyond = operands.min() if operands.min() < low else operands.max()
        raise ValueError(f"operand {beyond} does not fit {width} bits: allowed are {low} to {high}")
    return encode(operands.astype(np.int64), width).astype(np.int8)


def weights(width: int, encoding: Encoding) -> IntArray:
    """Weights of the digits, lowest first: radix**0, radix**1, ... shape (digit_count,)."""
    return radix(encoding) ** np.arange(digit_count(width, encoding), dtype=np.int64)


def digit_count(width: int, encoding: Encoding) -> int:
    """Digits of one operand of `width` bits."""
    return width if radix(encoding) == 2 else -(-width // 2)


def radix(encoding: Encoding) -> int:
    """Ratio of one digit's weight to the next lower one's: 4 or 2."""
    return 4 if _known(encoding) in ("booth", "ent", "csd") else 2


def operand_range(width: int) -> tuple[int, int]:
    """Least and greatest two's complement operand of `width` bits.

    Raises:
        ValueError: If the width is not 1 to 31.
    """
    if not 1 <= width <= _WIDEST:
        raise ValueError(f"operand width is 1 to {_WIDEST} bits, not {width}")
    return -(1 << (width - 1)), (1 << (width - 1)) - 1


def _known(encoding: str) -> Encoding:
    for known in ENCODINGS:
        if known == encoding:
            return known
    raise UnknownNameError("encoding", encoding, ENCODINGS)


def _bits(values: IntArray, count: int) -> IntArray:
    """Bits 0 to count - 1 of two's complement words, shape `values.shape + (count,)`."""
    return (values[..., None] >> np.arange(count)) & 1


def _booth(values: IntArray, width: int) -> IntArray:
    count = -(-width // 2)
    # An odd width is extended by its sign; a zero stands right of the lowest bit.
    bits = _bits(values, 2 * count)
    below = np.zeros_like(bits[..., ::2])
    below[..., 1:] = bits[..., 1:-1:2]
    return bits[..., ::2] + below - 2 * bits[..., 1::2]


def _ent(values: IntArray, width: int) -> IntArray:
    count = -(-width // 2)
    result = np.empty((*values.shape, count), dtype=np.int64)
    magnitude = np.abs(values)
    sign = np.where(values < 0, -1, 1)
    carry = np.zeros_like(values)
    for place in range(count):
        digit = ((magnitude >> (2 * place)) & 3) + carry
        # 3 and 4 are written as -1 and 0 with a carry; the top digit never gets there, since
        # the greatest magnitude, 2**(width - 1), is a 2 (or a 1) with zeros below it.
        carry = (digit >= 3).astype(np.int64)
        result[..., place] = sign * (digit - 4 * carry)
    return result


def _csd(values: IntArray, width: int) -> IntArray:
    # A binary digit is +1 where 3x has a one that x lacks, -1 the other way round (one place
    # up): Reitwiesner's recoding in closed form. Even and odd places make the radix-4 pair.
    triple = 3 * values
    count = -(-width // 2)
    binary = _bits((triple & ~values) >> 1, 2 * count) - _bits((values & ~triple) >> 1, 2 * count)
    return binary[..., ::2] + 2 * binary[..., 1::2]


def _twos_complement(values: IntArray, width: int) -> IntArray:
    bits = _bits(values, width)
    bits[..., -1] *= -1
    return bits


def _sign_magnitude(values: IntArray, width: int) -> IntArray:
    return np.where(values < 0, -1, 1)[..., None] * _bits(np.abs(values), width)


_ENCODERS: dict[Encoding, Callable[[IntArray, int], IntArray]] = {
    "booth": _booth,
    "ent": _ent,
    "csd": _csd,
    "radix2": _twos_complement,
    "serial_twos": _twos_complement,
    "serial_sign_magnitude": _sign_magnitude,
}
