"""Converts placements of primitives in the loop nest to arrays, and arrays to placements.

A weight-stationary column adds one product a row while the sum passes down, so that its rows are
the steps of `kt`. A placement has no widths, encoding, form of compressor and adder, or
pipeline: these come from a template PE.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from archgym.envs.tpe.microarchitecture.pe import PE, Array, ArrayKind, EncoderPlace, Place
from archgym.envs.tpe.notation.loop_nest import Loop, Placement, Primitive
from archgym.errors import InvalidValueError

__all__ = ["array_of_placement", "placement_of"]


def placement_of(array: Array) -> Placement:
    """The placement of an array's primitives, over one tile (K = its accumulation length).

    Example:
        >>> mac = Array("systolic_os", 16, 16, PE(8, 8, 32))
        >>> placement_of(mac).copies("add")
        256
    """
    pe, column = array.pe, array.kind == "systolic_ws"
    steps = array.rows if column else -(-array.accumulation_length // array.depth)
    grouped = pe.encoder_place == "edge" and array.columns_per_encoder < array.columns
    per_group = array.columns_per_encoder if grouped else array.columns
    weights = Loop("bw", "BW", pe.digits, spatial=not pe.temporal)
    loops = [
        *([] if column else [Loop("mp", "M", array.rows, spatial=True)]),
        *([Loop("ng", "N", array.columns // per_group, spatial=True)] if grouped else []),
        Loop("np", "N", per_group, spatial=True),
        *([weights] if pe.shift_hoisted else []),
        Loop("kt", "K", steps),
        *([Loop("kp", "K", array.depth, spatial=True)] if array.depth > 1 else []),
        *([] if pe.shift_hoisted else [weights]),
    ]
    every = frozenset(loop.name for loop in loops)
    streams = every - {"np"}
    summed = every - {"kp"} - (set() if pe.shift_hoisted or pe.temporal else {"bw"})
    results = {"edge": every & {"ng", "np"}, "simd": frozenset[str]()}
    scopes: dict[Primitive, frozenset[str]] = {}
    if pe.encoder_place != "memory" and pe.encoding != "radix2":
        scopes["encode"] = every if pe.has_encoder else streams
    if pe.bit_weights == "temporal_sparse":
        scopes["sparse"] = every if pe.has_encoder else streams
    scopes["map"] = every
    if not pe.shift_hoisted:
        scopes["shift"] = every
    scopes["half_reduce"] = summed
    if pe.accumulator == "separate":
        scopes["add"] = summed
    scopes["accumulate"] = summed
    if pe.shift_hoisted:
        scopes["shift"] = results[pe.shift_place] | {"bw"}
    if pe.accumulator == "merged":
        scopes["add"] = summed
    elif pe.accumulator == "carry_save":
        scopes["add"] = results[pe.final_adder_place]
    if pe.bit_weights == "temporal_sparse":
        scopes["sync"] = every & {"mp"}
    return Placement(tuple(loops), tuple(scopes), scopes)


def array_of_placement(placement: Placement, kind: ArrayKind, template: PE) -> Array:
    """The array that a placement describes; the inverse of `placement_of`.

    Args:
        placement: with spatial loops over M and N, and one over BW.
        kind: how the PEs are connected.
        template: a PE with the widths, encoding, compressor, adder and pipeline.

    Raises:
        InvalidValueError: if no array has its primitives there.
    """
    steps = placement.over("K", spatial=False)
    weights = placement.over("BW")
    if len(weights) != 1:
        raise InvalidValueError(f"a PE has one loop over bit weights, not {len(weights)}")
    if weights[0].extent != template.digits:
        raise InvalidValueError(
            f"{template.encoding} writes an operand of {template.width_a} bits in "
            f"{template.digits} digits, but loop {weights[0].name} has {weights[0].extent}"
        )
    temporal = not weights[0].spatial
    depth = _product(placement.over("K", spatial=True))
    length = _product(steps) * depth
    columns = placement.over("N", spatial=True)
    sharing = [
        c for c in columns if "encode" in placement.order and _outside("encode", c, placement)
    ]
    add_first = placement.order.index("add") < placement.order.index("accumulate")
    in_loop = all(step.name in placement.scopes["add"] for step in steps)
    sparse = "sparse" in placement.order
    encoder_place: EncoderPlace
    if "encode" in placement.order:
        encoder_place = "edge" if sharing else "pe"
    else:
        encoder_place = "pe" if template.encoding == "radix2" else "memory"
    pe = replace(
        template,
        encoder_place=encoder_place,
        bit_weights=(
            ("temporal_sparse" if sparse else "temporal_dense") if temporal else "spatial"
        ),
        shift_place=_result_place(placement, "shift"),
        accumulator=("separate" if add_first else "merged") if in_loop else "carry_save",
        final_adder_place=_result_place(placement, "add"),
        lanes=depth if temporal else 1,
        reduction=1 if temporal else depth,
    )
    rows = _product(steps) if kind == "systolic_ws" else _product(placement.over("M", spatial=True))
    count = _product(columns)
    return Array(
        kind=kind,
        rows=rows,
        columns=count,
        pe=pe,
        accumulation_length=length,
        columns_per_encoder=_product(sharing) if encoder_place == "edge" else count,
    )


def _outside(primitive: Primitive, loop: Loop, placement: Placement) -> bool:
    return loop.name not in placement.scopes[primitive]


def _product(loops: tuple[Loop, ...] | list[Loop]) -> int:
    return prod(loop.extent for loop in loops)


def _result_place(placement: Placement, primitive: Primitive) -> Place:
    """Where shift or add stands: in the PE's loop, once a column, or in the SIMD unit."""
    scope = placement.scopes[primitive]
    if any(step.name in scope for step in placement.over("K", spatial=False)):
        return "pe"
    rows, columns = placement.over("M", spatial=True), placement.over("N", spatial=True)
    if any(row.name in scope for row in rows):
        raise InvalidValueError(
            f"{primitive} works once a tile in every PE: share it by the rows, it would idle"
        )
    around = [column.name in scope for column in columns]
    return "edge" if all(around) and around else "simd"
