"""One branch prediction unit, instruction by instruction."""

from __future__ import annotations

from collections.abc import Callable

from archgym.envs.cpu.branch import layout as k
from archgym.envs.cpu.branch.compiled import compiled, entry, inlined
from archgym.envs.cpu.branch.counters import (
    predict_bimodal,
    predict_gshare,
    update_bimodal,
    update_gshare,
)
from archgym.envs.cpu.branch.perceptrons import (
    predict_hashed,
    predict_perceptron,
    update_hashed,
    update_perceptron,
)
from archgym.envs.cpu.branch.tage import predict_tage, update_tage
from archgym.envs.cpu.branch.targets import find, predicted_target, update_targets


@inlined
def _direction(ip: int, m: k.Unit) -> bool:
    kind = m.s[k.C_KIND]
    if kind == k.BIMODAL:
        return predict_bimodal(ip, m)
    if kind == k.GSHARE:
        return predict_gshare(ip, m)
    if kind == k.PERCEPTRON:
        return predict_perceptron(ip, m)
    if kind == k.HASHED_PERCEPTRON:
        return predict_hashed(ip, m)
    return predict_tage(ip, m)


@inlined
def _learn(kind: int, taken: bool, m: k.Unit) -> None:
    predictor = m.s[k.C_KIND]
    if predictor == k.BIMODAL:
        update_bimodal(taken, m)
    elif predictor == k.GSHARE:
        update_gshare(taken, m)
    elif predictor == k.PERCEPTRON:
        update_perceptron(taken, m)
    elif predictor == k.HASHED_PERCEPTRON:
        update_hashed(taken, m)
    else:
        update_tage(kind in (k.CONDITIONAL, k.OTHER), taken, m)


@compiled
def _branch(ip: int, kind: int, taken: bool, target: int, m: k.Unit) -> int:
    """Predict one branch, then learn from it."""
    known = find(ip, m)
    always = known >= 0 and m.target_kinds[known] != k.BY_DIRECTION
    direction = _direction(ip, m)
    says_taken = direction or always
    goes_to = 0
    if says_taken and known >= 0:
        goes_to = predicted_target(ip, known, m)
    by_direction = kind in (k.CONDITIONAL, k.OTHER)
    right_way = taken == says_taken
    wrong = goes_to != target or (by_direction and not right_way)
    update_targets(ip, kind, taken, target, m)
    _learn(kind, taken, m)
    m.branches[kind] += 1
    if not wrong:
        return k.PREDICTED
    m.wrong[kind] += 1
    direct = kind in (k.DIRECT_JUMP, k.DIRECT_CALL)
    if direct or (by_direction and right_way):
        return k.WRONG_UNTIL_DECODE
    return k.WRONG_UNTIL_EXECUTE


@inlined
def observe(ip: int, kind: int, taken: bool, target: int, shares: bool, m: k.Unit) -> int:
    """Predict the next instruction of the stream, then learn what it did.

    Args:
        ip: address of the instruction.
        kind: its kind, one of ``layout``'s; ``NOT_BRANCH`` for most.
        taken: whether it jumped.
        target: where it jumped to; 0 if it did not.
        shares: whether its word of four bytes holds a branch somewhere in the stream; without one,
            the branch target buffer need not be looked up.
        m: the unit.

    Returns:
        ``PREDICTED``, ``WRONG_UNTIL_DECODE`` or ``WRONG_UNTIL_EXECUTE``.
    """
    if kind != k.NOT_BRANCH:
        return _branch(ip, kind, taken, target, m)
    if shares:
        find(ip, m)
    if m.s[k.C_KIND] == k.PERCEPTRON:
        predict_perceptron(ip, m)
    return k.PREDICTED


def _make_predict(sources: int) -> Callable[..., None]:
    def predict_stream(
        ip: k.Array, kind: k.Array, taken: k.Array, target: k.Array, shares: k.Array, m: k.Unit
    ) -> None:
        _ = sources
        for i in range(ip.shape[0]):
            observe(ip[i], kind[i], taken[i], target[i], shares[i], m)

    return predict_stream


predict_stream = entry(_make_predict)
"""Let a unit see a whole stream; it counts branches and mispredictions by kind."""
