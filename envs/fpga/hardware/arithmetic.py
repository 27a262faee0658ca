"""Products and sums of products, by carry chains or DSPs."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import Literal

from archgym.envs.fpga.hardware.circuit import ONE, ZERO, Bits, Circuit, Value, bits_in, bits_of
from archgym.envs.fpga.hardware.path import NO_PATH, Path, longer, longest

__all__ = ["ConstantProducts", "Products", "Term", "Weight", "signed_digits", "tree", "tree_levels"]


@dataclass(frozen=True)
class Weight:
    """A weight in a circuit.

    Attributes:
        bits: names of its bits, or ``1'b0`` and ``1'b1``; the lowest first, the last one the sign.
        low, high: its range.
        path: to the bits.
    """

    bits: Bits
    low: int
    high: int
    path: Path

    def trimmed(self) -> tuple[Bits, int]:
        """Its bits without zeros below and copies of the sign above, and how many zeros."""
        bits, zeros = list(self.bits), 0
        while len(bits) > 1 and bits[-1] == bits[-2]:
            bits.pop()
        while bits and bits[0] == ZERO:
            bits.pop(0)
            zeros += 1
        return tuple(bits), zeros


Term = tuple[Value, Literal[1, -1]]
"""A value and its sign in a sum."""


def tree_levels(terms: int) -> int:
    """Levels of a tree that adds up so many terms."""
    return max(0, terms - 1).bit_length()


def tree(
    circuit: Circuit,
    terms: list[Term],
    *,
    levels: int | None = None,
    register_every: int = 0,
    within: tuple[int, int] | None = None,
) -> Term:
    """The sum of terms, two by two.

    Args:
        circuit: that gets the adders.
        terms: at least one.
        levels: of the tree; by default as many as it needs.
        register_every: so many levels have a register after the last of them; 0 for none.
        within: range of the result at the smallest shift.
    """
    for level in range(tree_levels(len(terms)) if levels is None else levels):
        last = len(terms) <= 2
        pairs = [terms[i : i + 2] for i in range(0, len(terms), 2)]
        terms = [
            _pair(circuit, pair[0], pair[1], within if last else None) if pair[1:] else pair[0]
            for pair in pairs
        ]
        if register_every and (level + 1) % register_every == 0:
            terms = [(circuit.registered(value), sign) for value, sign in terms]
    return terms[0]


def _pair(circuit: Circuit, one: Term, other: Term, within: tuple[int, int] | None) -> Term:
    (a, sign_a), (b, sign_b) = one, other
    if sign_a == sign_b:
        bound = within if within is None or sign_a > 0 else (-within[1], -within[0])
        return circuit.sum(a, b, "+", bound), sign_a
    plus, minus = (a, b) if sign_a > 0 else (b, a)
    return circuit.sum(plus, minus, "-", within), 1


class Products:
    """Products of activations with weights that change, each made once.

    In logic, each bit of the weight selects the activation or zero, and carry chains add up.

    Args:
        circuit: that gets the parts.
        least_bits: of a product that is made by a DSP; 0 if none is.
        clocked: whether paths end and begin at a DSP.
        register: whether a product is registered.
    """

    def __init__(self, circuit: Circuit, *, least_bits: int, clocked: bool, register: bool) -> None:
        self._circuit = circuit
        self._least_bits, self._clocked = least_bits, clocked
        self._register = register
        self._rows: dict[tuple[Bits, str], Value] = {}
        self._made: dict[tuple[Bits, Bits], Term] = {}

    def of(self, x: Value, weight: Weight) -> Term | None:
        """The product of an activation and a signed weight; None if it is always 0."""
        bits, zeros = weight.trimmed()
        if not bits:
            return None
        key = (x.bits, bits)
        if key not in self._made:
            ends = [
                x_end * (w >> zeros) for x_end in (x.low, x.high) for w in (weight.low, weight.high)
            ]
            within = (min(ends), max(ends))
            if self._least_bits and len(bits) > 1 and bits_of(*within) >= self._least_bits:
                made = self._multiplied(x, bits, weight.path, within)
            else:
                made = self._added(x, bits, weight.path, within)
            if self._register:
                made = self._circuit.registered(made[0]), made[1]
            self._made[key] = made
        value, sign = self._made[key]
        return value.shifted(value.shift + zeros), sign

    def _multiplied(self, x: Value, bits: Bits, path: Path, within: tuple[int, int]) -> Term:
        circuit, width = self._circuit, bits_of(*within)
        first = circuit.joined(x.bits if x.low < 0 else (*x.bits, ZERO))
        text = f"$signed({first}) * $signed({circuit.joined(bits)})"
        name = circuit.name("p")
        circuit.write(f"(* keep *) wire signed [{width - 1}:0] {name} = {text};")
        circuit.parts["dsp"] += 1
        path = longest(x.path, path)
        if self._clocked:
            circuit.end(path)
            path = NO_PATH
        return Value(bits_in(name, 0, width), *within, 0, longer(path, dsps=1)), 1

    def _added(self, x: Value, bits: Bits, path: Path, within: tuple[int, int]) -> Term:
        rows: list[Term] = []
        top = len(bits) - 1
        for place, bit in enumerate(bits):
            if bit != ZERO:
                row = self._row(x, bit, path).shifted(place)
                rows.append((row, 1 if place < top else -1))
        return tree(self._circuit, rows, within=within)

    def _row(self, x: Value, bit: str, path: Path) -> Value:
        if bit == ONE:
            return x
        key = (x.bits, bit)
        if key not in self._rows:
            circuit = self._circuit
            chosen = f"{circuit.joined(x.bits)} & {{{x.width}{{{bit}}}}}"
            name = circuit.wire(x.width, chosen, "a", keep=True)
            bits, (known,) = bits_in(name, 0, x.width), circuit.known((bit,))
            if known in (ZERO, ONE):
                circuit.equate(bits, x.bits if known == ONE else (ZERO,) * x.width)
                row = Value(bits, x.low, x.high, 0, x.path)
            else:
                circuit.parts["and_bits"] += x.width
                circuit.depends(bits, x.bits, (bit,) * x.width)
                path = longest(x.path, longer(path, fan_out=log2(x.width)))
                row = Value(bits, x.low, x.high, 0, path).later(luts=1)
            self._rows[key] = row
        return self._rows[key]


def signed_digits(number: int) -> list[tuple[int, Literal[1, -1]]]:
    """The canonical signed digits of a positive number: powers of two and their signs."""
    digits: list[tuple[int, Literal[1, -1]]] = []
    power = 0
    while number:
        if number & 1:
            digit: Literal[1, -1] = 1 if number & 3 == 1 else -1
            digits.append((power, digit))
            number -= digit
        number >>= 1
        power += 1
    return digits


class ConstantProducts:
    """Products of activations with constants, each odd multiple made once.

    Args:
        circuit: that gets the adders.
        register: whether a multiple is registered.
    """

    def __init__(self, circuit: Circuit, *, register: bool) -> None:
        self._circuit = circuit
        self._register = register
        self._made: dict[tuple[Bits, int], Value] = {}

    def term(self, x: Value, constant: int) -> Term:
        """The product with a constant other than 0."""
        size = abs(constant)
        zeros = (size & -size).bit_length() - 1
        odd = size >> zeros
        key = (x.bits, odd)
        if key not in self._made:
            terms: list[Term] = [(x.shifted(power), sign) for power, sign in signed_digits(odd)]
            value, _ = tree(self._circuit, terms, within=(x.low * odd, x.high * odd))
            self._made[key] = self._circuit.registered(value) if self._register else value
        made = self._made[key]
        return made.shifted(made.shift + zeros), 1 if constant > 0 else -1
