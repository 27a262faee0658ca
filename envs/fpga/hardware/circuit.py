"""Building a circuit: its Verilog, what it is made of, and its paths between registers.

One builder writes the Verilog and counts the parts, as synthesis leaves them. Every result of an
adder is marked ``keep``: synthesis then maps each one to a carry chain, rather than merging
additions into trees of full adders, which take twice the LUTs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from archgym.envs.fpga.hardware.path import NO_PATH, Path, longer, longest, summed

__all__ = [
    "LUT_INPUTS",
    "ONE",
    "ZERO",
    "Bits",
    "Circuit",
    "Value",
    "bits_in",
    "bits_of",
    "joined",
]

LUT_INPUTS, _WIDEST = 4, 3
"""Inputs of a LUT, and how many more a function of LUTs and multiplexers has at most."""
_SHORT, _TINY = 4, 2
"""Bits up to which an ECP5 makes a sum of LUTs alone, and an iCE40 does."""


def bits_of(low: int, high: int) -> int:
    """Bits of a number in a range: two's complement if it may be negative."""
    if low >= 0:
        return max(1, high.bit_length())
    return 1 + max((-low - 1).bit_length(), max(high, 0).bit_length())


Bits = tuple[str, ...]
"""Bits of a number, the lowest first: each a bit of a wire, or ``1'b0`` or ``1'b1``."""
ZERO, ONE = "1'b0", "1'b1"


@dataclass(frozen=True)
class Value:
    """A number in a circuit.

    Attributes:
        bits: as many as its range needs, but for ``shift`` zeros below them.
        low, high: range of the number that the bits stand for; signed if ``low`` is below 0.
        shift: the number counts that power of two.
        path: from registers to it.
    """

    bits: Bits
    low: int
    high: int
    shift: int = 0
    path: Path = NO_PATH

    @classmethod
    def constant(cls, number: int) -> Value:
        """A number that does not change."""
        return cls(_digits(number, bits_of(number, number)), number, number)

    @property
    def width(self) -> int:
        """How many bits it has."""
        return len(self.bits)

    def extended(self, width: int, drop: int = 0) -> Bits:
        """Its number in other bits, ``drop`` of the lowest left out."""
        filling = self.bits[-1] if self.low < 0 else ZERO
        return (*self.bits[drop : drop + width], *[filling] * (width - max(0, self.width - drop)))

    def later(self, **parts: float) -> Value:
        """The same with a longer path."""
        path = longer(self.path, **parts)
        return Value(self.bits, self.low, self.high, self.shift, path)

    def shifted(self, shift: int) -> Value:
        """The same bits, counting another power of two."""
        return Value(self.bits, self.low, self.high, shift, self.path)


def _digits(number: int, width: int) -> Bits:
    return tuple(ONE if number >> bit & 1 else ZERO for bit in range(width))


def bits_in(name: str, low: int, count: int) -> Bits:
    """Some bits of a wire."""
    return tuple(f"{name}[{bit}]" for bit in range(low, low + count))


def joined(bits: Bits) -> str:
    """Verilog for bits, the lowest first."""
    runs: list[tuple[str, int, int]] = []
    for bit in bits:
        name, _, place = bit.rstrip("]").partition("[")
        index = int(place) if place else -1
        if runs and place and runs[-1][0] == name and runs[-1][2] + 1 == index:
            runs[-1] = (name, runs[-1][1], index)
        else:
            runs.append((name, index, index))
    texts = [
        name if low < 0 else f"{name}[{low}]" if low == high else f"{name}[{high}:{low}]"
        for name, low, high in reversed(runs)
    ]
    return texts[0] if len(texts) == 1 else f"{{{', '.join(texts)}}}"


class Circuit:
    """A module that grows line by line.

    Args:
        writes: whether the Verilog is written; else parts and paths are only counted.

    Attributes:
        lines: of Verilog.
        parts: how many there are of each: ``ff``, ``dsp``, and of what takes LUTs:
            :data:`archgym.envs.fpga.model.prediction.LUT_PARTS`.
        paths: between registers, each once.
        roms: the memories: words and width of each.
    """

    def __init__(self, *, writes: bool = True) -> None:
        self.writes = writes
        self.lines: list[str] = []
        self.parts: Counter[str] = Counter()
        self.paths: set[Path] = set()
        self.roms: list[tuple[int, int]] = []
        self._names: Counter[str] = Counter()
        self._later: dict[str, str] = {}
        self._inverted: set[str] = set()
        self._sums: dict[tuple[str, tuple[Bits, ...]], str] = {}
        self._adders: dict[tuple[str, tuple[Bits, ...]], Bits] = {}
        self._widths: dict[tuple[str, tuple[Bits, ...]], int] = {}
        self._equal: dict[str, str] = {}
        self._kept: dict[str, str] = {}
        self._inputs: dict[str, frozenset[str]] = {}

    def name(self, stem: str) -> str:
        """A name that is not used yet."""
        self._names[stem] += 1
        return f"{stem}_{self._names[stem]}"

    def joined(self, bits: Bits) -> str:
        """Verilog for bits, the lowest first; empty if none is written."""
        return joined(bits) if self.writes else ""

    def write(self, *lines: str) -> None:
        """Adds lines."""
        if self.writes:
            self.lines += lines

    def wire(self, width: int, expression: str, stem: str, *, keep: bool = False) -> str:
        """A new wire; its name."""
        name = self.name(stem)
        mark = "(* keep *) " if keep else ""
        if self.writes:
            self.lines.append(f"{mark}wire [{width - 1}:0] {name} = {expression};")
        return name

    def register(
        self, width: int, statement: str, stem: str, path: Path = NO_PATH, *, count: bool = True
    ) -> str:
        """A new register; its name.

        Args:
            width: its bits.
            statement: what happens at the clock, with ``$`` for its name.
            stem: of its name.
            path: to it.
            count: whether each bit is a flip-flop, which is not so if block RAM has it.
        """
        name = self.name(stem)
        mark = "(* keep *) " if count else ""
        if self.writes:
            self.lines.append(f"{mark}reg [{width - 1}:0] {name};")
            self.lines.append(f"always @(posedge clk) {statement.replace('$', name)}")
        if count:
            self.parts["ff"] += width
        self.end(path)
        return name

    def end(self, path: Path) -> None:
        """A path ends at a register."""
        self.paths.add(path)

    def registered(self, value: Value) -> Value:
        """A value one clock later; a bit that is registered already is not registered again."""
        new = tuple(
            dict.fromkeys(b for b in value.bits if b not in self._later and b not in (ZERO, ONE))
        )
        if new:
            name = self.register(len(new), f"$ <= {self.joined(new)};", "r")
            made = bits_in(name, 0, len(new))
            self._later.update(zip(new, made, strict=True))
            self._keep(self.known(new), made)
        self.end(value.path)
        bits = tuple(self._later.get(bit, bit) for bit in value.bits)
        return Value(bits, value.low, value.high, value.shift)

    def equate(self, bits: Bits, others: Bits) -> None:
        """Synthesis finds that bits equal others, constants for example, and makes no more of them.

        The Verilog stays as it is: what follows from these bits is counted as synthesis leaves it.
        """
        for bit, other in zip(bits, self.known(others), strict=True):
            if bit != other:
                self._equal[bit] = other

    def known(self, bits: Bits) -> Bits:
        """What the bits equal, as far as synthesis finds out."""
        return tuple(self._equal.get(bit, bit) for bit in bits) if self._equal else bits

    def merge(self, bits: Bits, made: Bits) -> int:
        """Bits of one register of equal bits are made once, and none of constants; how many less.

        A sum that is extended by its sign has such bits.
        """
        first: dict[str, str] = {ZERO: ZERO, ONE: ONE}
        before = self.parts["ff"]
        for bit, register in zip(self.known(bits), made, strict=True):
            if first.setdefault(bit, register) != register:
                self.equate((register,), (first[bit],))
                self.parts["ff"] -= 1
        return before - self.parts["ff"]

    def _keep(self, bits: Bits, made: Bits) -> None:
        """Registers of constants, and of bits that have one, are taken out by synthesis."""
        for bit, register in zip(bits, made, strict=True):
            if bit in (ZERO, ONE) or bit in self._kept:
                self.equate((register,), (self._kept.get(bit, bit),))
                self.parts["ff"] -= 1
            else:
                self._kept[bit] = register

    def sum(
        self,
        a: Value,
        b: Value,
        operation: Literal["+", "-"] = "+",
        within: tuple[int, int] | None = None,
    ) -> Value:
        """Sum or difference of two values, by a carry chain.

        Args:
            a: the first value.
            b: the second one.
            operation: ``+`` or ``-``.
            within: range of the result, if it is known to be smaller than that of the operands
                says; at the smaller shift of the two.
        """
        if operation == "+" and b.shift < a.shift:
            a, b = b, a
        shift = min(a.shift, b.shift)
        up_a, up_b = a.shift - shift, b.shift - shift
        low_b, high_b = (b.low, b.high) if operation == "+" else (-b.high, -b.low)
        low, high = (a.low << up_a) + (low_b << up_b), (a.high << up_a) + (high_b << up_b)
        if within is not None:
            low, high = max(low, within[0]), min(high, within[1])
        width = bits_of(low, high)
        path = longest(a.path, b.path)
        drop = up_b  # bits of a below the lowest of b pass by; 0 if b has the smaller shift
        passing = a.extended(drop)
        core = width - drop
        if operation == "+" and a.low >= 0 and drop >= a.width:
            return Value((*passing, *b.extended(core)), low, high, shift, path)
        left = ((ZERO,) * up_a + a.extended(core - up_a)) if up_a else a.extended(core, drop)
        added, carried = self._added(left, b.extended(core), operation)
        of_luts = any(bit in self._inputs for bit in b.bits)  # these make the inverse at once
        if operation == "-" and carried > _TINY and not of_luts:
            path = longest(a.path, longer(b.path, inversions=1))
        return Value((*passing, *added), low, high, shift, summed(path, carried))

    def plus_constant(self, value: Value, constant: int, within: tuple[int, int]) -> Value:
        """A value of shift 0 and a constant; ``within`` is the range of the result."""
        low, high = max(value.low + constant, within[0]), min(value.high + constant, within[1])
        width = bits_of(low, high)
        if not constant:
            return Value(value.extended(width), low, high, 0, value.path)
        drop = min((constant & -constant).bit_length() - 1, width - 1)
        core = width - drop
        literal = _digits((constant >> drop) % (1 << core), core)
        added, carried = self._added(value.extended(core, drop), literal, "+", constant=True)
        path = summed(value.path, carried)
        return Value((*value.extended(drop), *added), low, high, 0, path)

    def _added(
        self, left: Bits, right: Bits, operation: str, *, constant: bool = False
    ) -> tuple[Bits, int]:
        """The bits of an adder, and how many it has; one with the same operands is made once."""
        operands = tuple(sorted((left, right))) if operation == "+" else (left, right)
        key = (operation, operands)
        if key not in self._sums:
            text = f"{self.joined(left)} {operation} {self.joined(right)}"
            self._sums[key] = name = self.wire(len(left), text, "s", keep=True)
            bits = bits_in(name, 0, len(left))
            kind = "constant_bits" if constant else "adder_bits"
            self._widths[key] = self._carried(bits, left, right, operation, kind)
        return bits_in(self._sums[key], 0, len(left)), self._widths[key]

    def _carried(self, made: Bits, left: Bits, right: Bits, operation: str, kind: str) -> int:
        """Counts a new adder; how many bits synthesis leaves of it: none if it adds 0."""
        left, right = self.known(left), self.known(right)
        zeros = (ZERO,) * len(left)
        if right == zeros or (operation == "+" and left == zeros):
            self.equate(made, left if right == zeros else right)
            return 0
        operands = tuple(sorted((left, right))) if operation == "+" else (left, right)
        if (operation, operands) in self._adders:
            same = self._adders[operation, operands]
            self.equate(made, same)
            return len(same)
        self._adders[operation, operands] = made
        passing = 0
        for bit, a, b in zip(made, left, right, strict=True):
            if b != ZERO and (operation == "-" or a != ZERO):
                break
            self.equate((bit,), (a if b == ZERO else b,))
            passing += 1
        core = len(left) - passing
        if core and left[passing] == ZERO:  # all lowest bits of 0 - b are one, though not b itself
            self.equate((made[passing],), (f"-{right[passing]}",))
        self._count(core, kind)
        if core <= _SHORT:
            self._wide(made[passing:], left[passing:], right[passing:])
        if operation == "-" and core > _TINY:
            new = set(right) - self._inverted - {ZERO, ONE}
            self._inverted |= new
            self.parts["inverted_bits"] += len(new)
        return core

    def depends(self, bits: Bits, *operands: Bits) -> None:
        """Bits are functions of those at the same place of operands, by LUTs."""
        for place, bit in enumerate(bits):
            self._inputs[bit] = self._inputs_of(*(one[place] for one in operands))

    def _inputs_of(self, *bits: str) -> frozenset[str]:
        """The registers and carry chains that bits are functions of."""
        found = (self._inputs.get(bit, frozenset((bit,))) for bit in self.known(bits))
        return frozenset[str]().union(*found) - {ZERO, ONE}

    def _wide(self, made: Bits, left: Bits, right: Bits) -> None:
        """Counts what a sum of LUTs takes where a bit depends on more inputs than one has."""
        inputs = frozenset[str]()
        for bit, a, b in zip(made, left, right, strict=True):
            inputs |= self._inputs_of(a, b)
            self._inputs[bit] = inputs
            self.widened(len(inputs), beyond=1)

    def widened(self, inputs: int, *, beyond: int) -> bool:
        """Counts what a function takes more than one LUT; whether an ECP5 has it as one.

        An ECP5 makes a function of up to seven inputs of LUTs and multiplexers behind them:
        2, 4 or 8 LUTs.

        Args:
            inputs: of the function.
            beyond: LUTs more than one of a function of more inputs.
        """
        more = max(0, inputs - LUT_INPUTS)
        self.parts["wide_luts"] += 2**more - 1 if more <= _WIDEST else beyond
        return more <= _WIDEST

    def _count(self, width: int, kind: str) -> None:
        """Counts the bits of an adder."""
        if width > _SHORT:
            self.parts[kind] += width
            self.parts["odd_chains"] += width % 2
        else:
            self.parts["tiny_bits" if width <= _TINY else "short_bits"] += width
