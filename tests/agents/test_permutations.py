"""Every agent searches orders, small and large ones, and those that search find good ones."""

from __future__ import annotations

import itertools
import math
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.linalg import eigvalsh

from archgym.agents.gp.gaussian_process import GaussianProcess
from archgym.agents.gp.levels import Columns, coordinates
from archgym.environment.environment import Environment
from archgym.problem.metrics import Metric
from archgym.registry import agent_names, make_agent
from archgym.space import Categorical, DesignSpace, Integer, Permutation, param
from archgym.views.multi_agent import ParallelView
from archgym.views.stepwise import Steps, StepwiseView

LETTERS = "ABCDEF"
ITEMS = [f"op{i}" for i in range(10)]


class Loops(Environment):
    """Two orders; the cost is one more than the pairs that stand otherwise than in the best."""

    design_spaces: ClassVar = {
        "default": DesignSpace(
            [
                Categorical("kind", ["nest", "flat"]),
                Permutation("order", list(LETTERS), when=param("kind") == "nest"),
                Integer("ways", 1, 4),
            ]
        ),
        "large": DesignSpace([Permutation("order", ITEMS), Integer("ways", 1, 4)]),
    }
    metrics: ClassVar = (Metric("time_ns", "ns", "minimize"),)
    default_objective: ClassVar = "minimize time_ns"

    @property
    def baseline(self) -> dict[str, Any]:  # type: ignore[override]
        if "kind" in self.design_space:
            return {"kind": "nest", "order": LETTERS, "ways": 1}
        return {"order": ITEMS, "ways": 1}

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        if "order" not in design:
            return {"time_ns": 20.0 + design["ways"]}
        order = design["order"].split("-") if "-" in design["order"] else list(design["order"])
        best = sorted(order, key=lambda item: hash_of(item))
        pairs = itertools.combinations(best, 2)
        return {
            "time_ns": 1.0 + design["ways"] + sum(order.index(a) > order.index(b) for a, b in pairs)
        }


def hash_of(item: str) -> int:
    """A fixed shuffle."""
    return sum(map(ord, item)) * 7 % 11


@pytest.mark.full
@pytest.mark.parametrize("space", ["default", "large"])
@pytest.mark.parametrize("name", sorted(agent_names()))
def test_every_agent_searches_orders(name: str, space: str) -> None:
    env = Loops(space=space)
    if name == "dqn" and space == "large":
        pytest.skip("its network has an output for each design")
    agent = make_agent(name, env.design_space, seed=1)
    result = agent.search(env, budget=40)
    assert result.simulations > 0
    assert result.best is not None
    assert math.isfinite(result.best.metrics["time_ns"] or math.nan)


@pytest.mark.parametrize("name", ["local", "ga", "sa", "aco"])
def test_searches_find_orders_that_random_draws_do_not(name: str) -> None:
    best = {}
    for contestant in (name, "random"):
        costs = []
        for seed in range(5):
            env = Loops(space="large")
            agent = make_agent(contestant, env.design_space, seed=seed)
            found = agent.search(env, budget=300).best
            assert found is not None
            costs.append(found.objectives[0])
        best[contestant] = np.median(costs)
    assert best[name] < 0.75 * best["random"]


def test_the_process_learns_orders_from_few() -> None:
    space = Loops.design_spaces["default"].fix({"kind": "nest", "ways": 1})
    rng = np.random.default_rng(0)
    known, new = (space.sample(n, rng) for n in (60, 200))
    costs = [np.array([Loops().simulate(one)["time_ns"] for one in some]) for some in (known, new)]
    model = GaussianProcess(Columns.of(space))
    x = coordinates(space, known.codes)
    model.tune(x, costs[0])
    model.fit(x, costs[0])
    mean, _ = model.predict(coordinates(space, new.codes))
    assert np.corrcoef(mean, costs[1])[0, 1] > 0.9


def test_the_kernel_is_positive_definite_and_ignores_names() -> None:
    parameter = Permutation("order", list("ABCD"))
    space = DesignSpace(
        [
            Categorical("kind", ["nest", "flat"]),
            Permutation("order", "ABCD".__iter__(), when=param("kind") == "nest"),
        ]
    )
    columns = Columns.of(space)
    designs = next(space.enumerate())
    x = coordinates(space, designs.codes)
    for seed in range(5):
        model = GaussianProcess(columns, np.random.default_rng(seed))
        kernel = model.correlation(x, x)
        assert eigvalsh(kernel).min() > -1e-9
    orders = [design.get("order") for design in designs]
    rows = [row for row, order in enumerate(orders) if order is not None]
    table = str.maketrans("ABCD", "CADB")
    renamed = [orders.index(str(orders[row]).translate(table)) for row in rows]
    assert kernel[np.ix_(rows, rows)] == pytest.approx(kernel[np.ix_(renamed, renamed)])
    near, far = (parameter.code(text) for text in ("BACD", "DCBA"))
    first = rows[0]
    assert kernel[first, first + near] > kernel[first, first + far]


def test_orders_are_chosen_item_by_item() -> None:
    space = Loops.design_spaces["default"]
    steps, rng = Steps(space), np.random.default_rng(0)
    assert steps.sizes == [2, 6, 5, 4, 3, 2, 4]
    seen = set()
    for _ in range(300):
        partial, done = steps.start(), False
        chosen = []
        while not done:
            allowed = np.flatnonzero(steps.mask(partial))
            row = np.empty(2 * len(steps.places), dtype=np.float32)
            steps.observe(partial, row)
            assert (np.abs(row) <= 1).all()
            assert row[len(steps.places) + partial.place] == 1.0
            chosen.append(int(rng.choice(allowed)))
            done = steps.choose(partial, chosen[-1])
        design = steps.designs([partial])[0]
        if design["kind"] == "nest":
            left = list(LETTERS)
            order = [left.pop(choice) for choice in [*chosen[1:6], 0]]
            assert design["order"] == "".join(order)
            seen.add(design["order"])
        else:
            assert len(chosen) == 2
    assert len(seen) > 100
    view = StepwiseView(Loops(space="large"))
    view.reset(seed=0)
    assert view.action_space.n == 10  # type: ignore[attr-defined]
    assert view.next_parameter == "order"


@pytest.mark.parametrize("action", ["multi_discrete", "box"])
def test_an_agent_of_the_parallel_view_chooses_a_whole_order(action: str) -> None:
    view = ParallelView(Loops(action=action))
    view.reset(seed=0)
    actions = {name: view.action_space(name).sample() for name in view.agents}
    assert len(np.atleast_1d(actions["order"])) == (5 if action == "multi_discrete" else 6)
    *_, infos = view.step(actions)
    assert set(infos["order"]["design"]) >= {"kind", "ways"}
