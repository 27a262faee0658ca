"""The data path of a processing element, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archgym.envs.tpe.drawing.canvas import COLOURS, Box, Sheet
from archgym.envs.tpe.microarchitecture.datapath import shift_levels
from archgym.envs.tpe.microarchitecture.pe import PE, Array
from archgym.envs.tpe.microarchitecture.structure import Counts, counts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_pe"]

_WIDTH, _HEIGHT = 12.0, 13.2
_LEFT, _RIGHT = 0.35, 11.65
_MAX_SELECTORS = 8

ENCODING_NAMES = {
    "booth": "Booth radix 4",
    "ent": "EN-T radix 4",
    "csd": "canonical signed digits",
    "radix2": "Baugh-Wooley",
    "serial_twos": "two's complement bits",
    "serial_sign_magnitude": "sign-magnitude bits",
}
_TREES = {"wallace": "Wallace", "dadda": "Dadda", "4to2": "4:2", "linear": "linear"}
_ADDERS = {
    "auto": "form left to the tool",
    "ripple": "ripple",
    "brent_kung": "Brent-Kung",
    "kogge_stone": "Kogge-Stone",
    "sklansky": "Sklansky",
}


def draw_pe(axes: Axes, array: Array) -> None:
    """Draws the PE of an array."""
    sheet = Sheet(axes, _WIDTH, _HEIGHT)
    pe, cells = array.pe, counts(array.pe)
    sheet.text(0.35, 12.95, "processing element", size=12, align="left", bold=True)
    sheet.text(0.35, 12.52, _headline(pe), size=8.5, align="left", colour="#333333")
    outside = pe.accumulator == "carry_save"
    bottom = 2.35 if outside else 1.0
    inside = (11.62, bottom)
    sheet.box(
        Box(_WIDTH / 2, sum(inside) / 2, _RIGHT - _LEFT, inside[0] - inside[1]), "pe", layer=1
    )
    digits, b = _operands(sheet, pe)
    _selectors(sheet, pe, cells, digits, b)
    _accumulate(sheet, array, cells, bottom)
    if outside:
        _outside(sheet, pe, bottom)


def _headline(pe: PE) -> str:
    how = {
        "spatial": "all digits in one cycle",
        "temporal_dense": "one digit a cycle",
        "temporal_sparse": "one non-zero digit a cycle",
    }[pe.bit_weights]
    pairs = f", {pe.operand_pairs} operand pairs side by side" if pe.operand_pairs > 1 else ""
    return (
        f"{pe.width_a} x {pe.width_b} bits, accumulator {pe.accumulator_width} bits; "
        f"{ENCODING_NAMES[pe.encoding]}: {how}{pairs}"
    )


def _operands(sheet: Sheet, pe: PE) -> tuple[tuple[float, float], tuple[float, float]]:
    """Operand registers and encoder; where digits and B leave."""
    times = f"{pe.operand_pairs} x " if pe.operand_pairs > 1 else ""
    b = sheet.box(Box(8.6, 10.95, 3.4, 0.72), "register", f"B  {times}{pe.width_b} bits")
    sheet.wire([(b.x, 12.0), b.top])
    sheet.text(b.x + 0.15, 11.86, "B", size=8, align="left")
    if not pe.has_encoder:
        plain = pe.encoding == "radix2"
        digits = 1 if pe.temporal else pe.digits
        bits = f"{pe.width_a} bits" if plain else f"{digits} x {pe.digit_bits} bits"
        name = "A" if plain else "digits of A"
        a = sheet.box(Box(3.4, 10.95, 3.9, 0.72), "register", f"{name}  {times}{bits}")
        where = {"edge": "from the edge", "memory": "from memory"}.get(pe.encoder_place, "")
        sheet.wire([(a.x, 12.0), a.top])
        label = "A" if plain else f"digits of A {where}"
        sheet.text(a.x + 0.15, 11.86, label, size=8, align="left")
        return a.bottom, b.bottom
    a = sheet.box(Box(3.4, 10.95, 3.9, 0.72), "register", f"A  {times}{pe.width_a} bits")
    sheet.wire([(a.x, 12.0), a.top])
    sheet.text(a.x + 0.15, 11.86, "A", size=8, align="left")
    what = {
        "spatial": f"encoder: {times}{pe.digits} digits",
        "temporal_dense": f"encoder: {times}1 of {pe.digits} digits",
        "temporal_sparse": f"next non-zero of {pe.digits} digits",
    }[pe.bit_weights]
    encoder = sheet.box(Box(3.4, 9.6, 3.9, 0.8), "encoder", what)
    sheet.wire([a.bottom, encoder.top])
    return encoder.bottom, b.bottom


def _selectors(
    sheet: Sheet,
    pe: PE,
    cells: Counts,
    digits: tuple[float, float],
    b: tuple[float, float],
) -> None:
    """The row of partial product selectors, and shifters."""
    n = pe.partial_products
    shown = min(n, _MAX_SELECTORS)
    span, y = 9.6, 7.75
    pitch = span / shown
    choices = {"radix2": "AND"}.get(pe.encoding, "-2B..2B" if pe.radix_bits == 2 else "-B..B")
    if "encode" in pe.cuts:
        sheet.cut(8.98, _LEFT + 0.1, _RIGHT - 0.1, "pipeline registers: digits")
    bus_a, bus_b = 8.72, 8.46
    width = min(1.5, pitch * 0.82)
    first, last = 1.2 + pitch / 2, 1.2 + span - pitch / 2
    taps_a = (first - width / 5, last - width / 5, digits[0])
    taps_b = (first + width / 5, last + width / 5, b[0])
    sheet.wire([digits, (digits[0], bus_a)], arrow=False)
    sheet.wire([b, (b[0], bus_b)], arrow=False)
    sheet.wire([(min(taps_a), bus_a), (max(taps_a), bus_a)], arrow=False)
    sheet.wire([(min(taps_b), bus_b), (max(taps_b), bus_b)], arrow=False)
    for i in range(shown):
        x = 1.2 + pitch * (i + 0.5)
        box = Box(x, y, width, 0.72)
        sheet.box(box, "select", choices if width > 0.9 else "", size=7.5)
        sheet.wire([(x - width / 5, bus_a), (x - width / 5, box.top[1])])
        sheet.wire([(x + width / 5, bus_b), (x + width / 5, box.top[1])])
        sheet.wire([box.bottom, (x, 6.55)])
    kinds = ("select_bit", "sign_bit", "and_bit")
    bits = sum(cells[kind] for kind in kinds)
    label = f"{n} partial product{'s' if n > 1 else ''} of {pe.partial_product_width} bits"
    more = f" ({shown} drawn)" if shown < n else ""
    middle = 4.5 if "select" in pe.cuts else 6.0
    sheet.text(middle, 7.1, f"{label}{more}: {bits} bits in all", size=7.5, behind=COLOURS["pe"])
    if "select" in pe.cuts:
        sheet.cut(6.88, _LEFT + 0.1, _RIGHT - 0.1, "pipeline registers: partial products")
    if shift_levels(pe):
        shifter = sheet.box(Box(6.0, 6.2, 4.4, 0.6), "shift", "shift by the bit weight")
        sheet.wire([shifter.bottom, (6.0, 5.55)])


def _accumulate(sheet: Sheet, array: Array, cells: Counts, bottom: float) -> None:
    """Compressor tree, adders and accumulator with its feedback."""
    pe = array.pe
    top = 5.5 if shift_levels(pe) else 6.5
    fulls = cells["full_adder"] + cells["full_adder_one"]
    halves = cells["half_adder"] + cells["half_adder_one"]
    copies = f"{pe.accumulators} trees, one a bit weight; " if pe.accumulators > 1 else ""
    what = (
        f"{_TREES[pe.compressor]} tree: {copies}{cells.levels} full-adder "
        f"level{'s' if cells.levels != 1 else ''}\n{fulls} full, {halves} half adders"
    )
    tree = sheet.funnel(Box(6.0, top - 0.5, 8.6, 1.0), "tree", what)
    y = tree.bottom[1]
    accumulator_y = bottom + 0.72
    if pe.accumulator == "carry_save":
        _carry_save(sheet, array, tree, accumulator_y)
        return
    stages = 2 if pe.accumulator == "separate" else 1
    room = (y - accumulator_y - 0.36) / (stages + 0.0001)
    form = _ADDERS[pe.final_adder]
    if stages == 2:
        if "reduce" in pe.cuts:
            sheet.cut(y - 0.3, _LEFT + 0.1, _RIGHT - 0.1, "pipeline registers: sum and carry")
        product = sheet.box(Box(6.0, y - room * 0.52, 5.0, 0.62), "adder", f"product adder, {form}")
        sheet.wire([(5.4, y), (5.4, product.top[1])])
        label = "" if "reduce" in pe.cuts else "sum and carry"
        sheet.wire([(6.6, y), (6.6, product.top[1])], label)
        y = product.bottom[1]
        if "add" in pe.cuts:
            sheet.cut(y - 0.36, _LEFT + 0.1, _RIGHT - 0.1, "pipeline registers: product")
    accumulate = sheet.box(
        Box(6.0, accumulator_y + 0.36 + (0.75 if stages == 2 else room * 0.45), 5.0, 0.62),
        "adder",
        f"accumulate adder, {form}",
    )
    sheet.wire([(5.4, y), (5.4, accumulate.top[1])])
    if stages == 1:
        sheet.wire([(6.6, y), (6.6, accumulate.top[1])], "sum and carry")
    register = sheet.box(
        Box(6.0, accumulator_y, 5.0, 0.62), "register", f"accumulator  {pe.accumulator_width} bits"
    )
    sheet.wire([accumulate.bottom, register.top])
    entry = (7.6, accumulate.top[1]) if stages == 2 else (tree.x + 3.6, tree.top[1])
    _feedback(sheet, array, register.right, 10.9, entry)
    sheet.wire([register.bottom, (6.0, 0.35)], "result")


def _carry_save(sheet: Sheet, array: Array, tree: Box, y: float) -> None:
    pe = array.pe
    copies = f"{pe.accumulators} x " if pe.accumulators > 1 else ""
    registers = [
        sheet.box(Box(x, y, 3.3, 0.66), "register", f"{name}  {copies}{pe.accumulator_width} bits")
        for name, x in (("sum", 4.1), ("carry", 7.9))
    ]
    low = tree.bottom[1]
    for box, start in zip(registers, (5.2, 6.8), strict=True):
        middle = (low + box.top[1]) / 2
        sheet.wire([(start, low), (start, middle), (box.x, middle), box.top])
    _feedback(sheet, array, registers[0].left, 1.0, (2.2, tree.top[1]), label=False)
    _feedback(sheet, array, registers[1].right, 11.0, (9.8, tree.top[1]))


def _feedback(
    sheet: Sheet,
    array: Array,
    start: tuple[float, float],
    lane: float,
    entry: tuple[float, float],
    *,
    label: bool = True,
) -> None:
    """The way of what is accumulated back to where it is added; in a column, from PE to PE."""
    above = entry[1] + 0.25
    end = [(lane, above), (entry[0], above), entry]
    if array.kind == "systolic_ws":
        sheet.wire([(lane, 12.0), *end])
        text, y = "from the PE above", 10.0
    else:
        sheet.wire([start, (lane, start[1]), *end])
        text, y = "every cycle", (start[1] + above) / 2
    if label:
        sheet.text(lane + 0.2, y, text, size=7.5, upright=True)


def _outside(sheet: Sheet, pe: PE, bottom: float) -> None:
    """What the PE leaves to the edge or to the SIMD unit."""
    y = 0.98
    where = {"edge": "array edge", "simd": "SIMD unit"}
    sheet.wire([(4.1, bottom + 0.39), (4.1, y + 0.35)])
    sheet.wire([(7.9, bottom + 0.39), (7.9, y + 0.35)])
    sheet.text(8.05, bottom - 0.42, "once a tile", size=7.5, align="left")
    parts = []
    if pe.shift_hoisted:
        parts.append(("shift", f"shift: {where[pe.shift_place]}"))
    form = _ADDERS[pe.final_adder]
    parts.append(("adder", f"final adder: {where[pe.final_adder_place]}, {form}"))
    if len(parts) == 2:
        sheet.box(Box(2.8, y, 3.4, 0.7), "shift", parts[0][1], dashed=True)
        sheet.box(Box(7.9, y, 6.2, 0.7), "adder", parts[1][1], dashed=True)
        sheet.wire([(4.5, y), (4.8, y)])
        return
    sheet.box(Box(6.0, y, 7.4, 0.7), "adder", parts[0][1], dashed=True)
