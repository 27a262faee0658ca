"""Predictors that sum weights.

Perceptron: D. A. Jimenez and C. Lin, Dynamic branch prediction with perceptrons, HPCA 2001: a row
of weights for each branch, one weight for each bit of history. Hashed perceptron: D. Tarjan and K.
Skadron, Merging path and gshare indexing in perceptron branch prediction, ACM TACO 2005, with the
geometric histories and the adaptive threshold of A. Seznec, Analysis of the O-GEHL branch
predictor, ISCA 2005: a weight for each of several histories, found by a hash.

Sizes and indices are those of ChampSim (commit 2ff2501). There the front end asks the predictor
about every instruction, because it does not know yet which ones are branches, and the perceptron's
speculative history takes each of these answers until a misprediction restores it.
"""

from __future__ import annotations

from archgym.envs.cpu.branch import layout as k
from archgym.envs.cpu.branch.compiled import inlined
from archgym.envs.cpu.branch.counters import count

_LOW, _HIGH = -128, 127
# How many updates of one kind move the threshold of the hashed perceptron.
_SPEED = 18


@inlined
def predict_perceptron(ip: int, m: k.Unit) -> bool:
    """Whether the weights of the branch's row agree with the history; notes the prediction."""
    row = ip % m.s[k.C_ENTRIES]
    length = m.s[k.C_HISTORY]
    history = m.s[k.S_SPECULATIVE]
    first = row * m.s[k.C_ROW]
    total = int(m.weights[first + length])
    for bit in range(length):
        weight = int(m.weights[first + bit])
        total += weight if (history >> bit) & 1 else -weight
    m.s[k.S_INDEX] = row
    m.s[k.S_OUTPUT] = total
    m.s[k.S_PROVIDED] = history
    taken = total >= 0
    m.s[k.S_SPECULATIVE] = ((history << 1) | taken) & ((1 << length) - 1)
    return bool(taken)


@inlined
def update_perceptron(taken: bool, m: k.Unit) -> None:
    """Append the outcome to the history; train the row if it was wrong or unsure."""
    length = m.s[k.C_HISTORY]
    output = m.s[k.S_OUTPUT]
    m.s[k.S_HISTORY] = ((m.s[k.S_HISTORY] << 1) | taken) & ((1 << length) - 1)
    wrong = (output >= 0) != taken
    if wrong:
        m.s[k.S_SPECULATIVE] = m.s[k.S_HISTORY]
    if wrong or abs(output) <= m.s[k.C_THETA]:
        row = m.s[k.S_INDEX]
        seen = m.s[k.S_PROVIDED]
        count(row, length, taken, _LOW, _HIGH, m)
        for bit in range(length):
            count(row, bit, ((seen >> bit) & 1) == taken, _LOW, _HIGH, m)


@inlined
def fold_histories(taken: bool, m: k.Unit) -> None:
    """Append an outcome to the ring of outcomes and to every folded history of every table."""
    head = m.s[k.S_HEAD]
    ring = m.outcomes.shape[0] - 1
    for table in range(m.s[k.C_TABLES]):
        length = m.lengths[table]
        if length == 0:
            continue
        leaving = int(m.outcomes[(head - length) & ring])
        for fold in range(m.s[k.C_FOLDS]):
            width = m.widths[fold]
            value = (m.folds[table, fold] << 1) | taken
            value ^= leaving << (length % width)
            value ^= value >> width
            m.folds[table, fold] = value & ((1 << width) - 1)
    m.outcomes[head & ring] = taken
    m.s[k.S_HEAD] = head + 1


@inlined
def predict_hashed(ip: int, m: k.Unit) -> bool:
    """Whether the weights that branch and histories select sum to one or more."""
    mask = m.s[k.C_ENTRIES] - 1
    total = 0
    for table in range(m.s[k.C_TABLES]):
        index = (m.folds[table, 0] ^ ip) & mask
        m.indices[table] = index
        total += int(m.weights[table * m.s[k.C_ROW] + index])
    m.s[k.S_OUTPUT] = total
    return total >= 1


@inlined
def update_hashed(taken: bool, m: k.Unit) -> None:
    """Append the outcome to the histories; train if wrong or unsure, and adapt the threshold."""
    fold_histories(taken, m)
    output = m.s[k.S_OUTPUT]
    right = (output >= 1) == taken
    if right and abs(output) >= m.s[k.S_THETA]:
        return
    for table in range(m.s[k.C_TABLES]):
        count(table, m.indices[table], taken, _LOW, _HIGH, m)
    m.s[k.S_TRAINED] += -1 if right else 1
    if m.s[k.S_TRAINED] >= _SPEED:
        m.s[k.S_THETA] += 1
        m.s[k.S_TRAINED] = 0
    elif m.s[k.S_TRAINED] <= -_SPEED:
        m.s[k.S_THETA] -= 1
        m.s[k.S_TRAINED] = 0
