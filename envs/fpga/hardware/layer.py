"""The engine of a layer: it multiplies a window by the weights in a fixed number of cycles.

A window is loaded into a work register when ``start`` is set, and rotates past the multipliers.
The outputs are shifted into a register, which is complete when ``done`` is set.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import log2

import numpy as np

from archgym.envs.fpga.hardware.arithmetic import (
    ConstantProducts,
    Products,
    Term,
    Weight,
    tree,
    tree_levels,
)
from archgym.envs.fpga.hardware.circuit import (
    ZERO,
    Circuit,
    Path,
    Value,
    bits_in,
    bits_of,
    longer,
)
from archgym.envs.fpga.hardware.folding import Choices, Folding
from archgym.envs.fpga.hardware.roms import rom_parts, rom_text
from archgym.envs.fpga.network.integer import Integers, QuantisedLayer

__all__ = ["accumulator_range", "engine", "most_terms"]

_START: Path = Value((), 0, 0).path


def most_terms(layer: QuantisedLayer) -> int:
    """Most weights of an output that are not 0, at least 1."""
    return max(1, int(np.count_nonzero(layer.weights, axis=1).max()))


def accumulator_range(layer: QuantisedLayer) -> tuple[int, int]:
    """Range of the sums that any weights of these bits can give, and the layer's own bias."""
    reach = layer.layer.inputs * layer.weight_limit * max(-layer.low, layer.high)
    return -reach + min(0, int(layer.bias.min())), reach + max(0, int(layer.bias.max()))


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
        weights, path, x = _weights(circuit, layer, folding, choices, busy, step, x)
        sums = _sums(circuit, layer, folding, choices, weights, path, x)
    for name in flags:
        for _ in range(folding.stages):
            flags[name] = circuit.register(1, f"$ <= {flags[name]};", "f")
    results, ready, finished = _accumulated(circuit, layer, folding, sums, flags)
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
    circuit.end(longer(_START, luts=2, chains=1, chain_bits=width))
    return busy, step


def _work(circuit: Circuit, folding: Folding, source: str, start: str, width: int) -> str:
    """The register that holds the window, and rotates if it is read in steps."""
    total = folding.lanes * folding.input_steps * width
    if folding.input_steps == 1:
        return circuit.register(total, f"if ({start}) $ <= {source};", "work", _START)
    move = folding.lanes * width
    rotated = f"{{$[{move - 1}:0], $[{total - 1}:{move}]}}"
    circuit.parts["mux_bits"] += total
    path = longer(_START, luts=1, fan_out=log2(total))
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


def _weights(
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
        name, path = _block(circuit, words, width, step), longer(_START, memories=1)
    else:
        name, path = _ring(circuit, words, width, busy), _START
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
    path, name = _START, ""
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
        path = longer(_START, luts=1, selects=levels, fan_out=log2(max(1, luts)))
        if choices.operand_register:
            name = circuit.register(len(distinct), f"$ <= {name};", "wq", path)
            path = _START
        path = longer(path, fan_out=log2(max(1.0, users)))
    bits = [
        f"{name}[{places[column]}]" if column in places else f"1'b{column[0]}" for column in columns
    ]
    return bits, path


def _block(circuit: Circuit, words: list[int], width: int, step: str) -> str:
    """Weights from block RAM, whose output is registered."""
    circuit.roms.append((len(words), width))
    memory = circuit.name("rom")
    mark = '(* ram_style = "block" *)'
    circuit.write(f"{mark} reg [{width - 1}:0] {memory} [0:{len(words) - 1}];")
    circuit.write("initial begin")
    circuit.write(*[f"  {memory}[{i}] = {width}'h{word:x};" for i, word in enumerate(words)])
    circuit.write("end")
    return circuit.register(width, f"$ <= {memory}[{step}];", "w", count=False)


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
    products = Products(circuit, least_bits=choices.dsp_bits, register=choices.product_register)
    fan = log2(folding.rows * (1 if choices.dsp_bits else bits))
    sums: list[Term | None] = []
    alike = choices.memory != "logic" and not circuit.writes
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
    names = ([f"{bit}.{row}" for bit in value.bits] for row in range(rows))
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


def _accumulated(
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
        bits, f"if (rst) $ <= 0; else if ({last}) $ <= {step};", "group", longer(_START, luts=2)
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
    constant = _bias_rom(circuit, bias, group, within)
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


def _bias_rom(circuit: Circuit, bias: Integers, group: str, within: tuple[int, int]) -> Value:
    """The bias of the group that is worked on."""
    low, high = int(bias.min()), int(bias.max())
    if low == high:
        return Value.constant(low)
    width = bits_of(low, high)
    words = [int(value) & ((1 << width) - 1) for value in bias.tolist()]
    name = circuit.name("c")
    if circuit.writes:
        circuit.write(*rom_text(name, group, width, words))
    luts, selects, levels = rom_parts(words, width)
    circuit.parts["rom_luts"] += luts
    circuit.parts["rom_selects"] += selects
    path = longer(_START, luts=1, selects=levels, fan_out=log2(max(1, luts)))
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
    group = circuit.joined(tuple(bit for value in outputs for bit in value.extended(bits)))
    total, move = layer.layer.outputs * bits, len(outputs) * bits
    following = group if total == move else f"{{{group}, $[{total - 1}:{move}]}}"
    for value in outputs:
        circuit.end(value.path)
    register = circuit.register(total, f"if ({ready}) $ <= {following};", "y")
    done = circuit.register(1, f"$ <= {finished} & ~rst;", "done")
    return register, done, bits
