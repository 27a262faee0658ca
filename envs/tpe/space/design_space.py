"""The design space of TPE-v0: parameters, conditions and legality rules.

A design is a mapping of parameter values; `array_of` builds the array that it describes and
`design_of` is the inverse. The rules are those of a multiply-accumulate fabric after "Exploring
the Performance Improvement of Tensor Processing Engines through Transformation in the Bit-weight
Dimension of MACs" (HPCA 2025); what a rule would only repeat is a condition instead: a parameter
that does not apply is left out of the design.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from archgym.envs.tpe.microarchitecture.pe import PE, Array
from archgym.envs.tpe.space.parameters import parameters
from archgym.envs.tpe.space.rules import legality_rules
from archgym.errors import InvalidValueError
from archgym.space import DesignSpace

__all__ = ["MIN_WIDTHS", "array_of", "broken_rules", "design_of", "design_space"]

#: Bits that the operands of the usual 8-bit workloads need.
MIN_WIDTHS = (8, 8)


def design_space(min_widths: tuple[int, int] = MIN_WIDTHS) -> DesignSpace:
    """The whole design space.

    Args:
        min_widths: bits that operands A and B of the workload need; there are no narrower
            designs, since what rounding would cost the network is not modelled.

    Raises:
        InvalidValueError: if they need more than the widest operand has.
    """
    return DesignSpace(parameters(min_widths), legality_rules())


def array_of(design: Mapping[str, Any]) -> Array:
    """The array that a legal design describes.

    Example:
        >>> array = array_of(design_of(Array("cube", 8, 8, PE(8, 8, 32, reduction=8))))
        >>> array.kind, array.rows, array.columns, array.depth
        ('cube', 8, 8, 8)
    """
    kind, columns = design["array"], design["columns"]
    rows = {"cube": columns, "tree": 1}.get(kind) or design["rows"]
    depth = columns if kind == "cube" else design.get("depth", 1)
    pe = PE(
        width_a=design["width_a"],
        width_b=design["width_b"],
        accumulator_width=design["accumulator_width"],
        encoding=design["encoding"],
        encoder_place=design.get("encoder_place", "pe"),
        bit_weights=design.get("bit_weights", "spatial"),
        shift_place=design.get("shift_place", "pe"),
        accumulator=design["accumulator"],
        final_adder_place=design.get("final_adder_place", "pe"),
        final_adder=design["final_adder"],
        compressor=design["compressor"],
        pipeline_depth=design["pipeline_depth"],
        lanes=design.get("lanes", 1),
        reduction=depth,
    )
    return Array(
        kind=kind,
        rows=rows,
        columns=columns,
        pe=pe,
        accumulation_length=design.get("accumulation_length", rows * depth),
        columns_per_encoder=design.get("columns_per_encoder", columns),
        clock_mhz=design.get("clock_mhz", 0.0),
    )


def design_of(array: Array) -> dict[str, Any]:
    """The design that describes an array; the inverse of `array_of`.

    Raises:
        InvalidValueError: if no design does: the message names the first rule that it breaks.
        DesignError: if a value is not among the parameter's.
    """
    design = _canonical(array)
    broken = broken_rules(array)
    if broken:
        name, message = next(iter(broken.items()))
        raise InvalidValueError(f"illegal array: {name}: {message}")
    return design


def broken_rules(array: Array) -> dict[str, str]:
    """Every rule that an array breaks, by name, with the message; empty if it is legal.

    Beside the rules of the space there are those that a design cannot break, because a
    parameter that does not apply is not in it.

    Raises:
        DesignError: if a value is not among the parameter's.
    """
    design = _canonical(array)
    built = array_of(design)
    found = {
        rule: message
        for field, (rule, message) in _CONDITIONS.items()
        if _field(built, field) != _field(array, field)
    }
    for rule in legality_rules():
        applies = all(name in design for name in rule.expression.names)
        if applies and not rule.expression.evaluate(design):
            found[rule.name] = rule.doc
    return found


def _field(array: Array, name: str) -> Any:
    return getattr(array.pe if name in _PE_FIELDS else array, name)


def _canonical(array: Array) -> dict[str, Any]:
    """The active parameters of the design that describes `array`."""
    pe = array.pe
    values: dict[str, Any] = {
        **{name: getattr(pe, name) for name in _PE_FIELDS},
        "array": array.kind,
        "rows": array.rows,
        "columns": array.columns,
        "depth": pe.reduction,
        "accumulation_length": array.accumulation_length,
        "columns_per_encoder": array.columns_per_encoder,
        "clock": "target" if array.clock_mhz else "fastest",
        "clock_mhz": array.clock_mhz,
    }
    design: dict[str, Any] = {}
    for parameter in parameters():
        if parameter.when is None or (
            all(name in design for name in parameter.when.names) and parameter.when.evaluate(design)
        ):
            value = values[parameter.name]
            if parameter.name in _MAY_BE_PE and value in ("pe", "spatial"):
                value = parameter.value(0)  # another one: `_CONDITIONS` catches it
            design[parameter.name] = parameter.value(parameter.code(value))
    return design


_PE_FIELDS = frozenset(field.name for field in fields(PE))
#: Parameters without the level that stands for "does not apply" in a PE.
_MAY_BE_PE = ("final_adder_place", "bit_weights")
#: What holds in every design because of a condition: by the field that shows it.
_CONDITIONS: dict[str, tuple[str, str]] = {
    "final_adder_place": (
        "final_adder_outside_the_loop",
        "sum and carry become one word once, outside the PE's cycle; a carry chain is in the PE",
    ),
    "shift_place": (
        "hoisted_shift_accumulates_apart",
        "the product adder joins all bit weights, so that it cannot stay in the PE when the shift "
        "has left: keep sum and carry of each bit weight",
    ),
    "bit_weights": (
        "temporal_digits_need_columns",
        "digits one after the other need columns that share the stream, synchronise and fetch B "
        "by position; there, digits are never spatial",
    ),
    "encoder_place": ("array_multiplier_has_no_encoder", "a radix-2 array takes A as it is"),
    "lanes": ("lanes_share_a_stream", "lanes are for digits that come one after the other"),
    "reduction": (
        "reduction_in_space",
        "a cube is as deep as it is wide; bit-serial columns reduce by lanes",
    ),
    "rows": ("array_shape", "a cube has as many rows as columns, a tree has one"),
    "accumulation_length": (
        "column_length",
        "a weight-stationary column accumulates rows x depth products",
    ),
}
