"""The sums of a layer's engine: products are added to their bias, over the steps of an output."""

from __future__ import annotations

from math import log2

from archgym.envs.fpga.hardware.arithmetic import Term
from archgym.envs.fpga.hardware.circuit import LUT_INPUTS, ZERO, Circuit, Value, bits_in, bits_of
from archgym.envs.fpga.hardware.folding import Folding
from archgym.envs.fpga.hardware.path import NO_PATH, longer
from archgym.envs.fpga.hardware.roms import rom_parts, rom_text
from archgym.envs.fpga.network.integer import Integers, QuantisedLayer

__all__ = ["accumulated", "accumulator_range"]

_CHOICE_INPUTS = 2
"""Inputs of a multiplexer beside the memory that it reads: the sum, and which one it takes."""


def accumulator_range(layer: QuantisedLayer) -> tuple[int, int]:
    """Range of the sums that any weights of these bits can give, and the layer's own bias."""
    reach = layer.layer.inputs * layer.weight_limit * max(-layer.low, layer.high)
    return -reach + min(0, int(layer.bias.min())), reach + max(0, int(layer.bias.max()))


def accumulated(
    circuit: Circuit,
    layer: QuantisedLayer,
    folding: Folding,
    sums: list[Term | None],
    flags: dict[str, str],
) -> tuple[list[Value], str, str]:
    """The finished sums with their bias, when they are there, and when they are the last ones."""
    within = accumulator_range(layer)
    width = bits_of(*within)
    groups = layer.bias.reshape(folding.output_steps, folding.rows)
    valid, last = flags["valid"], flags.get("last", flags["valid"])
    finished = flags.get("finish", last)
    group = _group_counter(circuit, folding, last)
    values: list[Value] = []
    for row, term in enumerate(sums):
        bias = groups[:, row]
        if folding.input_steps > 1:
            values.append(_accumulator(circuit, term, bias, group, within, flags["first"], valid))
        elif folding.output_steps == 1:
            values.append(_plus_bias(circuit, term, int(bias[0]), within))
        else:
            constant = _bias_rom(circuit, bias, group, within)
            values.append(_with(circuit, constant, term, within))
    if folding.input_steps > 1:
        ready = circuit.register(1, f"$ <= {last};", "ready")
        over = circuit.register(1, f"$ <= {finished};", "over") if finished != last else ready
        return values, ready, over
    assert width > 0
    return values, last, finished


def _group_counter(circuit: Circuit, folding: Folding, last: str) -> str:
    """Counts the groups of outputs at the accumulators."""
    groups = folding.output_steps
    if groups == 1:
        return ""
    bits = (groups - 1).bit_length()
    step = f"$ == {bits}'d{groups - 1} ? {bits}'d0 : $ + 1'd1"
    circuit.parts["counter_bits"] += bits
    circuit.parts["compare_bits"] += bits
    return circuit.register(
        bits, f"if (rst) $ <= 0; else if ({last}) $ <= {step};", "group", longer(NO_PATH, luts=2)
    )


def _accumulator(
    circuit: Circuit,
    term: Term | None,
    bias: Integers,
    group: str,
    within: tuple[int, int],
    first: str,
    valid: str,
) -> Value:
    width = bits_of(*within)
    held = circuit.name("acc")
    circuit.write(f"(* keep *) reg [{width - 1}:0] {held};")
    constant = _bias_rom(circuit, bias, group, within, chosen=width)
    loaded = circuit.joined(constant.extended(width))
    chosen = circuit.wire(width, f"{first} ? {loaded} : {held}", "b", keep=True)
    circuit.parts["mux_bits"] += width
    path = longer(constant.path, luts=1, fan_out=log2(width))
    total = _with(circuit, Value(bits_in(chosen, 0, width), *within, 0, path), term, within)
    circuit.write(
        f"always @(posedge clk) if ({valid}) {held} <= {circuit.joined(total.extended(width))};"
    )
    circuit.parts["ff"] += width
    circuit.end(total.path)
    return Value(bits_in(held, 0, width), *within)


def _bias_rom(
    circuit: Circuit, bias: Integers, group: str, within: tuple[int, int], *, chosen: int = 0
) -> Value:
    """The bias of the group that is worked on.

    A multiplexer between it and a sum, of ``chosen`` bits, is one function with the memory where
    that has few inputs: the memory itself is not made then.
    """
    low, high = int(bias.min()), int(bias.max())
    if low == high:
        return Value.constant(low)
    width = bits_of(low, high)
    words = [int(value) & ((1 << width) - 1) for value in bias.tolist()]
    name = circuit.name("c")
    if circuit.writes:
        circuit.write(*rom_text(name, group, width, words))
    luts, selects, levels = rom_parts(words, width)
    inputs = _CHOICE_INPUTS + (len(words) - 1).bit_length()
    if chosen and circuit.widened(inputs, beyond=0):
        for _ in range(chosen - 1):
            circuit.widened(inputs, beyond=0)
        circuit.parts["chosen_luts"] += (luts + selects) * (inputs > LUT_INPUTS)
    else:
        circuit.parts["rom_luts"] += luts
        circuit.parts["rom_selects"] += selects
    path = longer(NO_PATH, luts=1, selects=levels, fan_out=log2(max(1, luts)))
    return Value(bits_in(name, 0, width), low, high, 0, path)


def _with(circuit: Circuit, value: Value, term: Term | None, within: tuple[int, int]) -> Value:
    """A value of shift 0 with a term added or subtracted."""
    if term is None:
        return value
    other, sign = term
    if sign > 0:
        return circuit.sum(other, value, "+", within)
    return circuit.sum(value, other, "-", within)


def _plus_bias(circuit: Circuit, term: Term | None, bias: int, within: tuple[int, int]) -> Value:
    """The sum of a term and a constant bias."""
    if term is None or term[1] < 0:
        return _with(circuit, Value.constant(bias), term, within)
    value = term[0]
    if zeros := value.shift:
        bits = (ZERO,) * zeros + value.bits
        value = Value(bits, value.low << zeros, value.high << zeros, 0, value.path)
    return circuit.plus_constant(value, bias, within)
