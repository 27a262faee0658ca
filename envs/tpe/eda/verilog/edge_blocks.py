"""Verilog of the blocks around the processing elements: encoders, result adders, barriers."""

from __future__ import annotations

from functools import lru_cache

from archgym.envs.tpe.eda.verilog.builder import ZERO, Module, Verilog
from archgym.envs.tpe.eda.verilog.encoder import operand_encoder
from archgym.envs.tpe.microarchitecture.datapath import Adder
from archgym.envs.tpe.microarchitecture.edge import (
    SHORT_SEGMENT,
    Barrier,
    EdgeBlock,
    OperandEncoder,
    ResultAdder,
)
from archgym.envs.tpe.microarchitecture.edge_structure import (
    joins_words,
    result_heap,
    segment_adders,
    segments,
)

__all__ = ["edge_verilog"]

_ONE = "1'b1"


@lru_cache(maxsize=1024)
def edge_verilog(block: EdgeBlock, name: str = "edge_block") -> Verilog:
    """Verilog-2005 of an edge block.

    Ports: an encoder has `a` and gives `digits` (each `one`, `two` in radix 4, `neg`), a serial one
    besides `weight` (index of the digit) and `take` (it reads the next operand at this clock edge).
    A result adder has `values` (all words, number after number, sum before carry), `partial` and,
    for bit weights one after the other, `shift`, and gives `result`. A barrier has `load`,
    `loaded` (counts), `step` (a digit was used, one a stream), and gives `open`.
    """
    module = Module(name)
    if isinstance(block, OperandEncoder):
        operand_encoder(module, block)
    elif isinstance(block, ResultAdder):
        _result_adder(module, block)
    else:
        _barrier(module, block)
    return module.finish()


def _pipelined(
    m: Module, name: str, form: Adder, maximum: int, a: list[str], b: list[str]
) -> list[str]:
    """A sum of two words, segment after segment; every register counted with the block."""
    parts, chain = segments(form.width, maximum), segment_adders(form.form, form.width, maximum)
    ready: list[str] = []
    carry = ""
    low = 0
    for i, (bits, adder) in enumerate(zip(parts, chain, strict=True)):
        mine = (a[:bits], b[:bits])
        head = ([_ONE], [carry]) if i else ([], [])
        tail = [ZERO] if i < len(parts) - 1 else []
        words = [[*h, *(bit or ZERO for bit in w), *tail] for h, w in zip(head, mine, strict=True)]
        total = m.adder(f"{name}_{i}", adder, *words)[len(head[0]) :]
        kept = [*ready, *total[:bits]]
        rest = [bit or ZERO for bit in (*a[bits:], *b[bits:])]
        out = m.register(f"{name}_r{i}", [*kept, *total[bits:], *rest])
        low += bits
        ready = out[:low]
        carry = out[low] if tail else ""
        rest = out[low + len(tail) :]
        a, b = rest[: len(rest) // 2], rest[len(rest) // 2 :]
    return ready


def _delayed(m: Module, name: str, bits: list[str], cycles: int) -> list[str]:
    for i in range(cycles):
        bits = m.register(f"{name}_d{i}", bits)
    return bits


def _result_adder(m: Module, block: ResultAdder) -> None:
    width, narrow = block.result_width, block.accumulator_width
    numbers = block.accumulators * block.words
    values = m.register("values_r", m.input("values", numbers * narrow))
    words = [values[i * narrow : (i + 1) * narrow] for i in range(numbers)]
    partial = m.input("partial", width)
    if block.accumulators == 1 and block.shift_bits > 0:
        shift = m.input("shift", 1)
        shifted = m.wire("shifted", width)
        for j, bit in enumerate(shifted):
            moved = partial[j - block.shift_bits] if j >= block.shift_bits else ZERO
            m.cell("mux_bit", choose=shift[0], one=moved, zero=partial[j], out=bit)
        partial = shifted
    partial = m.register("partial_r", partial)
    form = Adder(block.final_adder, narrow)
    if joins_words(block):
        words = [
            _pipelined(m, f"join_{i}", form, block.segment, words[2 * i], words[2 * i + 1])
            for i in range(block.accumulators)
        ]
        partial = _delayed(m, "waited", partial, len(segments(narrow, block.segment)))
    last = Adder(block.final_adder, width)
    heap = result_heap(block)
    if heap is None:
        (word,) = words
        extended = [*word, *[word[-1]] * (width - narrow)][:width]
        m.output("result", _pipelined(m, "total", last, block.segment, extended, partial))
        return
    for i, segment in enumerate(heap.partial_products[:-1]):
        bits = words[i][: segment.length]
        if heap.constant:
            bits = [*bits[:-1], f"~{bits[-1]}"]
        m.wire(segment.name, len(bits))
        m.assign(segment.name, bits)
    m.wire("previous", width)
    m.assign("previous", partial)
    reduction = heap.reduce("dadda", "t")
    m.compressors(reduction)
    rows = []
    for name, row in (("tree_sum", reduction.sum), ("tree_carry", reduction.carry)):
        fixed = [not bit or bit.startswith("1'b") for bit in row]
        kept = m.register(name, ["" if f else bit for f, bit in zip(fixed, row, strict=True)])
        rows.append(
            [(old or ZERO) if f else new for f, old, new in zip(fixed, row, kept, strict=True)]
        )
    m.output("result", _pipelined(m, "total", last, block.segment, *rows))


def _barrier(m: Module, block: Barrier) -> None:
    bits = block.counter_bits
    load = m.register("load_r", m.input("load", 1))[0]
    loaded = m.input("loaded", bits * block.streams)
    step = m.register("step_r", m.input("step", block.streams))
    empty = []
    for i in range(block.streams):
        next_bits = m.wire(f"count_{i}_next", bits)
        count = m.register(f"count_{i}", next_bits)
        empty.append(m.expression(f"empty_{i}", 1, f"~|{{{', '.join(count)}}}")[0])
        # Counting down: a bit turns where all lower ones are zero, which is a half adder of its
        # complement. An empty count stays; that is known as late as the lowest segment's chain.
        taken = m.expression(f"taken_{i}", 1, f"{step[i]} & ~{empty[-1]}")[0]
        lowered = m.wire(f"lowered_{i}", bits)
        borrows = m.wire(f"borrows_{i}", bits)
        m.assign(lowered[0], [f"~{count[0]}"])
        m.assign(borrows[0], [f"~{count[0]}"])
        borrow = borrows[0]
        for j in range(1, bits):
            if j % SHORT_SEGMENT == 0:
                # A borrow that waits a cycle is taken long before the bits below are zero again.
                happens = f"{borrow} & ~{load}" + (f" & {taken}" if j == SHORT_SEGMENT else "")
                late = m.expression(f"late_{i}_{j}", 1, happens)
                borrow = m.register(f"late_{i}_{j}_r", late)[0]
            flipped = m.wire(f"flip_{i}_{j}", 1)[0]
            m.cell("half_adder", a=f"~{count[j]}", b=borrow, s=flipped, co=borrows[j])
            borrow = borrows[j]
            m.assign(lowered[j], [f"~{flipped}"])
        for j in range(bits):
            left = lowered[j]
            if j < SHORT_SEGMENT:
                left = m.wire(f"left_{i}_{j}", 1)[0]
                m.cell("mux_bit", choose=taken, one=lowered[j], zero=count[j], out=left)
            new = loaded[i * bits + j]
            m.cell("mux_bit", choose=load, one=new, zero=left, out=next_bits[j])
    m.output("open", [f"&{{{', '.join(empty)}}}"])
