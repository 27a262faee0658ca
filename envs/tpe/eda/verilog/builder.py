"""Writes the text of one Verilog module: ports, wires, registers, instances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from archgym.envs.tpe.eda.verilog.cells import CELL_PORTS, adder_module, adder_name, cell_modules
from archgym.envs.tpe.microarchitecture.compressors import ONE, Cell, Reduction
from archgym.envs.tpe.microarchitecture.datapath import Adder

__all__ = ["ZERO", "Module", "Port", "Verilog"]

ZERO = "1'b0"


@dataclass(frozen=True)
class Port:
    """A port of a module.

    Attributes:
        name: as in the Verilog text.
        width: bits.
        output: whether it leaves the module.
    """

    name: str
    width: int
    output: bool = False


@dataclass(frozen=True)
class Verilog:
    """Generated Verilog.

    Attributes:
        top: name of the top module; its clock is the port `clk`, rising edge, no reset: registers
            start at zero where the macro ARCHGYM_SIMULATION is defined.
        ports: its other ports.
        text: all modules.
    """

    top: str
    ports: tuple[Port, ...]
    text: str


class Module:
    """Builds one module, statement by statement.

    Args:
        name: of the module.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._ports: list[Port] = []
        self._lines: list[str] = []
        self._kinds: set[str] = set()
        self._adders: dict[str, Adder] = {}
        self._instances = 0
        self._registers = 0

    def input(self, name: str, width: int) -> list[str]:
        """A new input port; its bits, lowest first."""
        self._ports.append(Port(name, width))
        return [f"{name}[{i}]" for i in range(width)]

    def output(self, name: str, bits: Sequence[str]) -> None:
        """A new output port with these bits, lowest first."""
        self._ports.append(Port(name, len(bits), output=True))
        self.assign(name, bits)

    def wire(self, name: str, width: int) -> list[str]:
        """A new word; its bits, lowest first."""
        self._lines.append(f"  wire [{max(width, 1) - 1}:0] {name};")
        return [f"{name}[{i}]" for i in range(width)]

    def assign(self, name: str, bits: Sequence[str]) -> None:
        """Drives a word with bits, lowest first."""
        self._lines.append(f"  assign {name} = {{{', '.join(reversed(bits))}}};")

    def expression(self, name: str, width: int, value: str) -> list[str]:
        """A new word that a Verilog expression drives; its bits, lowest first."""
        bits = self.wire(name, width)
        self._lines.append(f"  assign {name} = {value};")
        return bits

    def register(self, name: str, bits: Sequence[str]) -> list[str]:
        """A new word of flip-flops; "" marks a bit that is no flip-flop but a constant zero.

        Returns:
            The bits of the word, lowest first.
        """
        kept = [bit for bit in bits if bit]
        self._registers += len(kept)
        if kept:
            self._lines.append(f"  reg [{len(kept) - 1}:0] {name}_ff;")
            self._lines.append(f"`ifdef ARCHGYM_SIMULATION\n  initial {name}_ff = 0;\n`endif")
            self._lines.append(
                f"  always @(posedge clk) {name}_ff <= {{{', '.join(reversed(kept))}}};"
            )
        word = self.wire(name, len(bits))
        places = iter(range(len(kept)))
        self.assign(name, [f"{name}_ff[{next(places)}]" if bit else ZERO for bit in bits])
        return word

    def cell(self, kind: str, **pins: str) -> None:
        """An instance of a cell; a pin that is left out, or "", stays open."""
        if unknown := pins.keys() - set(CELL_PORTS[kind]):
            raise KeyError(f"{kind} has no pin {sorted(unknown)}")
        self._kinds.add(kind)
        wired = ", ".join(f".{pin}({net})" for pin, net in pins.items() if net)
        self._lines.append(f"  {kind} u{self._instances}({wired});")
        self._instances += 1

    def compressors(self, reduction: Reduction) -> None:
        """The compressors of a reduced heap."""
        # A net for each bit: simulators such as Icarus Verilog visit all readers of a word
        # whenever one bit of it changes, which takes minutes for a tree of 500 compressors.
        for cell in reduction.cells:
            made = ", ".join(bit for bit in (cell.sum, cell.carry) if bit)
            self._lines.append(f"  wire {made};")
        for cell in reduction.cells:
            self.cell(cell.kind, **_pins(cell))

    def adder(self, name: str, adder: Adder, a: Sequence[str], b: Sequence[str]) -> list[str]:
        """An adder of two words ("" is a constant zero); the bits of the sum, lowest first."""
        self._adders[adder_name(adder)] = adder
        total = self.wire(name, adder.width)
        words = (f"{{{', '.join(bit or ZERO for bit in reversed(word))}}}" for word in (a, b))
        self._lines.append(
            "  {} {}_adder(.a({}), .b({}), .s({}));".format(adder_name(adder), name, *words, name)
        )
        return total

    def finish(self) -> Verilog:
        """The whole text: this module and those that it needs."""
        kinds = set(self._kinds)
        adders = ""
        for _, adder in sorted(self._adders.items()):
            text, needed = adder_module(adder)
            adders += text
            kinds |= needed
        declared = [
            f"{'output' if port.output else 'input'} [{port.width - 1}:0] {port.name}"
            for port in self._ports
        ]
        head = f"module {self._name}({', '.join(['input clk', *declared])});\n"
        body = "\n".join(self._lines)
        text = f"{cell_modules(kinds)}{adders}{head}{body}\nendmodule\n"
        return Verilog(self._name, tuple(self._ports), text)


def _pins(cell: Cell) -> dict[str, str]:
    inputs = dict(zip("abc", cell.inputs, strict=False))
    assert ONE not in inputs.values()
    return {**inputs, "s": cell.sum, "co": cell.carry}
