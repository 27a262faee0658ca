"""Cell counts of each kind of an edge block, and its wiring.

Edge blocks must not set the clock of an array of carry-save PEs, so that long carry chains are cut
into segments with registers between them: the first segment of the sum is ready a cycle before the
second, and so on (K. Hwang, "Computer Arithmetic", 1979, section 3.6, pipelined carry-propagate
addition).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import lru_cache

from archgym.envs.tpe.microarchitecture.adders import adder_cells
from archgym.envs.tpe.microarchitecture.constants import (
    SPARED_OF_ENCODER,
    increment_gates,
    spared_of_adder,
    spared_of_finder,
    sum_gates,
)
from archgym.envs.tpe.microarchitecture.datapath import Adder, Stage
from archgym.envs.tpe.microarchitecture.edge import (
    SEGMENT,
    SHORT_SEGMENT,
    Barrier,
    EdgeBlock,
    OperandEncoder,
    ResultAdder,
)
from archgym.envs.tpe.microarchitecture.encodings import digit_count, radix
from archgym.envs.tpe.microarchitecture.heap import Counted, Heap, Segment
from archgym.envs.tpe.microarchitecture.pe import FinalAdder

__all__ = ["edge_cells", "result_heap", "segment_adders", "segments"]

_Structure = tuple[Counter[str], tuple[Adder, ...], tuple[Stage, ...], dict[str, float]]


def segments(width: int, maximum: int) -> list[int]:
    """Bits of each segment of a pipelined adder, lowest first; all but the last as many as most."""
    return [min(maximum, width - low) for low in range(0, width, maximum)]


def segment_adders(form: FinalAdder, width: int, maximum: int) -> list[Adder]:
    """The adders of a pipelined adder.

    A segment takes the carry of the one below as one more bit at its low end (added to a constant
    one) and gives its own carry as one more at its top.
    """
    parts = segments(width, maximum)
    return [Adder(form, bits + (i > 0) + (i < len(parts) - 1)) for i, bits in enumerate(parts)]


def result_heap(adder: ResultAdder) -> Heap | None:
    """The rows that a result adder reduces before its last addition; None if there are but two.

    Each number is `value_<i>`, its sign inverted; the partial sum is `previous`.
    """
    width = adder.result_width
    if adder.accumulators == 1 and adder.words == 2 and adder.accumulator_width >= width:
        rows = tuple(Segment(f"value_{i}", 0, width) for i in range(2))
        return Heap(width, (*rows, Segment("previous", 0, width)))
    if adder.accumulators == 1:
        return None
    values: list[Segment] = []
    constant = 0
    for i in range(adder.accumulators):
        low = i * adder.shift_bits
        values.append(Segment(f"value_{i}", low, adder.accumulator_width))
        constant -= 1 << (low + adder.accumulator_width - 1)
    return Heap(width, (*values, Segment("previous", 0, width)), constant=constant)


def joins_words(adder: ResultAdder) -> bool:
    """Whether sum and carry are added by themselves first.

    They must be where the result is wider: their sum is a number modulo 2**accumulator_width, of
    which only the whole has a sign.
    """
    narrow = adder.accumulators > 1 or adder.accumulator_width < adder.result_width
    return adder.words == 2 and narrow


@lru_cache(maxsize=4096)
def edge_cells(block: EdgeBlock) -> _Structure:
    """Cells, adders and stages of an edge block, and the cells that synthesis leaves out."""
    if isinstance(block, OperandEncoder):
        return _encoder(block)
    if isinstance(block, ResultAdder):
        return _result_adder(block)
    return _barrier(block)


@lru_cache(maxsize=1024)
def _pipelined(
    form: FinalAdder, width: int, maximum: int
) -> tuple[Counter[str], tuple[Adder, ...], dict[str, float]]:
    """Cells of a pipelined adder with all its registers, the sum's included; its segments.

    Last the cells that are left out: the bits that take and give the carries have no gates.
    """
    cells: Counter[str] = Counter()
    spared: dict[str, float] = {}
    parts = segments(width, maximum)
    chain = segment_adders(form, width, maximum)
    for i, (bits, adder) in enumerate(zip(parts, chain, strict=True)):
        cells.update(adder_cells(adder.form, adder.width))
        _add(spared, spared_of_adder(form, adder.width, sum_gates(bits, carried=i > 0)))
    for i in range(len(parts)):
        carry = int(i < len(parts) - 1)
        cells["register_bit"] += sum(parts[: i + 1]) + carry + 2 * sum(parts[i + 1 :])
    return cells, tuple(chain), spared


def _add(total: dict[str, float], more: dict[str, float], times: int = 1) -> None:
    for kind, n in more.items():
        total[kind] = total.get(kind, 0.0) + times * n


def _result_adder(block: ResultAdder) -> _Structure:
    cells: Counter[str] = Counter()
    width, narrow = block.result_width, block.accumulator_width
    cells["register_bit"] += block.accumulators * block.words * narrow + width
    serial = block.accumulators == 1 and block.shift_bits > 0
    found: list[Stage] = []
    adders: list[Adder] = []
    spared: dict[str, float] = {}
    if serial:
        # The partial sum is shifted as it arrives, or not, before the next bit weight joins it.
        cells["mux_bit"] += width
        found.append(Stage(window_levels=1))
    if joins_words(block):
        joined, chain, left_out = _pipelined(block.final_adder, narrow, block.segment)
        _add(spared, left_out, block.accumulators)
        for kind, n in joined.items():
            cells[kind] += n * block.accumulators
        adders += chain * block.accumulators
        found.append(Stage(adders=(max(chain, key=_width),)))
        # The partial sum waits as long.
        cells["register_bit"] += len(segments(narrow, block.segment)) * width
    heap = result_heap(block)
    if heap is not None:
        counted = _compressors(replace(block, final_adder="auto", segment=SEGMENT))
        cells["full_adder"] += counted.full_adders
        cells["full_adder_one"] += counted.full_adders_one
        cells["half_adder"] += counted.half_adders
        cells["half_adder_one"] += counted.half_adders_one
        cells["register_bit"] += counted.sum_bits + counted.carry_bits
        found.append(Stage(levels=counted.levels, depth=counted.depth))
    total, last, left_out = _pipelined(block.final_adder, width, block.segment)
    _add(spared, left_out)
    cells.update(total)
    adders += last
    found.append(Stage(adders=(max(last, key=_width),)))
    return cells, tuple(adders), tuple(found), spared


@lru_cache(maxsize=4096)
def _compressors(block: ResultAdder) -> Counted:
    heap = result_heap(block)
    assert heap is not None
    return heap.count("dadda")


def _width(adder: Adder) -> int:
    return adder.width


def _encoder(block: OperandEncoder) -> _Structure:
    cells: Counter[str] = Counter()
    count = digit_count(block.width, block.encoding)
    lines = 3 if radix(block.encoding) == 4 else 2
    index = (count - 1).bit_length()
    cells["register_bit"] += block.width
    adders: tuple[Adder, ...] = ()
    front = Stage(encoder=1)
    spared: dict[str, float] = {}
    if block.encoding == "booth":
        cells["stored_encoder"] += count
        spared["stored_encoder"] = SPARED_OF_ENCODER
    elif block.encoding == "serial_twos":
        front = Stage()
    elif block.encoding == "csd":
        cells["csd_bit"] += block.width
        cells["csd_digit"] += count
        # The carry passes every bit.
        front = Stage(encoder=1, depth=0.3 * block.width)
    elif block.encoding in ("ent", "serial_sign_magnitude"):
        cells["magnitude_bit"] += block.width
        adders = (Adder("auto", block.width),)
        cells["add_bit"] += block.width
        _add(spared, spared_of_adder("auto", block.width, increment_gates(block.width)))
        cells["register_bit"] += block.width + 1
        # An increment is a chain of half adders.
        front = Stage(depth=0.3 * block.width)
        if block.encoding == "ent":
            cells["ent_digit"] += count
    held = block.width + lines * count
    if block.encoding in ("ent", "serial_sign_magnitude"):
        held += block.width + 1
    found = [front]
    if not block.serial:
        cells["register_bit"] += lines * count
        return cells, adders, tuple(found), spared
    cells["mux_bit"] += held
    cells["register_bit"] += lines * count + lines
    if block.sparse:
        cells["mux_bit"] += count
        cells["pending_digit"] += count
        cells["pick_bit"] += lines * count
        _add(spared, spared_of_finder(lines))
        cells["register_bit"] += count + index
        found.append(Stage(pending=count, window_levels=1))
    else:
        cells["mux_bit"] += lines * (count - 1)
        cells["add_bit"] += index
        # One is added: the lowest bit is inverted.
        _add(spared, spared_of_adder("auto", index, increment_gates(index - 1)))
        cells["register_bit"] += index
        found.append(Stage(window_levels=index))
        adders = (*adders, Adder("auto", index))
    return cells, adders, tuple(found), spared


def _barrier(block: Barrier) -> _Structure:
    cells: Counter[str] = Counter()
    bits = block.streams * block.counter_bits
    # A count goes down by half subtractors: a bit turns where all lower ones are zero. Borrows wait
    # in a register between segments; an empty count, an AND of all its bits, stays.
    low = min(SHORT_SEGMENT, block.counter_bits)
    cells["half_adder"] += bits - block.streams
    cells["mux_bit"] += bits + block.streams * low
    waiting = (block.counter_bits - 1) // SHORT_SEGMENT
    cells["register_bit"] += bits + block.streams * (1 + waiting) + 1
    levels = (block.counter_bits - 1).bit_length()
    return cells, (), (Stage(window_levels=2, depth=0.3 * max(levels, low)),), {}
