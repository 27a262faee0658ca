"""Latency of memory: banks with open rows, one data bus, refresh; as ChampSim's controller.

Time is in ticks of the memory clock.
"""

from __future__ import annotations

from archgym.envs.cpu.core import layout as k
from archgym.envs.cpu.core.compiled import compiled
from archgym.envs.cpu.core.slots import take

_LINE_BITS = 6


@compiled
def memory_read(address: int, cycle: int, write: bool, m: k.Core) -> int:
    """The cycle in which a request's data are there.

    Args:
        address: physical address, bytes.
        cycle: when the last-level cache asks.
        write: a write-back; nobody waits for it.
        m: the core.
    """
    t = m.t
    # Tick n happens in cycle (n - 1) * numerator // denominator + 1.
    up, down = t[k.TICK_NUMERATOR], t[k.TICK_DENOMINATOR]
    now = -((1 - cycle) * down // up) + 1
    groups, bank_bits = t[k.DRAM_GROUP_BITS], t[k.DRAM_BANK_BITS]
    rest = address >> _LINE_BITS
    group = rest & ((1 << groups) - 1)
    bank = (rest >> groups) & ((1 << bank_bits) - 1)
    row = (rest >> (groups + bank_bits + t[k.DRAM_COLUMN_BITS])) & ((1 << t[k.DRAM_ROW_BITS]) - 1)
    spread = row
    for _ in range(t[k.DRAM_ROW_BITS] // (groups + bank_bits)):
        group ^= spread & ((1 << groups) - 1)
        bank ^= (spread >> groups) & ((1 << bank_bits) - 1)
        spread >>= groups + bank_bits
    state = m.banks[(group << bank_bits) | bank]
    # The model asks in the order of the program, not of time: what comes later waits for nothing
    # that it has asked before.
    in_order = now >= state[3]
    start = max(now, state[1]) if in_order else now
    refreshes = start // t[k.DRAM_REFRESH]
    if refreshes > state[2]:
        state[0] = -1
        state[2] = refreshes
    start = max(start, refreshes * t[k.DRAM_REFRESH] + t[k.DRAM_REFRESHED] * (refreshes > 0))
    ready = start + t[k.DRAM_CAS]
    if state[0] == row:
        m.counts[k.N_ROW_HITS] += 1
    else:
        m.counts[k.N_ROW_MISSES] += 1
        ready += t[k.DRAM_RCD] + (t[k.DRAM_RP] if state[0] >= 0 and in_order else 0)
    burst = t[k.DRAM_BURST]
    begin = max(ready, take(k.PORT_BUS, ready // burst, 1, m) * burst)
    end = begin + burst
    same = m.group_used[group] + t[k.DRAM_SAME_GROUP]
    if m.group_used[group] <= begin < same:
        end = same + burst
    if in_order:
        m.group_used[group] = begin
        state[0] = row
        state[1] = end
        state[3] = now
    if write:
        m.counts[k.N_DRAM_WRITES] += 1
    return int((end - 1) * up // down + 1)
