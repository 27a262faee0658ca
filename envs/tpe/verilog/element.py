"""Verilog of a processing element.

Ports, lowest index first and operand pair after operand pair: `a` (operands, or what is known of
them at one bit weight) or `digits` (code of each digit: `one`, then `two` in radix 4, then `neg`),
`b`, `weight` (index of the digit, where the PE shifts it or picks it), `top` (whether the digits
are those of the sign bit), and outputs `result` (all accumulated words, heap after heap, sum before
carry), `position` and `done` where the PE looks for non-zero digits.
"""

from __future__ import annotations

from functools import lru_cache

from archgym.envs.tpe import datapath
from archgym.envs.tpe.pe import PE
from archgym.envs.tpe.verilog.module import ZERO, Module, Verilog

__all__ = ["pe_verilog"]

#: Bits of a digit by name.
Digit = dict[str, str]


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
        digits, b, weights = self._operands()
        if "encode" in pe.cuts and not datapath.finds_digits(pe):
            digits = [
                [self._register_digit(f"digit_{w}_{p}", digit) for w, digit in enumerate(of_pair)]
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

    def _operands(self) -> tuple[list[list[Digit]], list[list[str]], list[list[str]]]:
        """Digits (pair after pair), words of B, and the weight index of each pair."""
        pe, m = self._pe, self._m
        pairs = range(pe.operand_pairs)
        bits = (pe.digits - 1).bit_length()
        shifts = bool(datapath.shift_levels(pe))
        if datapath.finds_digits(pe):
            return self._sparse()
        ports = m.input("b", pe.width_b * pe.operand_pairs)
        b = [m.register(f"b_{p}", ports[p * pe.width_b : (p + 1) * pe.width_b]) for p in pairs]
        if pe.has_encoder or pe.encoding == "radix2":
            ports = m.input("a", pe.width_a * pe.operand_pairs)
            a = [m.register(f"a_{p}", ports[p * pe.width_a : (p + 1) * pe.width_a]) for p in pairs]
            if pe.encoding == "radix2":
                return [[{"one": bit} for bit in word] for word in a], b, []
            if not pe.temporal:
                return (
                    [
                        [self._booth(f"{w}_{p}", window) for w, window in enumerate(windows(word))]
                        for p, word in enumerate(a)
                    ],
                    b,
                    [],
                )
            weight = m.register("weight_r", m.input("weight", bits))
            return [[self._dense(p, word, weight)] for p, word in enumerate(a)], b, [weight]
        names = ("one", "two", "neg") if pe.radix_bits == 2 else ("one", "neg")
        per_pair = 1 if pe.temporal else pe.digits
        ports = m.input("digits", len(names) * per_pair * pe.operand_pairs)
        word = m.register("digits_r", ports)
        codes = [
            dict(zip(names, word[i : i + len(names)], strict=True))
            for i in range(0, len(word), len(names))
        ]
        digits = [codes[p * per_pair : (p + 1) * per_pair] for p in pairs]
        weights: list[list[str]] = []
        if shifts:
            ports = m.input("weight", bits * pe.operand_pairs)
            weights = [m.register(f"weight_{p}", ports[p * bits : (p + 1) * bits]) for p in pairs]
        return digits, b, weights

    def _booth(self, tag: str, window: tuple[str, str, str]) -> Digit:
        """The radix-4 digit of a window of three bits, lowest first."""
        low, mid, high = window
        digit = {pin: self._m.wire(f"e_{pin}_{tag}", 1)[0] for pin in ("one", "two", "neg")}
        self._m.cell("booth_encoder", high=high, mid=mid, low=low, **digit)
        return digit

    def _dense(self, pair: int, word: list[str], weight: list[str]) -> Digit:
        """The digit of an operand at the weight index."""
        pe = self._pe
        if pe.encoding == "booth":
            rows = [list(window) for window in windows(word)]
            low, mid, high = (
                self._choose(f"w_{pair}_{k}", [row[k] for row in rows], weight) for k in range(3)
            )
            return self._booth(f"d_{pair}", (low, mid, high))
        bit = self._choose(f"w_{pair}", word, weight)
        top = self._m.expression(f"top_{pair}", 1, f"&{{{', '.join(weight)}}}")[0]
        if pe.digits & (pe.digits - 1):
            top = self._m.expression(
                f"is_top_{pair}", 1, f"{{{', '.join(reversed(weight))}}} == {pe.digits - 1}"
            )[0]
        return self._serial(f"{pair}", bit, top)

    def _serial(self, tag: str, bit: str, top: str) -> Digit:
        digit = {pin: self._m.wire(f"e_{pin}_{tag}", 1)[0] for pin in ("one", "neg")}
        self._m.cell("serial_encoder", bit=bit, top=top, **digit)
        return digit

    def _choose(self, name: str, options: list[str], index: list[str]) -> str:
        """One of several bits, by a binary index: a tree of multiplexers."""
        level = 0
        while len(options) > 1:
            made = self._m.wire(f"{name}_{level}", len(options) // 2)
            for k, out in enumerate(made):
                self._m.cell(
                    "mux_bit",
                    choose=index[level],
                    one=options[2 * k + 1],
                    zero=options[2 * k],
                    out=out,
                )
            options = made + options[2 * len(made) :]
            level += 1
        return options[0]

    def _hold(self, name: str, take: str, port: list[str]) -> list[str]:
        """A register that takes its port or keeps what it has."""
        m = self._m
        next_bits = m.wire(f"{name}_next", len(port))
        word = m.register(name, next_bits)
        for bit, new, old in zip(next_bits, port, word, strict=True):
            m.cell("mux_bit", choose=take, one=new, zero=old, out=bit)
        return word

    def _sparse(self) -> tuple[list[list[Digit]], list[list[str]], list[list[str]]]:
        """Every pair works off the non-zero digits of its window, one in a cycle."""
        pe, m = self._pe, self._m
        n, size = pe.digits, datapath.sparse_window_bits(pe)
        a_port = m.input("a", size * pe.operand_pairs)
        b_port = m.input("b", pe.width_b * pe.operand_pairs)
        serial = pe.encoding != "booth"
        top = m.register("top_r", m.input("top", 1))[0] if serial and pe.shift_hoisted else ""
        digits: list[list[Digit]] = []
        b: list[list[str]] = []
        weights: list[list[str]] = []
        positions: list[str] = []
        done_bits: list[str] = []
        for p in range(pe.operand_pairs):
            done = m.wire(f"done_{p}", 1)[0]
            found, first = self._next_digit(p, a_port[p * size : (p + 1) * size], done)
            port = b_port[p * pe.width_b : (p + 1) * pe.width_b]
            if serial:
                sign = top if pe.shift_hoisted else first[-1]
                found = self._serial(f"{p}", found["one"], sign)
            if pe.shift_hoisted:
                b.append(m.register(f"b_{p}", port))
            else:
                held = self._hold(f"b_hold_{p}", done, port)
                b.append(m.register(f"b_{p}", held))
                index = [
                    m.expression(
                        f"index_{p}_{k}",
                        1,
                        " | ".join(first[i] for i in range(n) if i >> k & 1) or ZERO,
                    )[0]
                    for k in range((n - 1).bit_length())
                ]
                weights.append(m.register(f"weight_{p}", index))
            digits.append([self._register_digit(f"digit_{p}", found)])
            positions += first
            done_bits.append(done)
        m.output("position", positions)
        m.output("done", done_bits)
        return digits, b, weights

    def _next_digit(self, p: int, port: list[str], done: str) -> tuple[Digit, list[str]]:
        """The lowest digit of the window that is not zero and still waits, and where it is.

        Digits are encoded on their way in, so that no encoder is in the loop that finds the next.
        """
        pe, m = self._pe, self._m
        n = pe.digits
        if pe.encoding != "booth":
            codes = [{"one": bit} for bit in port]
            nonzero = list(port)
        else:
            split = (
                [(port[3 * i], port[3 * i + 1], port[3 * i + 2]) for i in range(n)]
                if pe.shift_hoisted
                else windows(port)
            )
            codes = [self._booth(f"{p}_{i}", window) for i, window in enumerate(split)]
            nonzero = m.wire(f"nonzero_{p}", n)
            m.assign(f"nonzero_{p}", [f"{code['one']} | {code['two']}" for code in codes])
        names = list(codes[0])
        word = self._hold(f"a_{p}", done, [bit for code in codes for bit in code.values()])
        codes = [
            dict(zip(names, word[i * len(names) : (i + 1) * len(names)], strict=True))
            for i in range(n)
        ]
        first, left = m.wire(f"first_{p}", n), m.wire(f"left_{p}", n)
        after = [ZERO, *m.wire(f"after_{p}", n)]
        next_bits = m.wire(f"waits_{p}_next", n)
        waits = m.register(f"waits_{p}", next_bits)
        m.assign(f"done_{p}", [f"~|{{{', '.join(left)}}}"])
        for i in range(n):
            m.cell("mux_bit", choose=done, one=nonzero[i], zero=left[i], out=next_bits[i])
            m.cell(
                "pending_digit",
                waits=waits[i],
                before=after[i],
                first=first[i],
                left=left[i],
                after=after[i + 1],
            )
        found: Digit = {}
        for pin in codes[0]:
            above = ZERO
            outs = m.wire(f"pick_{pin}_{p}", n)
            for i in range(n):
                m.cell("pick_bit", above=above, chosen=first[i], bit=codes[i][pin], out=outs[i])
                above = outs[i]
            found[pin] = above
        return found, first

    def _register_digit(self, name: str, digit: Digit) -> Digit:
        return dict(zip(digit, self._m.register(name, list(digit.values())), strict=True))

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


def windows(word: list[str]) -> list[tuple[str, str, str]]:
    """The windows of three bits, lowest first, from which radix-4 digits are made."""
    padded = [ZERO, *word] + ([word[-1]] if len(word) % 2 else [])
    return [(padded[i], padded[i + 1], padded[i + 2]) for i in range(0, len(padded) - 2, 2)]


def _exists(bit: str) -> bool:
    """Whether a bit of a reduced row is neither absent nor constant."""
    return bool(bit) and not bit.startswith("1'b")
