"""Verilog of a processing element.

Ports, lowest index first and operand pair after operand pair: `a` (operands, or what is known of
them at one bit weight) or `digits` (code of each digit: `one`, then `two` in radix 4, then `neg`),
`b`, `weight` (index of the digit, where the PE shifts it or picks it), `top` (whether the digits
are those of the sign bit), and outputs `result` (all accumulated words, heap after heap, sum before
carry), `position` and `done` where the PE looks for non-zero digits.
"""

from __future__ import annotations

from functools import lru_cache

from archgym.envs.tpe.eda.verilog.builder import ZERO, Module, Verilog
from archgym.envs.tpe.eda.verilog.operands import Digit, OperandStage, register_digit
from archgym.envs.tpe.microarchitecture import datapath
from archgym.envs.tpe.microarchitecture.pe import PE

__all__ = ["pe_verilog"]


@lru_cache(maxsize=1024)
def pe_verilog(pe: PE, name: str = "pe") -> Verilog:
    """Verilog-2005 of a PE's own hardware."""
    return _Element(pe.hardware(), name).build()


class _Element:
    def __init__(self, pe: PE, name: str) -> None:
        self._pe = pe
        self._m = Module(name)

    def build(self) -> Verilog:
        pe, m = self._pe, self._m
        digits, b, weights = OperandStage(pe, m).build()
        if "encode" in pe.cuts and not datapath.finds_digits(pe):
            digits = [
                [register_digit(m, f"digit_{w}_{p}", digit) for w, digit in enumerate(of_pair)]
                for p, of_pair in enumerate(digits)
            ]
            b = [m.register(f"b2_{p}", bits) for p, bits in enumerate(b)]
            if datapath.shift_levels(pe):
                weights = [m.register(f"weight2_{p}", bits) for p, bits in enumerate(weights)]
        results: list[str] = []
        for index in range(pe.accumulators):
            self._partial_products(index, digits, b, weights)
            results += self._accumulate(index)
        m.output("result", results)
        return m.finish()

    def _partial_products(
        self, heap: int, digits: list[list[Digit]], b: list[list[str]], weights: list[list[str]]
    ) -> None:
        """Drives `pp_<weight>_<pair>` and `neg_<weight>_<pair>` of one heap."""
        pe, m = self._pe, self._m
        for row in datapath.rows(pe, heap):
            digit = digits[row.pair][0 if pe.temporal else row.weight]
            tag = f"{row.weight}_{row.pair}"
            bits = self._selected(tag, row.weight, digit, b[row.pair])
            neg = digit.get("neg", "")
            if weights:
                index = weights[row.pair if len(weights) > 1 else 0]
                bits = self._shifted(tag, bits, neg, index, row.length)
            if "select" in pe.cuts:
                # Registered before signs are inverted, so that registers of zeros are a zero.
                bits = m.register(f"pp_{tag}_r", bits)
                neg = m.register(f"neg_{tag}_r", [neg])[0] if row.negation else neg
            if pe.encoding != "radix2" or row.weight < pe.digits - 1:
                bits = [*bits[:-1], f"~{bits[-1]}"]
            else:
                bits = [*(f"~{bit}" for bit in bits[:-1]), bits[-1]]
            m.wire(f"pp_{tag}", len(bits))
            m.assign(f"pp_{tag}", bits)
            if row.negation:
                m.wire(f"neg_{tag}", 1)
                m.assign(f"neg_{tag}", [neg])

    def _selected(self, tag: str, weight: int, digit: Digit, b: list[str]) -> list[str]:
        """The multiple of B that a digit selects, complemented if negative, sign not inverted."""
        pe, m = self._pe, self._m
        out = m.wire(f"sel_{tag}", pe.partial_product_width)
        for j, bit in enumerate(out):
            own = b[min(j, pe.width_b - 1)]
            if pe.encoding == "radix2":
                m.cell("and_bit", a=digit["one"], b=own, p=bit)
            elif pe.radix_bits == 1:
                m.cell("sign_bit", neg=digit["neg"], one=digit["one"], b=own, p=bit)
            else:
                below = b[j - 1] if j else ZERO
                m.cell("select_bit", **digit, b=own, b_below=below, p=bit)
        return out

    def _shifted(
        self, tag: str, bits: list[str], fill: str, index: list[str], length: int
    ) -> list[str]:
        """The partial product moved up by its weight; what moves in completes the negation."""
        pe, m = self._pe, self._m
        for level in range(datapath.shift_levels(pe)):
            step = pe.radix_bits << level
            width = min(len(bits) + step, length)
            out = m.wire(f"shift_{tag}_{level}", width)
            for j, bit in enumerate(out):
                stays = bits[min(j, len(bits) - 1)]
                moved = bits[min(j - step, len(bits) - 1)] if j >= step else fill
                m.cell("mux_bit", choose=index[level], one=moved, zero=stays, out=bit)
            bits = out
        return bits

    def _accumulate(self, index: int) -> list[str]:
        """Tree, adders and accumulator of one heap; the accumulated words."""
        pe, m = self._pe, self._m
        heap = datapath.heaps(pe)[index]
        # Fed-back words are declared before the tree that uses them; registers follow it.
        tree = f"t{index}"
        reduction = heap.reduce(pe.compressor, tree)
        next_words = [m.wire(f"{word.name}_next", heap.width) for word in heap.feedback]
        if pe.accumulator == "carry_save":
            kept = [
                [bit if bits[i] else "" for i, bit in enumerate(word)]
                for word, bits in zip(next_words, (reduction.sum, reduction.carry), strict=True)
            ]
            words = [
                m.register(segment.name, word)
                for segment, word in zip(heap.feedback, kept, strict=True)
            ]
            m.compressors(reduction)
            for segment, bits in zip(heap.feedback, (reduction.sum, reduction.carry), strict=True):
                m.assign(f"{segment.name}_next", [bit or ZERO for bit in bits])
            return [bit for word in words for bit in word]
        if pe.accumulator == "merged":
            word = m.register(heap.feedback[0].name, next_words[0])
            m.compressors(reduction)
            (adder,) = datapath.adders(pe)
            total = m.adder("total", adder, reduction.sum, reduction.carry)
            m.assign(f"{heap.feedback[0].name}_next", total)
            return word
        m.compressors(reduction)
        return self._separate(list(reduction.sum), list(reduction.carry))

    def _separate(self, total: list[str], carry: list[str]) -> list[str]:
        """Product adder, then accumulate adder."""
        pe, m = self._pe, self._m
        product_adder, sum_adder = datapath.adders(pe)
        if "reduce" in pe.cuts:
            total, carry = (
                self._register_row(name, bits)
                for name, bits in (("product_sum", total), ("product_carry", carry))
            )
        product = m.adder("product", product_adder, total, carry)
        if "add" in pe.cuts:
            product = m.register("product_r", product)
        product = product + [product[-1]] * sum_adder.sign_fanout
        next_bits = m.wire("accumulated_next", pe.accumulator_width)
        word = m.register("accumulated", next_bits)
        m.assign("accumulated_next", m.adder("total", sum_adder, word, product))
        return word

    def _register_row(self, name: str, bits: list[str]) -> list[str]:
        """A register of the bits that are not constant."""
        word = self._m.register(name, [bit if _exists(bit) else "" for bit in bits])
        return [new if _exists(old) else (old or ZERO) for new, old in zip(word, bits, strict=True)]


def _exists(bit: str) -> bool:
    """Whether a bit of a reduced row is neither absent nor constant."""
    return bool(bit) and not bit.startswith("1'b")
