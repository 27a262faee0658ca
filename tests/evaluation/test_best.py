from __future__ import annotations

import numpy as np

from archgym.evaluation.best import Best
from archgym.space import Designs
from tests.helpers import Adder, Grumpy


def plain(x: int, y: int) -> dict[str, object]:
    return {"x": x, "y": y, "mode": "plain"}


def test_the_best_is_the_first_of_the_smallest() -> None:
    env, best = Adder(), Best()
    assert best.front == []
    assert best.update(env.evaluate_batch([plain(4, 4), plain(2, 1), plain(0, 2), plain(2, 0)]))
    assert best.outcome is not None
    assert (best.outcome.design, best.at) == (plain(0, 2), 2)
    assert not best.update(env.evaluate_batch([plain(2, 0), plain(1, 1)]))
    assert best.update(env.evaluate_batch([plain(3, 3), plain(0, 0)]))
    assert (best.outcome.design, best.at) == (plain(0, 0), 6)
    assert best.front == [best.outcome]


def test_a_feasible_design_beats_an_infeasible_one() -> None:
    env = Adder(objective={"minimize": "total_ns", "limits": ["speed_rate <= 0.2"]})
    best = Best()
    for design, wanted in (
        (plain(0, 0), plain(0, 0)),  # over the limit by the most
        (plain(1, 1), plain(1, 1)),  # by less
        (plain(4, 3), plain(4, 3)),  # not at all
        (plain(0, 1), plain(4, 3)),
        (plain(4, 0), plain(4, 0)),  # just within, and faster
    ):
        best.update(env.evaluate_batch([design]))
        assert best.outcome is not None
        assert best.outcome.design == wanted


def test_failures_are_never_the_best() -> None:
    env, best = Grumpy(), Best()
    assert not best.update(env.evaluate_batch([plain(0, 0), plain(1, 0), plain(3, 0)]))
    assert best.outcome is None
    assert best.update(env.evaluate_batch([plain(2, 4)]))
    assert best.at == 3  # two failures were simulated before; x = 3 is not covered


def test_the_front_is_that_of_brute_force() -> None:
    env = Adder(objective={"minimize": "total_ns", "target": {"speed_rate": 0.2}})
    best = Best()
    designs = np.concatenate([part.codes for part in env.design_space.enumerate()])
    np.random.default_rng(0).shuffle(designs)
    found = []
    for start in range(0, len(designs), 10):
        outcomes = env.evaluate_batch(Designs(env.design_space, designs[start : start + 10]))
        best.update(outcomes)
        found += list(outcomes)
    values = np.array([outcome.objectives for outcome in found])
    kept = {
        tuple(v) for v in values if not ((values <= v).all(axis=1) & (values < v).any(axis=1)).any()
    }
    front = [outcome.objectives for outcome in best.front]
    assert set(front) == kept
    assert len(front) == len(kept)
