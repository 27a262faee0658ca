"""Operators on permutations: always orders, what they reach, and the Mallows model."""

from __future__ import annotations

import numpy as np
import pytest

from archgym.agents.common.moves import Moves
from archgym.agents.common.orders import Mallows, crossed, reordered
from archgym.agents.common.parzen import GoodAndOther
from archgym.space import Categorical, DesignSpace, Permutation, param

FIVE = Permutation("order", ["A", "B", "C", "D", "E"])
LARGE = Permutation("order", [f"item{i}" for i in range(12)])
SPACE = DesignSpace(
    [
        Categorical("kind", ["nest", "flat"]),
        Permutation("order", ["A", "B", "C", "D"], when=param("kind") == "nest"),
        LARGE_INNER := Permutation("inner", [f"item{i}" for i in range(12)]),
    ]
)


@pytest.mark.parametrize("parameter", [Permutation("two", ["A", "B"]), FIVE, LARGE])
def test_moves_are_other_orders(parameter: Permutation) -> None:
    rng = np.random.default_rng(0)
    start = rng.integers(parameter.size, size=2000)
    moved = reordered(parameter, start, rng)
    assert (moved != start).all()
    assert ((moved >= 0) & (moved < parameter.size)).all()
    items = np.sort(parameter.orders(moved), axis=1)
    assert (items == np.arange(len(parameter.items))).all()


def test_moves_reach_swaps_insertions_and_reversals_of_every_part() -> None:
    moved = reordered(FIVE, np.zeros(20_000, dtype=np.int64), np.random.default_rng(0))
    found = {FIVE.value(code) for code in np.unique(moved).tolist()}
    expected = {FIVE.value(int(code)) for code in FIVE.neighbours(0)}
    for low in range(5):
        for high in range(low + 2, 6):
            expected.add("ABCDE"[:low] + "ABCDE"[low:high][::-1] + "ABCDE"[high:])
    assert found == expected


def test_children_are_orders_that_mix_both_parents() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(120, size=(2, 3000))
    child = crossed(FIVE, first, second, rng)
    assert (np.sort(FIVE.orders(child), axis=1) == np.arange(5)).all()
    assert (crossed(FIVE, first, first, rng) == first).all()
    # Each item stands where the first parent has it, or in the second's order among such.
    parents_and_child = [FIVE.orders(codes).tolist() for codes in (first, second, child)]
    for a, b, c in zip(*parents_and_child, strict=True):
        moved = [item for place, item in enumerate(c) if a[place] != item]
        assert moved == sorted(moved, key=b.index)
    one, other, both = (FIVE.precedence(codes) for codes in (first, second, child))
    from_either = ((both == one) | (both == other))[one == other]
    assert from_either.mean() > 0.8  # what the parents agree on is mostly kept


@pytest.mark.parametrize("share", [0.05, 0.2, 0.45])
def test_the_mallows_model_is_a_distribution_and_is_drawn_as_such(share: float) -> None:
    model = Mallows(FIVE, share)
    centre = np.array([31])
    chance = np.exp(model.log(np.arange(120), centre))[:, 0]
    assert chance.sum() == pytest.approx(1.0)
    apart = FIVE.discordance(np.arange(120), centre)[:, 0]
    assert chance @ apart == pytest.approx(share)
    drawn = model.draw(np.full(60_000, 31), np.random.default_rng(0))
    counts = np.bincount(drawn, minlength=120)
    expected = 60_000 * chance
    often = expected > 5
    assert ((counts - expected)[often] ** 2 / expected[often]).sum() < 2.2 * often.sum() + 10


def test_wide_mallows_models_are_uniform() -> None:
    assert np.exp(Mallows(FIVE, 0.9).log(np.arange(120), np.array([0]))) == pytest.approx(1 / 120)


def test_operators_of_spaces_handle_inactive_and_large_ones() -> None:
    rng = np.random.default_rng(0)
    moves = Moves(SPACE, rng)
    first, second = (SPACE.sample(300, rng).codes for _ in range(2))
    flat = first[:, 0] == 1
    for designs in (
        moves.mutate(first, rng.integers(4, size=300)),
        moves.crossover(first, second),
        moves.around(first[:1]),
        moves.around(first[flat][:1]),
        GoodAndOther(moves, rng, first[:20], second).sample(90),
    ):
        assert ((designs.codes[:, 1] < 0) == (designs.codes[:, 0] == 1)).all()
        assert (designs.codes < [2, 24, LARGE_INNER.size]).all()
        assert (SPACE.designs(list(designs)).codes == designs.codes).all()
    density = GoodAndOther(moves, rng, first[:20], second)
    scores = density.score(SPACE.sample(50, rng))
    assert np.isfinite(scores).all()
    good = density.score(SPACE.canonicalise(first[:20])).mean()
    assert good > scores.mean()
