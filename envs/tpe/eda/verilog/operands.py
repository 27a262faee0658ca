"""Verilog of the first stage of a PE: operand registers, encoders, finders of digits."""

from __future__ import annotations

from archgym.envs.tpe.eda.verilog.builder import ZERO, Module
from archgym.envs.tpe.microarchitecture import datapath
from archgym.envs.tpe.microarchitecture.pe import PE

__all__ = ["Digit", "OperandStage", "register_digit", "windows"]

#: Bits of a digit by name.
Digit = dict[str, str]


class OperandStage:
    """Ports and registers of the operands of a PE, and the digits of A.

    Args:
        pe: the processing element.
        module: where its lines go.
    """

    def __init__(self, pe: PE, module: Module) -> None:
        self._pe = pe
        self._m = module

    def build(self) -> tuple[list[list[Digit]], list[list[str]], list[list[str]]]:
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
        stored = datapath.finds_digits(self._pe) or "encode" in self._pe.cuts
        kind = "stored_encoder" if stored else "booth_encoder"
        self._m.cell(kind, high=high, mid=mid, low=low, **digit)
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
            digits.append([register_digit(m, f"digit_{p}", found)])
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


def register_digit(module: Module, name: str, digit: Digit) -> Digit:
    """A register of a digit's bits."""
    return dict(zip(digit, module.register(name, list(digit.values())), strict=True))


def windows(word: list[str]) -> list[tuple[str, str, str]]:
    """The windows of three bits, lowest first, from which radix-4 digits are made."""
    padded = [ZERO, *word] + ([word[-1]] if len(word) % 2 else [])
    return [(padded[i], padded[i + 1], padded[i + 2]) for i in range(0, len(padded) - 2, 2)]
