"""TAGE: tagged tables with geometric history lengths.

A. Seznec and P. Michaud, A case for (partially) tagged geometric history length branch prediction,
Journal of Instruction-Level Parallelism 8, 2006. Table 0 is bimodal. The others hold a tag, a
three-bit counter and a two-bit useful counter. The matching table with the longest history
predicts, or the next one if the entry is new and new entries have been worse than what they
replace. A misprediction allocates an entry in a table with a longer history. Draws are those of a
linear congruential generator, so the same stream gives the same result.
"""

from __future__ import annotations

from archgym.envs.cpu.branch import layout as k
from archgym.envs.cpu.branch.compiled import inlined
from archgym.envs.cpu.branch.counters import count
from archgym.envs.cpu.branch.perceptrons import fold_histories

_LOW, _HIGH = -4, 3
_MOST_USEFUL = 3
# After how many conditional branches one bit of all useful counters is cleared.
_AGEING = 1 << 18


@inlined
def _look_up(ip: int, m: k.Unit) -> None:
    """Note each table's index and tag for a branch."""
    mask = m.s[k.C_ENTRIES] - 1
    tag_mask = (1 << m.s[k.C_TAG_BITS]) - 1
    m.indices[0] = ip % m.s[k.C_PRIME]
    for table in range(1, m.s[k.C_TABLES]):
        shift = m.s[k.C_LOG2] - table
        spread = ip ^ (ip >> max(1, abs(shift)))
        m.indices[table] = (spread ^ m.folds[table, 0]) & mask
        m.looked_up[table] = (ip ^ m.folds[table, 1] ^ (m.folds[table, 2] << 1)) & tag_mask


@inlined
def _entry(table: int, m: k.Unit) -> int:
    """Where a table was looked up last."""
    return int(table * m.s[k.C_ROW] + m.indices[table])


@inlined
def _says(table: int, m: k.Unit) -> bool:
    """The prediction of one table."""
    value = m.weights[_entry(table, m)]
    return bool(value > 1) if table == 0 else bool(value >= 0)


@inlined
def predict_tage(ip: int, m: k.Unit) -> bool:
    """The prediction of the matching table with the longest history; notes what it rests on."""
    _look_up(ip, m)
    provider = 0
    alternate = 0
    for table in range(m.s[k.C_TABLES] - 1, 0, -1):
        if m.tags[_entry(table, m)] == m.looked_up[table]:
            if provider == 0:
                provider = table
            else:
                alternate = table
                break
    provided = _says(provider, m)
    alternative = _says(alternate, m)
    fresh = False
    if provider > 0:
        entry = _entry(provider, m)
        value = m.weights[entry]
        fresh = m.useful[entry] == 0 and (value == 0 or value == -1)
    m.s[k.S_PROVIDER] = provider
    m.s[k.S_ALTERNATE] = alternate
    m.s[k.S_PROVIDED] = provided
    m.s[k.S_ALTERNATIVE] = alternative
    m.s[k.S_FRESH] = fresh
    answer = alternative if fresh and m.s[k.S_USE_ALTERNATE] >= 8 else provided
    m.s[k.S_OUTPUT] = answer
    return bool(answer)


@inlined
def _draw(m: k.Unit) -> int:
    """A pseudo-random number of 16 bits."""
    m.s[k.S_RANDOM] = (m.s[k.S_RANDOM] * 1103515245 + 12345) & 0x7FFFFFFF
    return int(m.s[k.S_RANDOM] >> 15)


@inlined
def _allocate(taken: bool, m: k.Unit) -> None:
    """Give the branch an entry with a longer history, or age those that stand in its place."""
    tables = m.s[k.C_TABLES]
    chosen = 0
    for table in range(m.s[k.S_PROVIDER] + 1, tables):
        if m.useful[_entry(table, m)] == 0:
            # A shorter history is twice as likely as the next longer free one.
            if chosen == 0:
                chosen = table
                if _draw(m) % 3 < 2:
                    break
            else:
                chosen = table
                break
    if chosen == 0:
        for table in range(m.s[k.S_PROVIDER] + 1, tables):
            m.useful[_entry(table, m)] -= 1
        return
    entry = _entry(chosen, m)
    m.tags[entry] = m.looked_up[chosen]
    m.weights[entry] = 0 if taken else -1
    m.useful[entry] = 0


@inlined
def _age(m: k.Unit) -> None:
    """Clear the high bit or the low bit of all useful counters, in turn."""
    keep = 1 if (m.s[k.S_CONDITIONALS] // _AGEING) & 1 else 2
    for entry in range(m.s[k.C_ROW], m.s[k.C_TABLES] * m.s[k.C_ROW]):
        m.useful[entry] &= keep


@inlined
def update_tage(conditional: bool, taken: bool, m: k.Unit) -> None:
    """Train on a conditional branch; any branch is appended to the histories."""
    if conditional:
        provider = m.s[k.S_PROVIDER]
        provided = m.s[k.S_PROVIDED] == 1
        alternative = m.s[k.S_ALTERNATIVE] == 1
        index = m.indices[provider]
        if provider > 0 and provided != alternative:
            if m.s[k.S_FRESH] == 1:
                step = 1 if alternative == taken else -1
                m.s[k.S_USE_ALTERNATE] = min(15, max(0, m.s[k.S_USE_ALTERNATE] + step))
            entry = _entry(provider, m)
            useful = int(m.useful[entry]) + (1 if provided == taken else -1)
            m.useful[entry] = min(_MOST_USEFUL, max(0, useful))
        wrong = (m.s[k.S_OUTPUT] == 1) != taken
        # A new entry that was right needs no longer history.
        settled = m.s[k.S_FRESH] == 1 and provided == taken
        if wrong and not settled and provider < m.s[k.C_TABLES] - 1:
            _allocate(taken, m)
        if provider == 0:
            count(0, index, taken, 0, 3, m)
        else:
            count(provider, index, taken, _LOW, _HIGH, m)
        m.s[k.S_CONDITIONALS] += 1
        if m.s[k.S_CONDITIONALS] % _AGEING == 0:
            _age(m)
    fold_histories(taken, m)
