"""Building a circuit: its Verilog, what it is made of, and its paths between registers.

One builder writes the Verilog and counts the parts, so that they cannot differ. Every result of an
adder is marked ``keep``: synthesis then maps each one to a carry chain, rather than merging
additions into trees of full adders, which take twice the LUTs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from operator import mul
from typing import Literal

__all__ = [
    "NO_PATH",
    "ONE",
    "PATH_PARTS",
    "ZERO",
    "Bits",
    "Circuit",
    "Path",
    "Value",
    "bits_in",
    "bits_of",
    "joined",
    "longer",
    "longest",
]

Path = tuple[float, float, float, float, float, float, float, float]
PATH_PARTS = (
    "memories",
    "luts",
    "chains",
    "chain_bits",
    "dsps",
    "fan_out",
    "selects",
    "short_sums",
)
"""Parts of a path: reads of block RAM, LUTs, carry chains, bits of them, DSPs, doublings of the
fan-out on the way, selections between two LUTs by an address bit,
and sums of few bits, which an ECP5 makes of LUTs rather than a carry chain."""
_SHORT = 4
"""Bits up to which a sum is one of few bits."""
_NOMINAL: Path = (1.5, 1.2, 1.2, 0.13, 4.5, 0.25, 0.4, 1.3)
"""Delays in ns that say which of two paths is longer while a circuit is built."""
NO_PATH: Path = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
"""Of a value that is in a register."""


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


def longer(
    path: Path,
    *,
    memories: float = 0,
    luts: float = 0,
    chains: float = 0,
    chain_bits: float = 0,
    dsps: float = 0,
    fan_out: float = 0,
    selects: float = 0,
    short_sums: float = 0,
) -> Path:
    """A path with more on its way."""
    m, lut, c, b, d, f, s, short = path
    after = (d + dsps, f + fan_out, s + selects, short + short_sums)
    return (m + memories, lut + luts, c + chains, b + chain_bits, *after)


def _summed(path: Path, width: int) -> Path:
    """A path that goes on through a sum."""
    if width <= _SHORT:
        return longer(path, short_sums=1)
    return longer(path, chains=1, chain_bits=width)


def longest(one: Path, other: Path) -> Path:
    """The path that takes longer with nominal delays."""
    return one if one is other or _nominal(one) >= _nominal(other) else other


def _nominal(path: Path) -> float:
    return float(sum(map(mul, _NOMINAL, path)))


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
            self._later.update(zip(new, bits_in(name, 0, len(new)), strict=True))
        self.end(value.path)
        bits = tuple(self._later.get(bit, bit) for bit in value.bits)
        return Value(bits, value.low, value.high, value.shift)

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
        added = self._added(left, b.extended(core), operation)
        path = _summed(path, core)
        return Value((*passing, *added), low, high, shift, path)

    def plus_constant(self, value: Value, constant: int, within: tuple[int, int]) -> Value:
        """A value of shift 0 and a constant; ``within`` is the range of the result."""
        low, high = max(value.low + constant, within[0]), min(value.high + constant, within[1])
        width = bits_of(low, high)
        if not constant:
            return Value(value.extended(width), low, high, 0, value.path)
        drop = min((constant & -constant).bit_length() - 1, width - 1)
        core = width - drop
        literal = _digits((constant >> drop) % (1 << core), core)
        added = self._added(value.extended(core, drop), literal, "+", constant=True)
        path = _summed(value.path, core)
        return Value((*value.extended(drop), *added), low, high, 0, path)

    def _added(self, left: Bits, right: Bits, operation: str, *, constant: bool = False) -> Bits:
        """The bits of an adder; one with the same operands is made once."""
        operands = tuple(sorted((left, right))) if operation == "+" else (left, right)
        key = (operation, operands)
        if key not in self._sums:
            core = len(left)
            text = f"{self.joined(left)} {operation} {self.joined(right)}"
            self._sums[key] = self.wire(core, text, "s", keep=True)
            kind = "constant_bits" if constant else "adder_bits"
            self.parts["short_bits" if core <= _SHORT else kind] += core
            if operation == "-":
                new = set(right) - self._inverted - {ZERO, ONE}
                self._inverted |= new
                self.parts["inverted_bits"] += len(new)
        return bits_in(self._sums[key], 0, len(left))
