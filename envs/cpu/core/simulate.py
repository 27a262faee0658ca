"""A stream through the core: the cycles of an instruction follow from those before it."""

from __future__ import annotations

from collections.abc import Callable

from archgym.envs.cpu.branch import layout as b
from archgym.envs.cpu.core import layout as k
from archgym.envs.cpu.core.back_end import (
    dispatch,
    finish_store,
    leave_store,
    load,
    rename,
    retire,
    schedule,
    sources_ready,
)
from archgym.envs.cpu.core.compiled import entry, inlined
from archgym.envs.cpu.core.front_end import decode, enter, predict
from archgym.envs.cpu.core.prefetching import Ahead
from archgym.envs.cpu.core.slots import take
from archgym.envs.cpu.hierarchy.layout import Caches

_LOAD, _STORE = 0, 1


@inlined
def _predict(i: int, static: k.Instruction, stream: k.Stream, m: k.Core, unit: b.Unit) -> int:
    """Predict an instruction; says what was wrong."""
    target = 0
    taken = stream.taken[i]
    if taken and i + 1 < stream.code.shape[0]:
        target = stream.static[stream.code[i + 1]].ip
    return predict(static, taken, target, m, unit)


@inlined
def _places(i: int, decoded: int, stream: k.Stream, m: k.Core) -> int:
    """Dispatch an instruction; returns the cycle."""
    loads = 0
    stores = 0
    for number in range(stream.data_first[i], stream.data_first[i + 1]):
        loads += stream.data_kind[number] != _STORE
        stores += stream.data_kind[number] != _LOAD
    dispatched = dispatch(i, decoded + m.c[k.DISPATCH_LATENCY], loads, stores, m)
    m.at[k.AT_DISPATCH, i & m.c[k.RING_MASK]] = dispatched
    return dispatched


@inlined
def _touch_memory(
    i: int,
    ip: int,
    dispatched: int,
    executed: int,
    stream: k.Stream,
    m: k.Core,
    caches: Caches,
    ahead: Ahead,
) -> int:
    """When the loads of an instruction have their data and its stores are finished."""
    done = executed
    for number in range(stream.data_first[i], stream.data_first[i + 1]):
        if stream.data_kind[number] != _STORE:
            data = load(number, ip, dispatched, executed, stream, m, caches, ahead)
            done = max(done, data)
        if stream.data_kind[number] != _LOAD:
            done = max(done, finish_store(executed, m))
    return done


@inlined
def _instruction(
    i: int, stream: k.Stream, m: k.Core, unit: b.Unit, caches: Caches, ahead: Ahead
) -> None:
    """Follow one instruction through all stages."""
    static = stream.static[stream.code[i]]
    ip = static.ip
    entered = enter(i, m)
    verdict = _predict(i, static, stream, m, unit)
    decoded = decode(i, static, entered, stream, m, caches, ahead)
    quick = decoded < 0
    if quick:
        decoded = -1 - decoded
    dispatched = _places(i, decoded, stream, m)
    scheduled = schedule(i, static, dispatched, m)
    ready = sources_ready(i, static, scheduled + 1, m)
    executed = take(k.SLOT_EXECUTE, ready, m.c[k.EXECUTE_WIDTH], m)
    m.s[k.LAST_EXECUTED] = max(m.s[k.LAST_EXECUTED], executed)
    done = _touch_memory(i, ip, dispatched, executed, stream, m, caches, ahead)
    completed = take(k.SLOT_COMPLETE, done + 1, m.c[k.EXECUTE_WIDTH], m)
    retired = retire(i, completed, m)
    rename(static, completed, retired, m)
    finished = max(executed, m.s[k.STORE_READY])
    for number in range(stream.data_first[i], stream.data_first[i + 1]):
        if stream.data_kind[number] != _LOAD:
            leave_store(number, ip, finished, retired, stream, m, caches)
    if verdict == b.WRONG_UNTIL_DECODE and not quick:
        m.s[k.RESUME] = decoded + m.c[k.PENALTY]
    elif verdict != b.PREDICTED:
        m.s[k.RESUME] = completed + m.c[k.PENALTY]


def _make_simulate(sources: int) -> Callable[..., None]:
    def simulate_core(
        count: int, stream: k.Stream, cores: k.Array, unit: b.Unit, caches: Caches, ahead: Ahead
    ) -> None:
        _ = sources
        m = cores[0]
        for i in range(count):
            _instruction(i, stream, m, unit, caches, ahead)
        m.counts[k.N_CYCLES] = m.s[k.RETIRED]

    return simulate_core


simulate_core = entry(_make_simulate)
"""Follow the first ``count`` instructions of a stream, from cold tables on.

The core is the only entry of an array of records.
"""
