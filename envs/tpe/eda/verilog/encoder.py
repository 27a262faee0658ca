"""Verilog of the encoders at the edge: operands in, digits out, all at once or one by one."""

from __future__ import annotations

from archgym.envs.tpe.eda.verilog.builder import ZERO, Module
from archgym.envs.tpe.eda.verilog.operands import Digit, windows
from archgym.envs.tpe.microarchitecture.datapath import Adder
from archgym.envs.tpe.microarchitecture.edge import OperandEncoder
from archgym.envs.tpe.microarchitecture.encodings import digit_count

__all__ = ["operand_encoder"]

_ONE = "1'b1"


def operand_encoder(m: Module, block: OperandEncoder) -> None:
    """Writes an encoder: operand in, digits out, registered; see `edge.edge_verilog` for ports."""
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
    """A register that takes new bits when it is enabled."""
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
    """The non-zero digits, lowest bit weight first, with their positions."""
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
    """All digits of an operand; encodings of |A| register it first (when enabled, if serial)."""
    if block.encoding == "booth":
        digits = []
        for i, (low, mid, high) in enumerate(windows(word)):
            digit = _lines(m, f"e{i}", ("one", "two", "neg"))
            m.cell("stored_encoder", high=high, mid=mid, low=low, **digit)
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
