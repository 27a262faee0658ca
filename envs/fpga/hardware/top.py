"""The module of a whole network: it takes a position at a time, and gives an output at a time.

Ports: ``clk``, ``rst``, ``in_valid`` and ``in_data`` (a position's channels, the first lowest),
``out_valid`` and ``out_data``. ``rst`` is held for as many cycles as the pipeline has registers;
sixteen are always enough. Nothing waits: whoever sends keeps the intervals of :class:`Schedule`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import log2

from archgym.envs.fpga.hardware.circuit import ONE, ZERO, Circuit, bits_in, bits_of
from archgym.envs.fpga.hardware.folding import Choices, Folding, folding_of
from archgym.envs.fpga.hardware.layer import engine, most_terms
from archgym.envs.fpga.hardware.path import NO_PATH, longer
from archgym.envs.fpga.network.integer import QuantisedLayer, QuantisedNetwork

__all__ = ["Built", "Schedule", "built", "foldings", "schedule_of"]


@dataclass(frozen=True)
class Schedule:
    """When the circuit takes and gives data.

    Attributes:
        positions: of a sample, each one transfer.
        position_interval: cycles from one position to the next, at least.
        sample_interval: cycles from the first position of a sample to that of the next, at least.
        outputs: elements given after each other at every position of the last layer.
        latency: cycles from the one in which the first position is taken to the one in which the
            last output is given, both included.
    """

    positions: int
    position_interval: int
    sample_interval: int
    outputs: int
    latency: int


@dataclass(frozen=True, eq=False)
class Built:
    """The circuit of a network.

    Attributes:
        verilog: of the module ``top``.
        circuit: its parts and paths.
        schedule: its cycles.
        foldings: of each layer.
        pins: bits of its ports.
        output_bits: of an output.
    """

    verilog: str
    circuit: Circuit
    schedule: Schedule
    foldings: tuple[Folding, ...]
    pins: int
    output_bits: int


def foldings(network: QuantisedNetwork, choices: Choices) -> tuple[Folding, ...]:
    """The folding of each layer."""
    return tuple(
        folding_of(layer.layer.inputs, layer.layer.outputs, most_terms(layer), choices)
        for layer in network.layers
    )


def schedule_of(network: QuantisedNetwork, folded: tuple[Folding, ...]) -> Schedule:
    """The cycles of a network."""
    first, last = network.layers[0], network.layers[-1]
    positions = _transfers(first)
    streaming, whole = [1], [1]
    waits = 0
    for index, (layer, folding) in enumerate(zip(network.layers, folded, strict=True)):
        kind = streaming if layer.layer.kind == "conv" else whole
        kind.append(folding.steps)
        waits += folding.cycles + (1 if _collects(network, index) else 0)
    outputs = last.layer.outputs
    (streaming if last.layer.kind == "conv" else whole).append(outputs)
    each = max(streaming)
    latency = (positions - 1) * each + waits + outputs + 1
    return Schedule(positions, each, max(positions * each, *whole), outputs, latency)


@lru_cache(maxsize=32)
def built(network: QuantisedNetwork, choices: Choices, *, writes: bool = True) -> Built:
    """The circuit of a network with the choices of a design.

    Args:
        network: in integers.
        choices: of the design.
        writes: whether the Verilog is written; without it is empty, and the rest is the same.
    """
    circuit = Circuit(writes=writes)
    folded = foldings(network, choices)
    first = network.layers[0]
    bits = bits_of(first.low, first.high)
    channels = first.layer.channels if first.layer.kind == "conv" else 1
    pins_in = channels * bits
    source, valid = "in_data", "in_valid"
    for index, (layer, folding) in enumerate(zip(network.layers, folded, strict=True)):
        if _collects(network, index):
            count = channels if layer.layer.kind == "dense" else layer.layer.channels
            source, valid = _collector(circuit, layer, source, valid, count, bits)
        source, valid, bits = engine(circuit, layer, folding, choices, source, valid)
        channels = layer.layer.outputs
    out = _giver(circuit, source, valid, channels, bits)
    ports = (
        f"module top(input clk, input rst, input in_valid, input [{pins_in - 1}:0] in_data, "
        f"output out_valid, output [{bits - 1}:0] out_data);"
    )
    text = "\n".join([ports, *circuit.lines, *out, "endmodule", ""]) if writes else ""
    schedule = schedule_of(network, folded)
    return Built(text, circuit, schedule, folded, pins_in + bits + 4, bits)


def _transfers(layer: QuantisedLayer) -> int:
    if layer.layer.kind == "conv":
        return layer.layer.height * layer.layer.width
    return layer.layer.inputs


def _collects(network: QuantisedNetwork, index: int) -> bool:
    """Whether a layer collects its window from several transfers."""
    if index == 0 or network.layers[index].layer.kind == "conv":
        return True
    return network.layers[index - 1].layer.kind == "conv"


def _collector(
    circuit: Circuit, layer: QuantisedLayer, source: str, valid: str, channels: int, bits: int
) -> tuple[str, str]:
    """A shift register that transfers enter, its window, and when that is complete."""
    spec, move = layer.layer, channels * bits
    dense = spec.kind == "dense"
    rows, columns = spec.kernel_height, spec.kernel_width
    length = spec.inputs // channels if dense else (rows - 1) * spec.width + columns
    total = length * move
    following = source if length == 1 else f"{{{source}, $[{total - 1}:{move}]}}"
    line = circuit.register(total, f"if ({valid}) $ <= {following};", "line")
    conditions = [valid]
    if dense:
        if length > 1:
            conditions.append(_place(circuit, valid, length, length - 1))
    else:
        if spec.width > 1:
            conditions.append(_place(circuit, valid, spec.width, columns - 1, at_least=True))
        if rows > 1:
            step = f"({valid} & {_wraps(conditions[-1], spec.width)})" if spec.width > 1 else valid
            conditions.append(_place(circuit, step, spec.height, rows - 1, at_least=True))
    start = circuit.register(1, f"$ <= {' & '.join(conditions)} & ~rst;", "start")
    if dense:
        return line, start
    parts = []
    for row in range(rows):
        for column in range(columns):
            place = length - 1 - ((rows - 1 - row) * spec.width + (columns - 1 - column))
            parts.append(f"{line}[{(place + 1) * move - 1}:{place * move}]")
    window = ", ".join(reversed(parts))
    return circuit.wire(len(parts) * move, f"{{{window}}}", "window"), start


def _wraps(condition: str, width: int) -> str:
    """The condition that a counter is at its last place, from one on the same counter."""
    name = condition.strip("()").split()[0]
    return f"({name} == {width - 1})"


def _place(circuit: Circuit, step: str, places: int, wanted: int, *, at_least: bool = False) -> str:
    """A counter of transfers, and the condition that it is at a place or behind it."""
    bits = (places - 1).bit_length()
    name = circuit.register(
        bits,
        f"if (rst) $ <= 0; else if ({step}) $ <= $ == {bits}'d{places - 1} ? 0 : $ + 1'd1;",
        "place",
        longer(NO_PATH, luts=2, chains=1, chain_bits=bits),
    )
    circuit.parts["counter_bits"] += bits
    circuit.parts["compare_bits"] += 2 * bits
    return f"({name} {'>=' if at_least else '=='} {wanted})"


def _merged(circuit: Circuit, source: str, out: str, count: int, bits: int) -> int:
    """How many bits of the outputs are equal to others, in this one and all that follow."""
    after: tuple[str, ...] = (ZERO,) * bits
    merged = 0
    for low in range((count - 1) * bits, -1, -bits):
        loaded, made = circuit.known(bits_in(source, low, bits)), bits_in(out, low, bits)
        both = [
            one if one == other and one in (ZERO, ONE) else f"{one} {other}"
            for one, other in zip(loaded, after, strict=True)
        ]
        merged += circuit.merge(tuple(both), made)
        after = circuit.known(made)
    return merged


def _giver(circuit: Circuit, source: str, done: str, count: int, bits: int) -> list[str]:
    """The register from which the outputs leave one by one."""
    total = count * bits
    rest = f"{{{bits}'d0, $[{total - 1}:{bits}]}}" if count > 1 else "$"
    path = longer(NO_PATH, luts=1, fan_out=log2(total))
    out = circuit.register(total, f"$ <= {done} ? {source} : {rest};", "out", path)
    circuit.parts["mux_bits"] += total - _merged(circuit, source, out, count, bits)
    width = count.bit_length()
    left = circuit.register(
        width,
        f"if (rst) $ <= 0; else if ({done}) $ <= {count}; else if ($ != 0) $ <= $ - 1'd1;",
        "left",
        longer(NO_PATH, luts=2, chains=1, chain_bits=width),
    )
    circuit.parts["counter_bits"] += width
    circuit.parts["compare_bits"] += width
    return [f"assign out_valid = {left} != 0;", f"assign out_data = {out}[{bits - 1}:0];"]
