"""The engine of a layer: it multiplies a window by the weights in a fixed number of cycles.

A window is loaded into a work register when ``start`` is set, and rotates past the multipliers.
The outputs are shifted into a register, which is complete when ``done`` is set.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import log2

import numpy as np

from archgym.envs.fpga.hardware.accumulator import accumulated, accumulator_range
from archgym.envs.fpga.hardware.arithmetic import (
    ConstantProducts,
    Products,
    Term,
    Weight,
    tree,
    tree_levels,
)
from archgym.envs.fpga.hardware.circuit import ONE, ZERO, Circuit, Value, bits_in, bits_of
from archgym.envs.fpga.hardware.folding import Choices, Folding
from archgym.envs.fpga.hardware.path import NO_PATH, Path, longer
from archgym.envs.fpga.hardware.weights import stored_weights
from archgym.envs.fpga.network.integer import QuantisedLayer

__all__ = ["engine", "most_terms"]


def most_terms(layer: QuantisedLayer) -> int:
    """Most weights of an output that are not 0, at least 1."""
    return max(1, int(np.count_nonzero(layer.weights, axis=1).max()))


def engine(
    circuit: Circuit,
    layer: QuantisedLayer,
    folding: Folding,
    choices: Choices,
    source: str,
    start: str,
) -> tuple[str, str, int]:
    """Adds a layer to a circuit.

    Args:
        circuit: that it is added to.
        layer: in integers.
        folding: how its products are spread.
        choices: of the design.
        source: name of the window's bits, the first element lowest.
        start: name of the bit that is set when the window is complete.

    Returns:
        Name of the output register, name of the bit that is set when it is complete, and the bits
        of an output.
    """
    width = bits_of(layer.low, layer.high)
    busy, step = _control(circuit, folding, start)
    work = _work(circuit, folding, source, start, width)
    flags = _flags(circuit, folding, busy, step)
    x = _elements(work, layer, folding)
    if folding.steps == 1:
        sums = _constant_sums(circuit, layer, folding, choices, x)
    else:
        weights, path, x = stored_weights(circuit, layer, folding, choices, busy, step, x)
        sums = _sums(circuit, layer, folding, choices, weights, path, x)
    for name in flags:
        for _ in range(folding.stages):
            flags[name] = circuit.register(1, f"$ <= {flags[name]};", "f")
    results, ready, finished = accumulated(circuit, layer, folding, sums, flags)
    outputs, bits = _requantised(circuit, layer, results)
    return _collected(circuit, layer, outputs, bits, ready, finished)


def _control(circuit: Circuit, folding: Folding, start: str) -> tuple[str, str]:
    """Whether a window is worked on, and the step."""
    steps = folding.steps
    if steps == 1:
        return circuit.register(1, f"$ <= {start} & ~rst;", "busy"), ""
    width = (steps - 1).bit_length()
    step, last = circuit.name("step"), circuit.name("last_step")
    circuit.write(f"(* keep *) reg [{width - 1}:0] {step};")
    circuit.write(f"wire {last} = {step} == {width}'d{steps - 1};")
    busy = circuit.register(1, f"if (rst) $ <= 0; else $ <= {start} | ($ & ~{last});", "busy")
    circuit.write(f"always @(posedge clk) if ({start}) {step} <= 0; else {step} <= {step} + 1'd1;")
    circuit.parts["ff"] += width
    circuit.parts["counter_bits"] += width
    circuit.end(longer(NO_PATH, luts=2, chains=1, chain_bits=width))
    return busy, step


def _work(circuit: Circuit, folding: Folding, source: str, start: str, width: int) -> str:
    """The register that holds the window, and rotates if it is read in steps."""
    total = folding.lanes * folding.input_steps * width
    if folding.input_steps == 1:
        return circuit.register(total, f"if ({start}) $ <= {source};", "work", NO_PATH)
    move = folding.lanes * width
    rotated = f"{{$[{move - 1}:0], $[{total - 1}:{move}]}}"
    circuit.parts["mux_bits"] += total
    path = longer(NO_PATH, luts=1, fan_out=log2(total))
    return circuit.register(total, f"$ <= {start} ? {source} : {rotated};", "work", path)


def _flags(circuit: Circuit, folding: Folding, busy: str, step: str) -> dict[str, str]:
    """Bits that go with the products: whether there are any, first and last of a sum, the end."""
    flags = {"valid": busy}
    steps, chunk = folding.steps, folding.input_steps
    if steps == 1:
        return flags
    width = (steps - 1).bit_length()
    if folding.output_steps == 1:
        flags["first"] = circuit.wire(1, f"{step} == {width}'d0", "first")
        flags["last"] = circuit.wire(1, f"{busy} & ({step} == {width}'d{steps - 1})", "last")
        circuit.parts["compare_bits"] += 2 * width
        return flags
    flags["finish"] = circuit.wire(1, f"{busy} & ({step} == {width}'d{steps - 1})", "finish")
    circuit.parts["compare_bits"] += width
    if chunk > 1:
        bits = (chunk - 1).bit_length()
        at = circuit.name("chunk")
        circuit.write(f"(* keep *) reg [{bits - 1}:0] {at};")
        end = circuit.wire(1, f"{at} == {bits}'d{chunk - 1}", "end")
        circuit.write(
            f"always @(posedge clk) if (~{busy} | {end}) {at} <= 0; else {at} <= {at} + 1'd1;"
        )
        circuit.parts["ff"] += bits
        circuit.parts["counter_bits"] += bits
        flags["first"] = circuit.wire(1, f"{at} == {bits}'d0", "first")
        flags["last"] = circuit.wire(1, f"{busy} & {end}", "last")
        circuit.parts["compare_bits"] += 2 * bits
    return flags


def _elements(work: str, layer: QuantisedLayer, folding: Folding) -> list[Value]:
    """The activations of a step."""
    width = bits_of(layer.low, layer.high)
    places = (bits_in(work, i * width, width) for i in range(folding.lanes))
    return [Value(bits, layer.low, layer.high) for bits in places]


def _constant_sums(
    circuit: Circuit,
    layer: QuantisedLayer,
    folding: Folding,
    choices: Choices,
    x: list[Value],
) -> list[Term | None]:
    """The sums of all outputs at once, of products with constants."""
    products = ConstantProducts(circuit, register=choices.product_register)
    levels = tree_levels(most_terms(layer))
    sums: list[Term | None] = []
    for row in layer.weights.tolist():
        terms = [
            products.term(value, weight) for value, weight in zip(x, row, strict=True) if weight
        ]
        every = choices.tree_registers
        sums.append(tree(circuit, terms, levels=levels, register_every=every) if terms else None)
    return sums


def _sums(
    circuit: Circuit,
    layer: QuantisedLayer,
    folding: Folding,
    choices: Choices,
    weights: list[str],
    path: Path,
    x: list[Value],
) -> list[Term | None]:
    """For each row the sum of the products of a step."""
    bits = choices.weight_bits
    ranges = _weight_ranges(layer, folding, choices)
    products = Products(
        circuit,
        least_bits=choices.dsp_bits,
        clocked=choices.dsp_clocked,
        register=choices.product_register,
    )
    fan = log2(folding.rows * (1 if choices.dsp_bits else bits))
    sums: list[Term | None] = []
    stored = choices.memory != "logic" and circuit.known(tuple(weights)) == tuple(weights)
    alike = stored and not circuit.writes
    before = circuit.parts.copy()
    for row in range(1 if alike else folding.rows):
        terms: list[Term] = []
        for lane, value in enumerate(x):
            low = (row * folding.lanes + lane) * bits
            weight = Weight(tuple(weights[low : low + bits]), *ranges[row][lane], path)
            term = products.of(value.later(fan_out=fan), weight)
            terms += [term] if term else []
        every, levels = choices.tree_registers, tree_levels(folding.lanes)
        sums.append(tree(circuit, terms, levels=levels, register_every=every) if terms else None)
    return _repeated(circuit, sums[0], folding.rows, before) if alike else sums


def _repeated(
    circuit: Circuit, term: Term | None, rows: int, before: Counter[str]
) -> list[Term | None]:
    """The sums of rows that differ in nothing but their weights, from the first one."""
    for name, count in circuit.parts.items():
        circuit.parts[name] = before[name] + rows * (count - before[name])
    if term is None:
        return [None] * rows
    value, sign = term
    names = (
        [bit if bit in (ZERO, ONE) else f"{bit}.{row}" for bit in circuit.known(value.bits)]
        for row in range(rows)
    )
    return [(replace(value, bits=tuple(bits)), sign) for bits in names]


def _weight_ranges(
    layer: QuantisedLayer, folding: Folding, choices: Choices
) -> list[list[tuple[int, int]]]:
    """Range of the weights of each row and lane: their own in logic, else that of their bits."""
    if choices.memory != "logic":
        bounds = (-layer.weight_limit, layer.weight_limit)
        return [[bounds] * folding.lanes] * folding.rows
    shape = (folding.output_steps, folding.rows, folding.input_steps, folding.lanes)
    weights = layer.weights.reshape(shape)
    low, high = weights.min(axis=(0, 2)), weights.max(axis=(0, 2))
    return [list(zip(*row, strict=True)) for row in zip(low.tolist(), high.tolist(), strict=True)]


def _requantised(
    circuit: Circuit, layer: QuantisedLayer, values: list[Value]
) -> tuple[list[Value], int]:
    """Shifted, saturated, and 0 where negative; the last layer's accumulators as they are."""
    if layer.last:
        bits = bits_of(*accumulator_range(layer))
        return values, bits
    bits = layer.activation_bits
    return [_saturated(circuit, value, layer.shift, bits) for value in values], bits


def _saturated(circuit: Circuit, value: Value, shift: int, bits: int) -> Value:
    top = value.width - (1 if value.low < 0 else 0)  # bits of the magnitude of a positive number
    limit = (1 << bits) - 1
    positive = (*value.bits[:top], *[ZERO] * (shift + bits))
    path, luts = value.path, 0.0
    expression = circuit.joined(positive[shift : shift + bits])
    if top > shift + bits:
        above = value.bits[shift + bits : top]
        over = circuit.wire(1, f"|{circuit.joined(above)}", "over", keep=len(above) > 1)
        expression = f"({{{bits}{{{over}}}}} | {expression})"
        circuit.parts["luts"] += -(-(len(above) - 1) // 3)
        luts = 1.0 + (0 if len(above) == 1 else 1 + (len(above) > 4))
    if value.low < 0:
        expression = f"{{{bits}{{~{value.bits[-1]}}}}} & {expression}"
        luts = max(luts, 1.0)
    if luts:
        circuit.parts["saturated_bits"] += bits
    name = circuit.wire(bits, expression, "y")
    fan = log2(bits) if luts else 0.0
    return Value(bits_in(name, 0, bits), 0, limit, 0, longer(path, luts=luts, fan_out=fan))


def _collected(
    circuit: Circuit,
    layer: QuantisedLayer,
    outputs: list[Value],
    bits: int,
    ready: str,
    finished: str,
) -> tuple[str, str, int]:
    """The output register, which groups of outputs are shifted into."""
    given = tuple(bit for value in outputs for bit in value.extended(bits))
    group = circuit.joined(given)
    total, move = layer.layer.outputs * bits, len(outputs) * bits
    following = group if total == move else f"{{{group}, $[{total - 1}:{move}]}}"
    for value in outputs:
        circuit.end(value.path)
    register = circuit.register(total, f"if ({ready}) $ <= {following};", "y")
    for low in range(0, total, move):
        circuit.merge(given, bits_in(register, low, move))
    done = circuit.register(1, f"$ <= {finished} & ~rst;", "done")
    return register, done, bits
