"""From dispatch to retirement: registers, scheduler, load and store queue, reorder buffer."""

from __future__ import annotations

from archgym.envs.cpu.core import layout as k
from archgym.envs.cpu.core.compiled import inlined
from archgym.envs.cpu.core.memory import answer
from archgym.envs.cpu.core.prefetching import Ahead, prefetch
from archgym.envs.cpu.core.slots import in_order, take, take_data_port, taken_in
from archgym.envs.cpu.core.translation import translated
from archgym.envs.cpu.hierarchy.layout import LOAD, STORE, Caches

_LINE_BITS = 6
_PAGE_BITS = 12
_RING = k.RING - 1
# Registers that an instruction can need: four sources and two destinations.
_MOST_REGISTERS = 6


@inlined
def dispatch(i: int, earliest: int, loads: int, stores: int, m: k.Core) -> int:
    """The cycle in which an instruction gets its places in the reorder buffer and the queues."""
    s, c = m.s, m.c
    if i >= c[k.ROB]:
        earliest = max(earliest, m.at[k.AT_RETIRE, (i - c[k.ROB]) & c[k.RING_MASK]])
    if s[k.STORES] + stores > c[k.SQ]:
        last = s[k.STORES] + stores - 1 - c[k.SQ]
        earliest = max(earliest, m.store_left[last & c[k.RING_MASK]])
    earliest = max(earliest, s[k.DISPATCHED])
    until, seen = s[k.LOADS_LEFT], s[k.LOADS_SEEN]
    enough = s[k.LOADS] + loads - c[k.LQ]
    while until < earliest or seen < enough:
        if until >= s[k.LAST_LEFT]:
            seen = s[k.LOADS]
            until = max(until, earliest)
            break
        until += 1
        seen += taken_in(k.SLOT_LEFT, until, m)
    s[k.LOADS_LEFT], s[k.LOADS_SEEN] = until, seen
    earliest = max(earliest, until) if loads else earliest
    return in_order(k.DISPATCHED, k.DISPATCHED_IN, earliest, c[k.DISPATCH_WIDTH], m)


@inlined
def _registers_free(need: int, m: k.Core) -> int:
    """When ``need`` physical registers are free; a late cycle if never before the next return."""
    wanted = m.s[k.RENAMED] + need - m.c[k.REGISTERS]
    if wanted <= 0:
        return 0
    if wanted > m.s[k.RETURNED]:
        return 1 << 60
    return int(m.freed_at[(wanted - 1) & m.c[k.RING_MASK]])


@inlined
def schedule(i: int, static: k.Instruction, dispatched: int, m: k.Core) -> int:
    """The cycle in which an instruction is renamed and enters the scheduler.

    It waits for physical registers. As in ChampSim, the instructions before it in the reorder
    buffer have to be able to get registers too, although they have theirs already: a source counts
    as one to allocate if the architectural register of its physical number is not in use.
    """
    s, c = m.s, m.c
    at = max(dispatched + 1, s[k.SCHEDULED])
    if _registers_free(_MOST_REGISTERS, m) > at:
        at = _registers_waited(i, static, at, m)
    until, seen = s[k.EXECUTED], s[k.EXECUTED_SEEN]
    enough = i - c[k.SCHEDULER] + 1
    while until < at or seen < enough:
        if until >= s[k.LAST_EXECUTED]:
            seen = i
            until = max(until, at)
            break
        until += 1
        seen += taken_in(k.SLOT_EXECUTE, until, m)
    s[k.EXECUTED], s[k.EXECUTED_SEEN] = until, seen
    at = max(at, until)
    s[k.SCHEDULED] = at
    return int(at)


@inlined
def _registers_waited(i: int, static: k.Instruction, at: int, m: k.Core) -> int:
    """When an instruction, and those before it, can have registers, from ``at`` on."""
    need = int(static.n_destinations)
    for operand in range(static.n_sources):
        need += m.mapped[static.sources[operand]] < 0
    mask = m.c[k.RING_MASK]
    at = max(at, min(_registers_free(need, m), m.at[k.AT_RETIRE, (i - 1) & mask]))
    for kept in range(_MOST_REGISTERS, 0, -1):
        free = _registers_free(kept, m)
        if free <= at:
            break  # fewer are free no later
        last = m.last_need[kept]
        if last >= 0 and i - last <= mask:
            at = max(at, min(m.at[k.AT_RETIRE, last & mask], free))
    return int(at)


@inlined
def _new_register(m: k.Core) -> int:
    register = m.free[m.s[k.RENAMED] & m.c[k.RING_MASK]]
    m.s[k.RENAMED] += 1
    return int(register)


@inlined
def sources_ready(i: int, static: k.Instruction, at: int, m: k.Core) -> int:
    """When all sources of an instruction are ready; renames them and notes what it keeps free."""
    keeps = int(static.n_destinations)
    for operand in range(static.n_sources):
        register = static.sources[operand]
        if m.mapped[register] < 0:
            m.mapped[register] = _new_register(m)
        keeps += m.mapped[m.mapped[register]] < 0
        at = max(at, m.ready[register])
    if keeps > 0:
        m.last_need[keeps] = i
    return int(at)


@inlined
def rename(static: k.Instruction, completed: int, retired: int, m: k.Core) -> None:
    """Give each destination a new physical register; the old one returns at retirement."""
    for operand in range(static.n_destinations):
        register = static.destinations[operand]
        old = m.mapped[register]
        m.mapped[register] = _new_register(m)
        m.ready[register] = completed
        if old >= 0:
            mask = m.c[k.RING_MASK]
            m.free[(m.c[k.REGISTERS] + m.s[k.RETURNED]) & mask] = old
            m.freed_at[m.s[k.RETURNED] & mask] = retired
            m.s[k.RETURNED] += 1


@inlined
def _looked_up(page: int, ip: int, at: int, stream: k.Stream, m: k.Core, caches: Caches) -> int:
    """When the data cache has looked a line up that it takes at ``at``."""
    look_up = m.t[k.LOOK_UP + 1]
    known = translated(1, page, ip, at, stream, m, caches)
    if known <= at + look_up:
        return int(at + look_up)
    # Too late for this look-up: the access waits aside and is looked up again.
    return int(take(k.PORT_L1D_TAG, known, 2, m) + look_up)


@inlined
def _physical(address: int, page: int, m: k.Core) -> int:
    return int((m.frame[page] << _PAGE_BITS) | (address & ((1 << _PAGE_BITS) - 1)))


@inlined
def load(
    number: int,
    ip: int,
    dispatched: int,
    executed: int,
    stream: k.Stream,
    m: k.Core,
    caches: Caches,
    ahead: Ahead,
) -> int:
    """When a load has its data: from a store that is still in its queue, or from the caches."""
    address = stream.data_address[number]
    store = m.forward[(address ^ (address >> 12)) & _RING]
    if store[0] == address and store[2] > dispatched:
        m.counts[k.N_FORWARDED] += 1
        if store[1] <= dispatched:
            return dispatched
        _leave(int(store[1]), m)
        return int(store[1])
    issued = take(k.SLOT_LOAD, executed + 1, m.c[k.LOAD_WIDTH], m)
    line = address >> _LINE_BITS
    answered = m.answered[line & _RING]
    there = answered[1]
    # A load that finds one of its line in the queue before the cache goes with it.
    if answered[0] != line or not answered[3] <= issued <= answered[2]:
        at = take_data_port(k.PORT_L1D_READ, issued, m)
        page = stream.data_page[number]
        ready = _looked_up(page, ip, at, stream, m, caches)
        physical = _physical(address, page, m)
        own = answer(1, physical, LOAD, ip, ready, m, caches) + 1
        prefetch(1, physical, ip, ready, m, caches, ahead)
        # Any answer for a line serves all loads of it that have been issued.
        if answered[0] != line or not issued < there < own:
            there = own
        answered[0] = line
        answered[1] = there
        answered[2] = at
        answered[3] = issued
    _leave(there, m)
    return int(there)


@inlined
def _leave(at: int, m: k.Core) -> None:
    """A load leaves the load queue."""
    m.s[k.LOADS] += 1
    take(k.SLOT_LEFT, at, 1 << 9, m)
    m.s[k.LAST_LEFT] = max(m.s[k.LAST_LEFT], at)


@inlined
def finish_store(executed: int, m: k.Core) -> int:
    """When a store is finished: in program order, and then loads can take its data."""
    at = take(k.SLOT_STORE, max(executed, m.s[k.STORE_READY]), m.c[k.STORE_WIDTH], m)
    m.s[k.STORE_READY] = at
    return at


@inlined
def leave_store(
    number: int, ip: int, finished: int, retired: int, stream: k.Stream, m: k.Core, caches: Caches
) -> None:
    """A retired store goes to the data cache and leaves the store queue."""
    at = take(k.SLOT_STORE, max(retired, m.s[k.DRAINED]), m.c[k.STORE_WIDTH], m)
    m.s[k.DRAINED] = at
    m.store_left[m.s[k.STORES] & m.c[k.RING_MASK]] = at
    m.s[k.STORES] += 1
    address = stream.data_address[number]
    store = m.forward[(address ^ (address >> 12)) & _RING]
    store[0] = address
    store[1] = finished
    store[2] = at
    page = stream.data_page[number]
    taken = take_data_port(k.PORT_L1D_WRITE, at, m)
    ready = _looked_up(page, ip, taken, stream, m, caches)
    answer(1, _physical(address, page, m), STORE, ip, ready, m, caches)


@inlined
def retire(i: int, completed: int, m: k.Core) -> int:
    """The cycle in which an instruction leaves the reorder buffer."""
    at = in_order(k.RETIRED, k.RETIRED_IN, completed + 1, m.c[k.RETIRE_WIDTH], m)
    m.at[k.AT_RETIRE, i & m.c[k.RING_MASK]] = at
    return at
