"""Designs with a name: the classic arrays and the published optimisations of their PEs.

Sizes are those of the register-transfer code of "Exploring the Performance Improvement of Tensor
Processing Engines through Transformation in the Bit-weight Dimension of MACs" (HPCA 2025): systolic
arrays of 16 x 16, a cube of 8 x 8 x 8, trees of 16 x 16, columns of 32. Its 2D matrix is not
public: rows of PEs that reduce four operand pairs each stand for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from archgym.envs.tpe.microarchitecture.pe import PE, Array
from archgym.envs.tpe.space.design_space import broken_rules, design_of
from archgym.envs.tpe.space.parameters import ACCUMULATOR_WIDTHS, OPERAND_WIDTHS
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["BASELINES", "OPTIMISATIONS", "fitted", "named_array", "named_designs"]

#: K of one tile: what the PEs accumulate before a result leaves.
_LENGTH = 256
_WIDTHS = (8, 8)
_MAC = PE(*_WIDTHS, 32)

BASELINES: Mapping[str, Array] = {
    "systolic_os": Array("systolic_os", 16, 16, _MAC, _LENGTH, 16),
    "systolic_ws": Array("systolic_ws", 16, 16, replace(_MAC, accumulator_width=20), 16, 16),
    "cube": Array("cube", 8, 8, replace(_MAC, reduction=8), _LENGTH, 8),
    "tree": Array("tree", 1, 16, replace(_MAC, reduction=16), _LENGTH, 16),
    "matrix": Array("matrix", 16, 4, replace(_MAC, reduction=4), _LENGTH, 4),
}
"""Each classic array with multiply-accumulate units of radix-4 Booth multipliers."""

OPTIMISATIONS: Mapping[str, str] = {
    "OPT1": "sum and carry are kept; the final adder stands outside, once a tile",
    "OPT2": "OPT1, and operands of one bit weight are reduced together; shift outside, EN-T",
    "OPT3": "one non-zero Booth digit a cycle, found in every PE",
    "OPT4C": "one non-zero EN-T digit a cycle, found once for a row of PEs",
    "OPT4E": "OPT4C with four lanes that share a compressor",
}
"""The published optimisations; OPT3 and later make a bit-serial column of any array."""

_COLUMN = Array("bit_serial_column", 16, 32, _MAC, _LENGTH, 32)


def named_array(name: str, widths: tuple[int, int] = _WIDTHS) -> Array:
    """A classic array (`cube`), or one with an optimisation (`cube/OPT1`, `OPT4E`).

    Args:
        name: of the design.
        widths: bits of operands A and B; other ones than eight take the narrowest accumulator
            that holds the sum.

    Raises:
        UnknownNameError: if there is none of that name.
        InvalidValueError: if the optimisation is not one of that array.

    Example:
        >>> named_array("systolic_os/OPT1").pe.accumulator
        'carry_save'
        >>> named_array("OPT4E").depth
        4
        >>> named_array("OPT4C", (16, 16)).pe.accumulator_width
        26
    """
    kind, _, optimisation = name.rpartition("/")
    if not kind and name in BASELINES:
        kind, optimisation = name, ""
    if kind and kind not in BASELINES:
        raise UnknownNameError("array", kind, BASELINES)
    if optimisation and optimisation not in OPTIMISATIONS:
        raise UnknownNameError("named design", name, named_designs())
    if optimisation in ("OPT3", "OPT4C", "OPT4E"):
        if kind:
            raise InvalidValueError(
                f"{optimisation} is a separate kind, a bit-serial column, not {kind}"
            )
        return fitted(_serial(optimisation), widths)
    if not kind:
        raise UnknownNameError("named design", name, named_designs())
    return fitted(_optimised(BASELINES[kind], optimisation), widths)


def fitted(array: Array, widths: tuple[int, int]) -> Array:
    """The array for operands of other widths, with the narrowest accumulator that holds them.

    Raises:
        InvalidValueError: if operands are never that wide.
    """
    for bits in widths:
        if bits not in OPERAND_WIDTHS:
            raise InvalidValueError(
                f"operands of {bits!r} bits are not in the space; widths are "
                f"{', '.join(map(str, OPERAND_WIDTHS))}"
            )
    pe = array.pe
    if (pe.width_a, pe.width_b) == widths:
        return array
    for bits in ACCUMULATOR_WIDTHS:
        pe = replace(pe, width_a=widths[0], width_b=widths[1], accumulator_width=bits)
        if not broken_rules(replace(array, pe=pe)):
            break
    return replace(array, pe=pe)


def named_designs(widths: tuple[int, int] = _WIDTHS) -> dict[str, dict[str, Any]]:
    """Every named design by its name, for operands A and B of some bits.

    Raises:
        InvalidValueError: if operands are never that wide.
    """
    names = [
        *BASELINES,
        *(f"{kind}/{name}" for kind in BASELINES for name in ("OPT1", "OPT2")),
        *(name for name in OPTIMISATIONS if name not in ("OPT1", "OPT2")),
    ]
    return {name: design_of(named_array(name, widths)) for name in names}


def _optimised(array: Array, name: str) -> Array:
    pe = array.pe
    if name:
        pe = replace(pe, accumulator="carry_save", final_adder_place="simd")
    if name == "OPT2":
        length = array.accumulation_length
        # Booth digits and the like select up to 2B: two bits beyond B's.
        narrow = pe.width_b + 2 + (length - 1).bit_length()
        pe = replace(
            pe,
            encoding="ent",
            encoder_place="edge",
            shift_place="simd",
            accumulator_width=narrow + narrow % 2,
        )
    return replace(array, pe=pe)


def _serial(name: str) -> Array:
    pe = PE(
        8,
        8,
        18,
        bit_weights="temporal_sparse",
        shift_place="simd",
        accumulator="carry_save",
        final_adder_place="simd",
        lanes=4 if name == "OPT4E" else 1,
    )
    if name != "OPT3":
        pe = replace(pe, encoding="ent", encoder_place="edge")
    return replace(_COLUMN, pe=pe)
