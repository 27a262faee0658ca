"""The data that model-based agents learn from."""

from __future__ import annotations

import numpy as np

from archgym.agents.common.observations import Observations
from archgym.envs.conformance import ConformanceEnvironment


def told(n: int) -> tuple[ConformanceEnvironment, Observations]:
    env = ConformanceEnvironment()
    data = Observations(env.design_space, len(env.objective.goals))
    designs = env.design_space.sample(n, np.random.default_rng(0))
    data.learn(designs, env.evaluate_batch(designs))
    return env, data


def test_every_design_counts_once() -> None:
    env, data = told(40)
    known = len(data)
    again = env.design_space.sample(40, np.random.default_rng(0))
    assert data.learn(again, env.evaluate_batch(again)) == (0, False)
    assert len(data) == known == len(np.unique(data.codes, axis=0))
    shapes = {len(data.costs), len(data.goals), len(data.excess), len(data.failed)}
    assert shapes == {known}


def test_what_is_waited_for_is_known_until_it_is_told() -> None:
    env, data = told(5)
    known = len(data)
    taken = {tuple(row) for row in data.codes.tolist()}
    others = env.design_space.sample(99, np.random.default_rng(1))
    design = next(others[i : i + 1] for i in range(99) if tuple(others.codes[i]) not in taken)
    data.wait_for(design)
    assert (data.asked, len(data)) == (known + 1, known)
    assert (data.waiting == design.codes).all()
    assert data.learn(design, env.evaluate_batch(design)) == (1, True)
    assert (data.asked, len(data), len(data.waiting)) == (known + 1, known + 1, 0)


def test_the_best_and_the_newest_half_are_kept() -> None:
    _, data = told(90)
    assert data.rows(len(data)).tolist() == list(range(len(data)))
    rows = data.rows(20)
    assert len(rows) == len(set(rows.tolist())) == 20
    assert set(data.costs.argsort(kind="stable")[:10].tolist()) <= set(rows.tolist())
    newest = set(range(len(data))) - set(data.ranked()[:10].tolist())
    assert set(sorted(newest)[-10:]) <= set(rows.tolist())
