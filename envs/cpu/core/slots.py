"""What can happen in a cycle only so many times.

Instructions are followed in program order, and each takes the first cycle that has room. So the
oldest instruction is served first, as in a scheduler that picks by age.
"""

from __future__ import annotations

from archgym.envs.cpu.core import layout as k
from archgym.envs.cpu.core.compiled import inlined

_MASK = k.SLOT_RING - 1
_COUNT = (1 << k.COUNT_BITS) - 1


@inlined
def take(row: int, earliest: int, width: int, m: k.Core) -> int:
    """Take a slot in the first cycle from ``earliest`` on that has one left; returns the cycle."""
    cycle = earliest
    taken = taken_in(row, cycle, m)
    while taken >= width:
        cycle += 1
        taken = taken_in(row, cycle, m)
    m.slots[row, cycle & _MASK] = (cycle << k.COUNT_BITS) + taken + 1
    return cycle


@inlined
def taken_in(row: int, cycle: int, m: k.Core) -> int:
    """How many slots of a cycle are taken."""
    entry = m.slots[row, cycle & _MASK]
    return int(entry & _COUNT) if entry >> k.COUNT_BITS == cycle else 0


@inlined
def in_order(stage: int, within: int, earliest: int, width: int, m: k.Core) -> int:
    """The next instruction of a stage that serves ``width`` a cycle in program order.

    Args:
        stage: where the state holds the stage's last cycle.
        within: where it holds how many it served in that cycle.
        earliest: the first cycle that is possible.
        width: instructions in a cycle.
        m: the core.
    """
    before, served = m.s[stage], m.s[within]
    new = earliest > before or served >= width
    cycle = max(before + 1, earliest) if new else before
    m.s[stage] = cycle
    m.s[within] = 1 if new else served + 1
    return int(cycle)


@inlined
def take_data_port(row: int, earliest: int, m: k.Core) -> int:
    """The cycle in which the data cache takes an access of the core.

    It takes one read and one write in a cycle, and no more than its pipeline of look-ups holds.

    Args:
        row: ``PORT_L1D_READ`` or ``PORT_L1D_WRITE``.
        earliest: the first cycle that is possible.
        m: the core.
    """
    stages = m.t[k.LOOK_UP + 1]
    cycle = earliest
    while True:
        if taken_in(row, cycle, m) == 0:
            under_way = 0
            for before in range(stages + 1):
                under_way += taken_in(k.PORT_L1D_TAG, cycle - before, m)
            if under_way < 2 * stages and taken_in(k.PORT_L1D_TAG, cycle, m) < 2:
                take(row, cycle, 1, m)
                return take(k.PORT_L1D_TAG, cycle, 2, m)
        cycle += 1
