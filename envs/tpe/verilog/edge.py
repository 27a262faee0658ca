"""Verilog of the blocks around the processing elements: encoders, result adders, barriers."""

from __future__ import annotations

from functools import lru_cache

from archgym.envs.tpe.datapath import Adder
from archgym.envs.tpe.edge import (
    SHORT_SEGMENT,
    Barrier,
    EdgeBlock,
    OperandEncoder,
    ResultAdder,
)
from archgym.envs.tpe.edge_structure import joins_words, result_heap, segment_adders, segments
from archgym.envs.tpe.encodings import digit_count
from archgym.envs.tpe.verilog.module import ZERO, Module, Verilog
from archgym.envs.tpe.verilog.operands import Digit, windows

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
        _encoder(module, block)
    elif isinstance(block, ResultAdder):
        _result_adder(module, block)
    else:
        _barrier(module, block)
    return module.finish()


def _encoder(m: Module, block: OperandEncoder) -> None:
    count = digit_count(block.width, block.encoding)
    port = m.input("a", block.width)
    if not block.serial:
        digits = _digits(m, block, m.register("a_r", port))
        m.output("digits", m.register("digits_r", [bit for d in digits for bit in d.values()]))
        return
    # An operand waits encoded until the one before is used up.
    take = m.wire("take_now", 1)[0]
    digits = _digits(m, block, _held(m, "a_r", port, take), take)
    names = list(digits[0])
    nonzero = [f"{' | '.join(list(d.values())[:-1])}" for d in digits]
    stored = _held(m, "codes", [bit for d in digits for bit in d.values()], take)
    codes = [stored[i : i + len(names)] for i in range(0, len(stored), len(names))]
    index = (count - 1).bit_length()
    if block.sparse:
        _sparse(m, codes, nonzero, take, index)
    else:
        _dense(m, codes, take, index)
    m.output("take", [take])


def _held(m: Module, name: str, bits: list[str], take: str) -> list[str]:
    """A register that takes new bits when told to."""
    next_bits = m.wire(f"{name}_next", len(bits))
    word = m.register(name, next_bits)
    for out, new, old in zip(next_bits, bits, word, strict=True):
        m.cell("mux_bit", choose=take, one=new, zero=old, out=out)
    return word


def _dense(m: Module, codes: list[list[str]], take: str, index: int) -> None:
    """One digit after the other, counted."""
    count = len(codes)
    next_bits = m.wire("weight_next", index)
    weight = m.register("weight_r", next_bits)
    raised = m.adder("weight_up", Adder("auto", index), weight, [_ONE] + [ZERO] * (index - 1))
    m.assign("weight_next", [f"{bit} & ~{take}" for bit in raised])
    word = ", ".join(reversed(weight))
    m.assign("take_now", [f"{{{word}}} == {index}'d{count - 1}"])
    out = []
    for k in range(len(codes[0])):
        options, level = [code[k] for code in codes], 0
        while len(options) > 1:
            made = m.wire(f"pick_{k}_{level}", len(options) // 2)
            for j, bit in enumerate(made):
                one, zero = options[2 * j + 1], options[2 * j]
                m.cell("mux_bit", choose=weight[level], one=one, zero=zero, out=bit)
            options = made + options[2 * len(made) :]
            level += 1
        out.append(options[0])
    m.output("digits", m.register("digit_r", out))
    m.output("weight", weight)


def _sparse(m: Module, codes: list[list[str]], nonzero: list[str], take: str, index: int) -> None:
    """Digits that are not zero, lowest bit weight first, with their position."""
    count, lines = len(codes), len(codes[0])
    first, left = m.wire("first", count), m.wire("left", count)
    after = [ZERO, *m.wire("after", count)]
    next_bits = m.wire("waits_next", count)
    waits = m.register("waits", next_bits)
    m.assign("take_now", [f"~|{{{', '.join(left)}}}"])
    for i in range(count):
        some = m.expression(f"nonzero_{i}", 1, nonzero[i])[0]
        m.cell("mux_bit", choose=take, one=some, zero=left[i], out=next_bits[i])
        m.cell(
            "pending_digit",
            waits=waits[i],
            before=after[i],
            first=first[i],
            left=left[i],
            after=after[i + 1],
        )
    out = []
    for k in range(lines):
        above = ZERO
        for i, bit in enumerate(m.wire(f"pick_{k}", count)):
            m.cell("pick_bit", above=above, chosen=first[i], bit=codes[i][k], out=bit)
            above = bit
        out.append(above)
    places = [
        m.expression(
            f"place_{k}", 1, " | ".join(first[i] for i in range(count) if i >> k & 1) or ZERO
        )[0]
        for k in range(index)
    ]
    m.output("digits", m.register("digit_r", out))
    m.output("weight", m.register("weight_r", places))


def _digits(m: Module, block: OperandEncoder, word: list[str], take: str = "") -> list[Digit]:
    """All digits of an operand; encodings of |A| register it first (when told to, if serial)."""
    if block.encoding == "booth":
        digits = []
        for i, (low, mid, high) in enumerate(windows(word)):
            digit = _lines(m, f"e{i}", ("one", "two", "neg"))
            m.cell("booth_encoder", high=high, mid=mid, low=low, **digit)
            digits.append(digit)
        return digits
    if block.encoding == "csd":
        return _csd(m, word)
    if block.encoding in ("radix2", "serial_twos"):
        return [
            {"one": bit, "neg": bit if i == len(word) - 1 else ZERO} for i, bit in enumerate(word)
        ]
    sign = word[-1]
    flipped = m.wire("flipped", len(word))
    for out, bit in zip(flipped, word, strict=True):
        m.cell("magnitude_bit", sign=sign, bit=bit, out=out)
    lowest = [sign] + [ZERO] * (len(word) - 1)
    size = m.adder("size", Adder("auto", len(word)), flipped, lowest)
    size = [*size, sign]
    *size, sign = _held(m, "size_r", size, take) if take else m.register("size_r", size)
    if block.encoding == "serial_sign_magnitude":
        return [{"one": bit, "neg": sign} for bit in size]
    if len(size) % 2:
        size.append(ZERO)
    digits, carry = [], ZERO
    for i in range(0, len(size), 2):
        digit = _lines(m, f"e{i}", ("one", "two", "neg"))
        up = m.wire(f"up_{i}", 1)[0]
        m.cell(
            "ent_digit",
            sign=sign,
            high=size[i + 1],
            low=size[i],
            carry=carry,
            carry_out=up,
            **digit,
        )
        digits.append(digit)
        carry = up
    return digits


def _csd(m: Module, word: list[str]) -> list[Digit]:
    nonzero = m.wire("nonzero", len(word))
    ups = [ZERO, *m.wire("up", len(word))]
    above = [*word[1:], word[-1]]
    for i, bit in enumerate(word):
        m.cell(
            "csd_bit",
            next=above[i],
            bit=bit,
            carry=ups[i],
            carry_out=ups[i + 1],
            nonzero=nonzero[i],
        )
    digits = []
    for i in range(0, len(word), 2):
        digit = _lines(m, f"e{i}", ("one", "two", "neg"))
        pair = i + 1 < len(word)
        m.cell(
            "csd_digit",
            high_nonzero=nonzero[i + 1] if pair else ZERO,
            high_negative=above[i + 1] if pair else ZERO,
            low_nonzero=nonzero[i],
            low_negative=above[i],
            **digit,
        )
        digits.append(digit)
    return digits


def _lines(m: Module, tag: str, names: tuple[str, ...]) -> Digit:
    return {name: m.wire(f"{tag}_{name}", 1)[0] for name in names}


def _pipelined(
    m: Module, name: str, form: Adder, most: int, a: list[str], b: list[str]
) -> list[str]:
    """A sum of two words, segment after segment; every register counted with the block."""
    parts, chain = segments(form.width, most), segment_adders(form.form, form.width, most)
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
