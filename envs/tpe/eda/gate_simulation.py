"""Simulates a circuit gate by gate, many independent streams of operands at once.

Every net is a number with a bit for each stream. Signals settle in one of three ways: at once, so
that nothing changes twice in a cycle; by the delays of the library's gates (:mod:`.gate_delays`),
where a pulse that is shorter than the delay of a gate does not pass it, as in an event-driven
simulator of an annotated netlist; or with the same time for every gate, which passes on the
shortest pulse and so counts too many.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, Literal

from archgym.envs.tpe.eda.gate_circuit import ONE, ZERO, Circuit
from archgym.envs.tpe.eda.gate_delays import Delays, gate_delays
from archgym.envs.tpe.eda.operand_drive import Drive

__all__ = ["SETTLING", "WARM_UP", "Settling", "switching_of"]

Settling = Literal["at_once", "gate_delays", "equal_delays"]
SETTLING: Final = ("at_once", "gate_delays", "equal_delays")
WARM_UP: Final = 8
"""Cycles before switching counts: registers start at zero."""

_Values = dict[int, int]
_Settle = Callable[[_Values, _Values, bool], Iterator[_Values]]


def switching_of(
    circuit: Circuit, drive: Drive, *, streams: int, cycles: int, settling: Settling
) -> dict[int, float]:
    """How often each net changes, in the mean of cycles and streams.

    Args:
        circuit: what is simulated.
        drive: the inputs in each cycle.
        streams: independent streams.
        cycles: to simulate; the first few do not count.
        settling: how signals settle in a cycle.
    """
    ones = (1 << streams) - 1
    cycles = max(cycles, WARM_UP + 2)
    values: _Values = {ZERO: 0, ONE: ones}
    state = [0] * len(circuit.flip_flops)
    counted: dict[int, int] = {}
    settle = _settling(circuit, ones, settling)
    for cycle in range(cycles):
        new: _Values = {}
        for flop, bits in zip(circuit.flip_flops, state, strict=True):
            for position, net in enumerate(flop.outputs.values()):
                new[net] = ones ^ bits if position else bits
        for name, given in drive(cycle).items():
            new.update(zip(circuit.inputs.get(name, ()), given, strict=True))
        for changes in settle(values, new, cycle == 0):
            for net, value in changes.items():
                if cycle > WARM_UP:
                    changed = (value ^ values.get(net, 0)).bit_count()
                    counted[net] = counted.get(net, 0) + changed
                values[net] = value
        state = [values.get(flop.data, 0) for flop in circuit.flip_flops]
    seen = (cycles - 1 - WARM_UP) * streams
    return {net: n / seen for net, n in counted.items()}


def _settling(circuit: Circuit, ones: int, settling: Settling) -> _Settle:
    """Yields what nets become, step by step; the caller updates the values between steps."""
    if settling == "at_once":
        return partial(_at_once, circuit, ones)
    if settling == "equal_delays":
        return partial(_equal_delays, circuit, ones)
    return partial(_gate_delays, circuit, gate_delays(circuit), ones)


def _at_once(
    circuit: Circuit, ones: int, values: _Values, new: _Values, first: bool
) -> Iterator[_Values]:
    after = {**values, **new}
    for gate in circuit.gates:
        pins = {pin: after.get(net, 0) for pin, net in gate.nets.items()}
        for pin, function in gate.functions.items():
            after[gate.nets[pin]] = function(pins, ones)
    yield after


def _equal_delays(
    circuit: Circuit, ones: int, values: _Values, new: _Values, first: bool
) -> Iterator[_Values]:
    now = {net: value for net, value in new.items() if value != values.get(net, 0)}
    gates: Iterable[int] = range(len(circuit.gates)) if first else _read(circuit, now)
    yield now
    while True:
        now = {}
        for i in gates:
            gate = circuit.gates[i]
            pins = {pin: values.get(net, 0) for pin, net in gate.nets.items()}
            for pin, function in gate.functions.items():
                value = function(pins, ones)
                if value != values.get(gate.nets[pin], 0):
                    now[gate.nets[pin]] = value
        if not now:
            return
        yield now
        gates = _read(circuit, now)


def _gate_delays(
    circuit: Circuit, delays: Delays, ones: int, values: _Values, new: _Values, first: bool
) -> Iterator[_Values]:
    if first:  # everything before the first clock edge is at rest
        return _at_once(circuit, ones, values, new, first)
    return _Events(circuit, delays, ones).settle(values, new)


def _read(circuit: Circuit, nets: Iterable[int]) -> set[int]:
    """The gates that have one of some nets as an input."""
    return {i for net in nets for i in circuit.readers.get(net, ())}


class _Events:
    """The changes of one cycle that are on their way.

    Every bit of a net has one change under way at most: when the gate's inputs ask for the old
    value again before it comes, it is taken back, and the pulse is gone.
    """

    def __init__(self, circuit: Circuit, delays: Delays, ones: int) -> None:
        self._circuit = circuit
        self._delays = delays
        self._ones = ones
        self._at: dict[int, dict[int, int]] = {}
        """Which bits of which nets change, by time."""
        self._times: list[int] = []
        self._coming: dict[int, dict[int, int]] = {}
        """Which bits change at which times, by net."""

    def settle(self, values: Mapping[int, int], new: _Values) -> Iterator[_Values]:
        """What nets become at each time, ps, until all is quiet."""
        self._begin(values, new)
        while self._times:
            time = heapq.heappop(self._times)
            bits = self._at.pop(time)
            for net in bits:
                del self._coming[net][time]
            changed = {net: mask for net, mask in bits.items() if mask}
            if changed:
                yield {net: values.get(net, 0) ^ mask for net, mask in changed.items()}
                for i in _read(self._circuit, changed):
                    self._answer(i, time, changed, values)

    def _begin(self, values: Mapping[int, int], new: _Values) -> None:
        """Flip-flops and input ports change after the clock edge."""
        left = dict(new)
        for flop, outputs in zip(self._circuit.flip_flops, self._delays.flip_flops, strict=True):
            for pin, net in flop.outputs.items():
                rise, fall = outputs[pin]
                differs = left.pop(net) ^ values.get(net, 0)
                self._send(net, rise, differs & new[net])
                self._send(net, fall, differs & ~new[net])
        for net, value in left.items():
            self._send(net, self._delays.inputs, value ^ values.get(net, 0))

    def _answer(
        self, i: int, time: int, changed: Mapping[int, int], values: Mapping[int, int]
    ) -> None:
        """What one gate makes of inputs that have just changed."""
        gate = self._circuit.gates[i]
        pins = {pin: values.get(net, 0) for pin, net in gate.nets.items()}
        for pin, function in gate.functions.items():
            net = gate.nets[pin]
            wanted = function(pins, self._ones)
            coming = self._coming.setdefault(net, {})
            differs = wanted ^ values.get(net, 0)
            under_way = 0
            for when, mask in list(coming.items()):
                back = mask & ~differs
                if back:
                    coming[when] = self._at[when][net] = mask ^ back
                under_way |= mask
            left = differs & ~under_way
            for related, rise, fall in self._delays.gates[i][pin]:
                if not left:
                    break
                mine = left & changed.get(gate.nets[related], 0)
                self._send(net, time + rise, mine & wanted)
                self._send(net, time + fall, mine & ~wanted)
                left ^= mine

    def _send(self, net: int, time: int, mask: int) -> None:
        if not mask:
            return
        if time not in self._at:
            self._at[time] = {}
            heapq.heappush(self._times, time)
        now = self._at[time]
        now[net] = now.get(net, 0) | mask
        self._coming.setdefault(net, {})[time] = now[net]
