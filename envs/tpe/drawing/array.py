"""An array of processing elements with its edge blocks, drawn."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from archgym.envs.tpe.drawing.canvas import COLOURS, Box, Sheet
from archgym.envs.tpe.microarchitecture.edge import OperandEncoder, ResultAdder, edge_blocks
from archgym.envs.tpe.microarchitecture.pe import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_array"]

_WIDTH, _HEIGHT = 10.4, 13.2
_MAXIMA = 6
"""PEs drawn along a side; of more, the first ones, a gap and the last one."""

KIND_NAMES = {
    "systolic_os": "systolic array, results stay",
    "systolic_ws": "systolic array, B stays",
    "cube": "3D cube",
    "tree": "multiplier-adder trees",
    "matrix": "2D matrix",
    "bit_serial_column": "bit-serial columns",
}


def draw_array(axes: Axes, array: Array) -> None:
    """Draws an array."""
    sheet = Sheet(axes, _WIDTH, _HEIGHT)
    sheet.text(0.3, 12.95, "array", size=12, align="left", bold=True)
    deep = f", {array.depth} operand pairs each" if array.depth > 1 else ""
    sheet.text(
        0.3,
        12.52,
        f"{KIND_NAMES[array.kind]}: {array.rows} x {array.columns} PEs{deep}",
        size=8.5,
        align="left",
        colour="#333333",
    )
    _grid(sheet, array)
    _facts(sheet, array)


def _places(n: int, low: float, high: float) -> tuple[list[float | None], float]:
    """Where PEs stand along a side, ``None`` for the gap, and the room that each has."""
    shown: list[bool] = [True] * n if n <= _MAXIMA else [*([True] * (_MAXIMA - 2)), False, True]
    room = min((high - low) / max(len(shown), 3), 1.75)
    start = (low + high) / 2 - room * len(shown) / 2
    return [start + room * (i + 0.5) if there else None for i, there in enumerate(shown)], room


def _grid(sheet: Sheet, array: Array) -> None:
    xs, across = _places(array.columns, 2.5, 9.9)
    low, high = 4.9, 10.9
    upwards, down = _places(array.rows, low, high)
    ys = [None if y is None else low + high - y for y in upwards]  # row 0 is the top one
    width, height = across * 0.66, down * 0.6
    pes = {
        (r, c): sheet.box(Box(x, y, width, height), "note", "PE", size=8)
        for r, y in enumerate(ys)
        for c, x in enumerate(xs)
        if x is not None and y is not None
    }
    _gaps(sheet, xs, ys)
    rows = [r for r, y in enumerate(ys) if y is not None]
    columns = [c for c, x in enumerate(xs) if x is not None]
    systolic = array.kind in ("systolic_os", "systolic_ws")
    top = pes[rows[0], columns[0]].top[1]
    for r in rows:
        _operand_a(sheet, array, [pes[r, c] for c in columns], systolic)
    for c in columns:
        _operand_b(sheet, array, [pes[r, c] for r in rows], top, first=c == columns[0])
    _results(sheet, array, [pes[rows[-1], c] for c in columns])


def _gaps(sheet: Sheet, xs: list[float | None], ys: list[float | None]) -> None:
    """Dots where rows or columns are left out."""
    known_x = [x for x in xs if x is not None]
    known_y = [y for y in ys if y is not None]
    if None in xs:
        x = (known_x[-2] + known_x[-1]) / 2
        for y in known_y:
            sheet.text(x, y, "...", size=11, behind="white")
    if None in ys:
        y = (known_y[-2] + known_y[-1]) / 2
        for x in known_x:
            sheet.text(x, y, ":", size=11, behind="white")


def _operand_a(sheet: Sheet, array: Array, row: list[Box], systolic: bool) -> None:
    """A, or its digits, enters from the left."""
    pe = array.pe
    y = row[0].y
    edge = pe.encoder_place == "edge" and pe.encoding != "radix2"
    start = 1.62 if edge else 0.75
    if edge:
        serial = {"temporal_sparse": "next\ndigit"}.get(pe.bit_weights, "enc")
        sheet.box(Box(1.2, y, 0.84, min(row[0].height, 0.8)), "encoder", serial, size=7)
        sheet.wire([(0.25, y), (0.78, y)])
    sheet.text(0.3 if edge else 0.62, y + 0.22, "A", size=8)
    if systolic:
        points = [(start, y), *(box.left for box in row)]
        for box, after in pairwise(row):
            sheet.wire([box.right, after.left])
        sheet.wire([points[0], points[1]])
        return
    bus = y + row[0].height / 2 + 0.14
    sheet.wire([(start, y), (start + 0.22, y), (start + 0.22, bus), (row[-1].x, bus)], arrow=False)
    for box in row:
        sheet.wire([(box.x, bus), box.top])


def _operand_b(sheet: Sheet, array: Array, column: list[Box], top: float, *, first: bool) -> None:
    """B enters from above, or is loaded once and stays."""
    x = column[0].x
    if array.kind in ("systolic_os", "systolic_ws"):
        sheet.wire([(x, top + 0.75), (x, top)])
        for box, after in pairwise(column):
            sheet.wire([box.bottom, after.top])
        if array.kind == "systolic_os":
            sheet.text(x + 0.12, top + 0.6, "B", size=8, align="left")
        elif first:
            sheet.text(x - 0.1, top + 0.95, "B once, then partial sums", size=8, align="left")
        return
    side = column[0].right[0] + 0.13
    sheet.wire([(side, top + 0.9), (side, column[-1].y)], arrow=False)
    sheet.text(side + 0.1, top + 0.75, "B", size=8, align="left")
    for box in column:
        sheet.wire([(side, box.y), box.right])


def _results(sheet: Sheet, array: Array, last: list[Box]) -> None:
    """Result adders below the array."""
    pe = array.pe
    adders = next(n for block, n in edge_blocks(array) if isinstance(block, ResultAdder))
    y = 3.75
    adds = "sum + carry" if pe.words == 2 else "results"
    shifts = ", shifted" if pe.shift_hoisted else ""
    per_column = adders == array.columns
    for box in last:
        sheet.wire([box.bottom, (box.x, y + 0.36)])
    if per_column:
        for box in last:
            sheet.box(Box(box.x, y, box.width, 0.72), "adder", "+", size=11)
    else:
        left, right = last[0].left[0], last[-1].right[0]
        words = f"SIMD unit: {_several(adders, 'result adder')} ({adds}{shifts})"
        span = max(right - left, 5.6)
        sheet.box(Box((left + right) / 2, y, span, 0.72), "adder", words, size=8)


def _facts(sheet: Sheet, array: Array) -> None:
    """Facts that the grid cannot show, and the key to the colours."""
    pe = array.pe
    lines = []
    for block, n in edge_blocks(array):
        if isinstance(block, OperandEncoder):
            what = "sparse encoder" if block.sparse else "encoder"
            lines.append(f"{_several(n, what)}, each for {array.columns_per_encoder} PEs of a row")
        elif isinstance(block, ResultAdder):
            words = f"{block.operands} words to {block.result_width} bits"
            lines.append(f"{_several(n, 'result adder')}: {words}")
        else:
            lines.append(f"barrier: {array.rows} streams of digits wait for the slowest")
    if pe.encoder_place == "memory" and pe.encoding != "radix2":
        lines.append("A is stored encoded")
    lines.append(f"a tile accumulates {array.accumulation_length} products")
    clock = f"{array.clock_mhz:g} MHz" if array.clock_mhz else "as fast as it gets"
    lines.append(f"clock: {clock}")
    for i, line in enumerate(lines):
        sheet.text(0.3, 2.85 - 0.36 * i, line, size=8, align="left", colour="#333333")
    names = {
        "register": "registers",
        "encoder": "encoder",
        "select": "partial products",
        "tree": "compressors",
        "adder": "carry chain",
        "shift": "shift",
    }
    for i, (kind, name) in enumerate(names.items()):
        x, y = 7.4, 2.85 - 0.36 * i
        assert kind in COLOURS
        sheet.box(Box(x, y, 0.42, 0.24), kind)
        sheet.text(x + 0.35, y, name, size=8, align="left")


def _several(n: int, name: str) -> str:
    return f"{n} {name}" if n == 1 else f"{n} {name}s"
