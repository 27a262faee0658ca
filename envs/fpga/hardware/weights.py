"""The weights of a layer's engine: in LUTs, in block RAM or in a ring of registers."""

from __future__ import annotations

from math import log2

from archgym.envs.fpga.hardware.circuit import ONE, ZERO, Circuit, Value, bits_in
from archgym.envs.fpga.hardware.folding import Choices, Folding
from archgym.envs.fpga.hardware.path import NO_PATH, Path, longer
from archgym.envs.fpga.hardware.roms import rom_parts, rom_text
from archgym.envs.fpga.network.integer import QuantisedLayer

__all__ = ["stored_weights"]


def stored_weights(
    circuit: Circuit,
    layer: QuantisedLayer,
    folding: Folding,
    choices: Choices,
    busy: str,
    step: str,
    x: list[Value],
) -> tuple[list[str], Path, list[Value]]:
    """The bits of a step's weights with their path, and the activations that they go with."""
    words = _words(layer, folding, choices.weight_bits)
    width = folding.lanes * folding.rows * choices.weight_bits
    if choices.operand_register:
        x = [circuit.registered(value) for value in x]
    if choices.memory == "logic":
        bits, path = _logic(circuit, words, width, step, choices)
        return bits, path, x
    if choices.memory == "block":
        name, path = _block(circuit, words, width, step), longer(NO_PATH, memories=1)
    else:
        name, path = _ring(circuit, words, width, busy), NO_PATH
        if choices.operand_register:
            name = circuit.register(width, f"$ <= {name}[{width - 1}:0];", "wq")
    return list(bits_in(name, 0, width)), path, x


def _logic(
    circuit: Circuit, words: list[int], width: int, step: str, choices: Choices
) -> tuple[list[str], Path]:
    """Weights from LUTs: each bit is a function of the step, and equal ones exist once."""
    columns = [tuple((word >> bit) & 1 for word in words) for bit in range(width)]
    distinct = sorted({column for column in columns if len(set(column)) > 1})
    places = {column: place for place, column in enumerate(distinct)}
    path, name = NO_PATH, ""
    if distinct:
        some = [
            sum(column[i] << place for place, column in enumerate(distinct))
            for i in range(len(words))
        ]
        name = circuit.name("w")
        if circuit.writes:
            circuit.write(*rom_text(name, step, len(distinct), some))
        luts, selects, levels = rom_parts(some, len(distinct))
        circuit.parts["rom_luts"] += luts
        circuit.parts["rom_selects"] += selects
        # One bit serves every weight with the same column.
        users = len(columns) / len(distinct)
        path = longer(NO_PATH, luts=1, selects=levels, fan_out=log2(max(1, luts)))
        if choices.operand_register:
            name = circuit.register(len(distinct), f"$ <= {name};", "wq", path)
            path = NO_PATH
        path = longer(path, fan_out=log2(max(1.0, users)))
    bits = [
        f"{name}[{places[column]}]" if column in places else f"1'b{column[0]}" for column in columns
    ]
    return bits, path


def _block(circuit: Circuit, words: list[int], width: int, step: str) -> str:
    """Weights from block RAM, whose output is registered.

    Synthesis takes bits out of a memory that are the same in all its words (pass ``opt_mem`` of
    yosys), as about half the bits of two words are: they are constants of the circuit then.
    """
    always, never = words[0], ~words[0]
    for word in words:
        always, never = always & word, never & ~word
    constants = {
        i: ONE if always >> i & 1 else ZERO for i in range(width) if (always | never) >> i & 1
    }
    circuit.roms.append((len(words), width - len(constants)))
    memory = circuit.name("rom")
    mark = '(* ram_style = "block" *)'
    circuit.write(f"{mark} reg [{width - 1}:0] {memory} [0:{len(words) - 1}];")
    circuit.write("initial begin")
    circuit.write(*[f"  {memory}[{i}] = {width}'h{word:x};" for i, word in enumerate(words)])
    circuit.write("end")
    name = circuit.register(width, f"$ <= {memory}[{step}];", "w", count=False)
    circuit.equate(tuple(f"{name}[{i}]" for i in constants), tuple(constants.values()))
    return name


def _ring(circuit: Circuit, words: list[int], width: int, busy: str) -> str:
    """Weights from a ring of registers that turns while a window is worked on."""
    total = width * len(words)
    literal = f"{total}'h{sum(word << (i * width) for i, word in enumerate(words)):x}"
    enable = circuit.wire(1, f"{busy} | rst", "turn", keep=True)
    circuit.parts["luts"] += 1
    turned = f"{{$[{width - 1}:0], $[{total - 1}:{width}]}}"
    statement = f"if ({enable}) begin if (rst) $ <= {literal}; else $ <= {turned}; end"
    return circuit.register(total, statement, "ring")


def _words(layer: QuantisedLayer, folding: Folding, bits: int) -> list[int]:
    """The memory's words: for each row its lanes, the first lowest."""
    mask = (1 << bits) - 1
    words = []
    for group in range(folding.output_steps):
        rows = layer.weights[group * folding.rows : (group + 1) * folding.rows]
        for chunk in range(folding.input_steps):
            some = rows[:, chunk * folding.lanes : (chunk + 1) * folding.lanes].ravel().tolist()
            words.append(sum((int(w) & mask) << (i * bits) for i, w in enumerate(some)))
    return words
