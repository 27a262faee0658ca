"""Traces decoded for a memory and an address mapping."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from archgym.envs.dram.device.address_mapping import AddressMapping, address_mapping
from archgym.envs.dram.device.memory import Memory
from archgym.envs.dram.kernel import layout as kernel
from archgym.envs.dram.traces.trace import Trace
from archgym.errors import InvalidValueError, SimulationError

__all__ = ["ChannelTrace", "PreparedTrace", "prepare"]


@dataclass(frozen=True, eq=False)
class ChannelTrace:
    """The requests of one channel, decoded.

    Attributes:
        arrival: clock cycle of each arrival (the first edge at or after it), shape (n,).
        arrival_ps: arrival as in the trace, ps, shape (n,).
        address: byte address, shape (n,).
        bank: bank of each request over all ranks (``rank * banks + bank``), shape (n,).
        row: row of each request, shape (n,).
        is_write: 1 for a write, 0 for a read, shape (n,).
    """

    arrival: NDArray[np.int64]
    arrival_ps: NDArray[np.int64]
    address: NDArray[np.int64]
    bank: NDArray[np.uint16]
    row: NDArray[np.int32]
    is_write: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class PreparedTrace:
    """A trace decoded for one memory and address mapping; made by :func:`prepare`.

    Attributes:
        trace: the trace.
        memory: the memory whose geometry and clock were used.
        channels: its channels' requests; those without any are left out.
    """

    trace: Trace
    memory: Memory
    channels: tuple[ChannelTrace, ...]


_decoded: WeakKeyDictionary[Trace, dict[tuple[AddressMapping, int], tuple[ChannelTrace, ...]]] = (
    WeakKeyDictionary()
)


def prepare(trace: Trace, memory: Memory, mapping: AddressMapping | str = "rbc") -> PreparedTrace:
    """Decode a trace; the work is done once for each trace, clock and mapping.

    Args:
        trace: the requests.
        memory: gives geometry and clock.
        mapping: a name, or a user-defined mapping.

    Raises:
        UnknownNameError: if the memory has no mapping of that name.
        InvalidValueError: if a user-defined mapping does not fit the memory's geometry.
        SimulationError: if the trace is too long for the simulator's integers.
    """
    if isinstance(mapping, str):
        mapping = address_mapping(mapping, memory)
    of_trace = _decoded.setdefault(trace, {})
    key = (mapping, memory.device.t_ck_ps)
    found = of_trace.get(key)
    if found is None:
        mapping.check_fits(memory)
        found = of_trace[key] = _decode(trace, memory, mapping)
    return PreparedTrace(trace, memory, found)


def _decode(trace: Trace, memory: Memory, mapping: AddressMapping) -> tuple[ChannelTrace, ...]:
    arrival = -(-trace.arrival_ps // memory.device.t_ck_ps)
    if len(trace) >= kernel.MAX_REQUESTS or arrival[-1] >= kernel.NEVER // 2:
        raise SimulationError(
            f"trace {trace.name!r} is too long: at most {kernel.MAX_REQUESTS - 1} requests within "
            f"{kernel.NEVER // 2} clock cycles"
        )
    place = mapping.decode(trace.address)
    bank = (place.rank * memory.device.banks + place.bank).astype(np.uint16)
    row = place.row.astype(np.int32)
    is_write = (trace.is_write != 0).astype(np.uint8)
    if memory.channels == 1:
        return (ChannelTrace(arrival, trace.arrival_ps, trace.address, bank, row, is_write),)
    return tuple(
        ChannelTrace(
            arrival[of_channel],
            trace.arrival_ps[of_channel],
            trace.address[of_channel],
            bank[of_channel],
            row[of_channel],
            is_write[of_channel],
        )
        for channel in range(memory.channels)
        if (of_channel := np.flatnonzero(place.channel == channel)).size
    )


def check_capacity(trace: Trace, memory: Memory) -> None:
    """Refuse a trace with an address beyond a memory.

    Raises:
        InvalidValueError: naming the first such request.
    """
    beyond = np.flatnonzero(trace.address >= memory.capacity_bytes)
    if beyond.size:
        first = int(beyond[0])
        raise InvalidValueError(
            f"trace {trace.name!r}: request {first} is at address {trace.address[first]:#x}, "
            f"beyond the {memory.capacity_bytes / 2**30:g} GiB of {memory.name}. "
            "Take more ranks or channels (memory={device: ..., ranks: 2}), or fold the addresses "
            "into the memory (workload={file: ..., fold_bytes: ...})"
        )
