"""Delays of the gates of a circuit, from its cell library: what a simulator is annotated with.

Non-linear delay model, as in :mod:`archgym.envs.tpe.eda.static_timing`: delay and slew of an arc
are looked up over the slew of its input and the load of its output. Every net has one slew for its
rising and one for its falling edge, the greatest that can occur; delays are rounded to whole ps,
and are 1 ps at least.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from archgym.envs.tpe.eda.cell_library import Arc, LibraryCell
from archgym.envs.tpe.eda.gate_circuit import Circuit
from archgym.envs.tpe.eda.static_timing import DELAY, EDGES, FALL, RISE, SLEW

__all__ = ["Delays", "gate_delays"]

_CLOCK = ("rising_edge", "falling_edge")
Slews = dict[int, list[float]]


@dataclass(frozen=True)
class Delays:
    """Delays of a circuit, ps.

    Attributes:
        gates: for each gate and each of its outputs, the inputs with the delay to a rising and to
            a falling output; the fastest first.
        flip_flops: for each flip-flop and each of its outputs, from the clock to a rising and to a
            falling output.
        inputs: from the clock to a change of an input port: the mean of the flip-flops, since
            registers of a neighbour drive it.
    """

    gates: tuple[Mapping[str, tuple[tuple[str, int, int], ...]], ...]
    flip_flops: tuple[Mapping[str, tuple[int, int]], ...]
    inputs: int


def gate_delays(circuit: Circuit) -> Delays:
    """Delays of every gate and flip-flop of a circuit."""
    slews: Slews = {}
    flops = []
    for flop in circuit.flip_flops:
        found = {}
        for pin, net in flop.outputs.items():
            arcs = [arc for arc in flop.cell.pins[pin].arcs if arc.kind in _CLOCK]
            found[pin] = _delays(arcs, [0.0, 0.0], slews, net, circuit.loads_pf.get(net, 0.0))
        flops.append(found)
    every = [ps for outputs in flops for pair in outputs.values() for ps in pair]
    typical = [slew for pair in slews.values() for slew in pair]
    driven = sum(typical) / len(typical) if typical else 0.0
    for nets in circuit.inputs.values():
        slews.update((net, [driven, driven]) for net in nets)
    gates = []
    for gate in circuit.gates:
        outputs = {}
        for pin in gate.functions:
            net = gate.nets[pin]
            load = circuit.loads_pf.get(net, 0.0)
            paths = []
            for related, arcs in _by_input(gate.cell, pin).items():
                source = gate.nets.get(related)
                if source is not None:
                    start = slews.get(source, [0.0, 0.0])
                    paths.append((related, *_delays(arcs, start, slews, net, load)))
            outputs[pin] = tuple(sorted(paths, key=lambda path: (path[1] + path[2], path[0])))
        gates.append(outputs)
    return Delays(tuple(gates), tuple(flops), round(sum(every) / len(every)) if every else 0)


def _by_input(cell: LibraryCell, pin: str) -> dict[str, list[Arc]]:
    found: dict[str, list[Arc]] = {}
    for arc in cell.pins[pin].arcs:
        for related in arc.related.split():
            found.setdefault(related, []).append(arc)
    return found


def _delays(
    arcs: list[Arc], start: list[float], slews: Slews, net: int, load: float
) -> tuple[int, int]:
    """Delay to a rising and a falling output, ps: the mean of the cases that the arcs tell apart.

    The slew of the output is raised to theirs.
    """
    times: tuple[list[float], list[float]] = ([], [])
    out = slews.setdefault(net, [0.0, 0.0])
    for arc in arcs:
        pairs = ((RISE, RISE), (RISE, FALL)) if arc.kind in _CLOCK else EDGES[arc.sense]
        for before, after in pairs:
            if DELAY[after] in arc.tables:
                times[after].append(arc.tables[DELAY[after]](start[before], load))
            if SLEW[after] in arc.tables:
                out[after] = max(out[after], arc.tables[SLEW[after]](start[before], load))
    rise, fall = (sum(one) / len(one) if one else None for one in times)
    if rise is None or fall is None:
        rise = fall = fall if rise is None else rise
    return max(1, round(1e3 * (rise or 0.0))), max(1, round(1e3 * (fall or 0.0)))
