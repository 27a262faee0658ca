"""Targets: a branch target buffer, a table of indirect targets and a return stack.

As ChampSim's ``basic_btb`` (commit 2ff2501). The buffer is set-associative with least recent use;
an entry stands for an aligned word of four bytes, so that two branches in one word share it.
Indirect branches look up their target by address and by the directions of the last conditional
branches. A return goes to the last call's address plus the size of that call, which is learned.
"""

from __future__ import annotations

from archgym.envs.cpu.branch import layout as k
from archgym.envs.cpu.branch.compiled import inlined

# Targets further than this from the call do not teach its size.
_LONGEST_CALL = 10


@inlined
def _first_way(ip: int, m: k.Unit) -> int:
    """Where the set of an instruction's word begins."""
    return int(((ip >> 2) & (m.s[k.C_SETS] - 1)) * m.s[k.C_WAYS])


@inlined
def find(ip: int, m: k.Unit) -> int:
    """The entry that holds an instruction's word, marked as used; -1: none."""
    word = ip >> 2
    first = _first_way(ip, m)
    for place in range(first, first + m.s[k.C_WAYS]):
        if m.target_tags[place] == word:
            m.s[k.S_CLOCK] += 1
            m.target_used[place] = m.s[k.S_CLOCK]
            return place
    return -1


@inlined
def _indirect_entry(ip: int, m: k.Unit) -> int:
    mask = m.s[k.C_INDIRECT] - 1
    return int(((ip >> 2) ^ (m.s[k.S_DIRECTIONS] & mask)) & mask)


@inlined
def predicted_target(ip: int, entry: int, m: k.Unit) -> int:
    """Target of the buffer's entry; 0: none is known.

    Args:
        ip: address of the instruction.
        entry: what :func:`find` returned, not -1.
        m: the unit.
    """
    kind = m.target_kinds[entry]
    if kind == k.BY_RETURN_STACK:
        depth = m.s[k.S_DEPTH]
        if depth == 0:
            return 0
        call = m.returns[(m.s[k.S_CALLS] - 1) % m.s[k.C_RETURNS]]
        return int(call + m.call_sizes[call & (k.CALL_SIZES - 1)])
    if kind == k.BY_HISTORY:
        return int(m.indirect[_indirect_entry(ip, m)])
    return int(m.targets[entry])


@inlined
def _learn_return(target: int, m: k.Unit) -> None:
    """Take the last call from the stack and learn its size from where the return went."""
    if m.s[k.S_DEPTH] == 0:
        return
    m.s[k.S_DEPTH] -= 1
    m.s[k.S_CALLS] -= 1
    call = m.returns[m.s[k.S_CALLS] % m.s[k.C_RETURNS]]
    size = abs(target - call)
    if size <= _LONGEST_CALL:
        m.call_sizes[call & (k.CALL_SIZES - 1)] = size


@inlined
def _keep_target(ip: int, kind: int, target: int, m: k.Unit) -> None:
    """Write a branch to the buffer; one that was not taken changes its entry's use only."""
    entry = find(ip, m)
    if target == 0:
        return
    if entry < 0:
        entry = first = _first_way(ip, m)
        for other in range(first + 1, first + m.s[k.C_WAYS]):
            if m.target_used[other] < m.target_used[entry]:
                entry = other
        m.target_tags[entry] = ip >> 2
    m.s[k.S_CLOCK] += 1
    m.target_used[entry] = m.s[k.S_CLOCK]
    m.targets[entry] = target
    says = k.ALWAYS_TAKEN
    if kind in (k.INDIRECT, k.INDIRECT_CALL):
        says = k.BY_HISTORY
    elif kind == k.RETURN:
        says = k.BY_RETURN_STACK
    elif kind == k.CONDITIONAL:
        says = k.BY_DIRECTION
    m.target_kinds[entry] = says


@inlined
def update_targets(ip: int, kind: int, taken: bool, target: int, m: k.Unit) -> None:
    """Learn where a branch went (target 0 if it was not taken)."""
    if kind in (k.DIRECT_CALL, k.INDIRECT_CALL):
        m.returns[m.s[k.S_CALLS] % m.s[k.C_RETURNS]] = ip
        m.s[k.S_CALLS] += 1
        m.s[k.S_DEPTH] = min(m.s[k.S_DEPTH] + 1, m.s[k.C_RETURNS])
    if kind in (k.INDIRECT, k.INDIRECT_CALL):
        m.indirect[_indirect_entry(ip, m)] = target
    if kind == k.CONDITIONAL:
        m.s[k.S_DIRECTIONS] = ((m.s[k.S_DIRECTIONS] << 1) | taken) & 0xFFFFFF
    elif kind == k.RETURN:
        _learn_return(target, m)
    _keep_target(ip, kind, target, m)
