"""Branch predictors on streams whose mispredictions are known."""

from __future__ import annotations

import random

import numpy as np
import pytest

from archgym.envs.cpu.branch.layout import (
    CONDITIONAL,
    DIRECT_CALL,
    DIRECT_JUMP,
    INDIRECT,
    INDIRECT_CALL,
    NOT_BRANCH,
    OTHER,
    PREDICTORS,
    RETURN,
)
from archgym.envs.cpu.branch.settings import BranchUnit
from archgym.envs.cpu.branch.stream import Branches, branch_kinds, mispredictions
from archgym.errors import InvalidValueError, TraceError


def outcomes(taken: list[bool]) -> Branches:
    """One conditional branch at 0x1000 with these outcomes, and what it jumps over."""
    ip: list[int] = []
    kind: list[int] = []
    jumps: list[bool] = []
    for outcome in taken:
        ip += [0x1000, 0x2000 if outcome else 0x1004]
        kind += [CONDITIONAL, DIRECT_JUMP]
        jumps += [outcome, True]
    return Branches.of(ip, kind, jumps)


def wrong(branches: Branches, unit: BranchUnit) -> dict[str, int]:
    return mispredictions(branches, unit).wrong


def test_a_biased_branch_costs_its_training_only() -> None:
    for predictor in PREDICTORS:
        found = wrong(outcomes([True] * 500), BranchUnit(predictor))
        assert found["conditional"] <= 20, predictor


@pytest.mark.parametrize("period", [3, 5, 8])
def test_a_loop_costs_bimodal_one_branch_a_round_and_histories_none(period: int) -> None:
    """A loop of p rounds: p - 1 branches taken, then one that is not."""
    rounds = 400
    stream = outcomes(([True] * (period - 1) + [False]) * rounds)
    assert wrong(stream, BranchUnit("bimodal"))["conditional"] == pytest.approx(rounds, abs=3)
    for predictor in ("gshare", "perceptron", "hashed_perceptron", "tage"):
        assert wrong(stream, BranchUnit(predictor))["conditional"] < 0.15 * rounds, predictor


def test_tage_reaches_as_far_as_its_history() -> None:
    """The end of a loop of 60 rounds is known to a history that holds all of it only."""
    stream = outcomes(([True] * 59 + [False]) * 300)
    long = wrong(stream, BranchUnit("tage", history=200))["conditional"]
    short = wrong(stream, BranchUnit("tage", history=16))["conditional"]
    assert long < 60
    assert short >= 290


def test_nothing_predicts_a_fair_coin() -> None:
    rng = random.Random(1)
    stream = outcomes([rng.random() < 0.5 for _ in range(4000)])
    for predictor in PREDICTORS:
        share = wrong(stream, BranchUnit(predictor))["conditional"] / 4000
        assert 0.42 < share < 0.58, predictor


def test_correlated_branches_need_history() -> None:
    """The second branch repeats the first, which is random."""
    rng = random.Random(2)
    ip, taken = [], []
    for _ in range(3000):
        outcome = rng.random() < 0.5
        ip += [0x1000, 0x1010 if outcome else 0x1004, 0x1020]
        taken += [outcome, outcome, True]
    stream = Branches.of(ip, [CONDITIONAL, CONDITIONAL, DIRECT_JUMP] * 3000, taken)
    # The branch after a taken one stands elsewhere than after one that falls through, so bimodal
    # knows both; each is wrong in about every second case for the random one alone.
    for predictor in PREDICTORS:
        share = wrong(stream, BranchUnit(predictor))["conditional"] / 3000
        assert 0.42 < share < 0.62, predictor


def test_returns_follow_their_calls() -> None:
    """Calls of one function from 20 places; the return's target alternates."""
    ip: list[int] = []
    kind: list[int] = []
    for _ in range(50):
        for place in range(20):
            call = 0x10000 + 64 * place
            ip += [call, 0x90000, call + 5]
            kind += [DIRECT_CALL, RETURN, DIRECT_JUMP]
    found = wrong(Branches.of(ip, kind, [True] * len(ip)), BranchUnit())
    # The first sight of the return, and one for each call whose size is not learned yet.
    assert 1 <= found["return"] <= 21
    assert found["direct_call"] == 20


def test_recursion_beyond_the_return_stack_costs_its_excess() -> None:
    depth, rounds = 40, 30
    calls = [0x4000 + 16 * level for level in range(depth)]
    ip: list[int] = []
    kind: list[int] = []
    for _ in range(rounds):
        ip += calls
        kind += [DIRECT_CALL] * depth
        for level in reversed(range(depth)):
            ip += [0x90000 + 16 * level, calls[level] + 5]
            kind += [RETURN, NOT_BRANCH]
    stream = Branches.of(ip, kind, [True] * len(ip))
    enough = wrong(stream, BranchUnit(return_entries=64))["return"]
    short = wrong(stream, BranchUnit(return_entries=16))["return"]
    assert enough <= 3 * depth
    assert short - enough >= (depth - 16) * (rounds - 3)


def test_an_indirect_branch_that_alternates_needs_directions() -> None:
    ip: list[int] = []
    kind: list[int] = []
    taken: list[bool] = []
    for turn in range(600):
        side = turn % 2 == 1
        ip += [0x1000, 0x1010 if side else 0x1004, 0x2000, 0x3000 if side else 0x4000, 0x5000]
        kind += [CONDITIONAL, DIRECT_JUMP, INDIRECT, DIRECT_JUMP, DIRECT_JUMP]
        taken += [side, True, True, True, True]
    found = wrong(Branches.of(ip, kind, taken), BranchUnit("gshare"))
    assert found["indirect"] < 30


def test_a_small_target_buffer_forgets() -> None:
    ip = [0x1000 + 4096 * number for number in range(64)] * 20
    stream = Branches.of(ip, [DIRECT_JUMP] * len(ip), [True] * len(ip))
    assert wrong(stream, BranchUnit())["direct_jump"] > 64  # 64 of them share 4 sets of 8 ways
    spread = Branches.of([ip_ // 1024 for ip_ in ip], [DIRECT_JUMP] * len(ip), [True] * len(ip))
    # The last jump has no target, since the stream ends.
    assert wrong(spread, BranchUnit())["direct_jump"] in (64, 65)


def test_kinds_follow_the_registers() -> None:
    cases = {
        DIRECT_JUMP: ([26, 0], [0, 0, 0, 0]),
        INDIRECT: ([26, 0], [64, 0, 0, 0]),
        CONDITIONAL: ([26, 0], [26, 25, 0, 0]),
        DIRECT_CALL: ([26, 6], [26, 6, 0, 0]),
        INDIRECT_CALL: ([26, 6], [26, 6, 64, 0]),
        RETURN: ([26, 6], [6, 0, 0, 0]),
        OTHER: ([26, 0], [6, 25, 0, 0]),
        NOT_BRANCH: ([64, 0], [65, 0, 0, 0]),
    }
    for kind, (destinations, sources) in cases.items():
        found = branch_kinds(np.array([destinations], np.uint8), np.array([sources], np.uint8))
        assert found[0] == kind


def test_same_stream_same_result() -> None:
    rng = random.Random(3)
    stream = outcomes([rng.random() < 0.8 for _ in range(3000)])
    for predictor in PREDICTORS:
        unit = BranchUnit(predictor)
        assert mispredictions(stream, unit) == mispredictions(stream, unit)


def test_storage_grows_with_the_tables() -> None:
    assert BranchUnit("bimodal").storage_bits("direction") == 2 * 16384
    for predictor in ("gshare", "hashed_perceptron", "tage"):
        small = BranchUnit(predictor, entries=256)
        assert small.storage_bits() < BranchUnit(predictor, entries=512).storage_bits()


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ({"predictor": "tagge"}, "tage"),
        ({"entries": 1000}, "entries: 1000"),
        ({"target_sets": 3}, "target_sets: 3"),
        ({"predictor": "perceptron", "history": 100}, "history: 100"),
        ({"return_entries": 0}, "return_entries: 0"),
        ({"predictor": "tage", "entries": 1 << 20}, "entries: 1048576 make a table of 8388608"),
        ({"target_sets": 1 << 18}, "target_sets: 262144 make a table of 2097152"),
    ],
)
def test_bad_settings_are_named(setting: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidValueError, match=named):
        BranchUnit(**setting)  # type: ignore[arg-type]


def test_bad_streams_are_named() -> None:
    with pytest.raises(TraceError, match="values"):
        Branches.of([1, 2], [7], [False, False])
    with pytest.raises(TraceError, match="kind: 9"):
        Branches.of([1], [9], [False])
