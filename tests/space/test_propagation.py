"""Legal designs are drawn also where the rules keep one in a million."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import archgym
from archgym.errors import DesignError
from archgym.problem import Metric
from archgym.registry import make_agent
from archgym.space import Boolean, Categorical, DesignSpace, Integer, Rule, param
from archgym.space.counting.propagation import Propagation, is_sparse


def narrow(levels: int = 100, free: int = 4) -> DesignSpace:
    """One draw in ``levels ** 3`` keeps the rules; 10^8 designs are legal by default."""
    names = ["a", "b", "c", "d"]
    same = [
        Rule(f"{one} is {other}", param(one) == param(other))
        for one, other in itertools.pairwise(names)
    ]
    chained = [Integer(name, 1, levels) for name in names]
    return DesignSpace([*chained, *(Integer(f"x{i}", 0, 31) for i in range(free))], same)


def test_a_rule_that_one_draw_in_a_million_keeps() -> None:
    space = narrow()
    assert is_sparse(space)
    assert space.canonical_cardinality == 100 * 32**4
    drawn = space.sample(5000, np.random.default_rng(0))
    assert space.legal(drawn).all()
    assert len({tuple(row) for row in drawn.codes.tolist()}) > 4900
    counts = np.bincount(drawn.codes[:, 0], minlength=100)
    assert counts.min() > 15
    assert counts.max() < 100
    again = space.sample(5000, np.random.default_rng(0))
    assert np.array_equal(drawn.codes, again.codes)
    assert len(space.sample(1, np.random.default_rng(1))) == 1


def test_every_legal_design_is_drawn_as_often_as_sifting_does() -> None:
    space = DesignSpace(
        [
            Categorical("kind", ["none", "small", "large"]),
            Integer("ways", 1, 4, when=param("kind") != "none"),
            Boolean("lock", when=param("kind") == "large"),
            Integer("size", 1, 5),
            Integer("banks", 1, 3),
        ],
        [
            Rule("fits", param("ways") * param("size") <= 6),
            Rule("b", param("banks") < param("size")),
        ],
    )
    assert not is_sparse(space)
    n = 40_000
    sifted = space.sample(n, np.random.default_rng(0)).codes
    drawn = Propagation(space).sample(n, np.random.default_rng(1)).codes
    both = np.concatenate([sifted, drawn])
    designs, which = np.unique(both, axis=0, return_inverse=True)
    one, two = (np.bincount(part, minlength=len(designs)) for part in np.split(which.ravel(), [n]))
    assert len(designs) == space.canonical_cardinality
    spread = (one - two) ** 2 / (one + two)
    assert spread.sum() / len(designs) < 1.5  # chi-squared with as many degrees of freedom


def test_fixed_values_and_a_space_without_a_design() -> None:
    space = narrow().fix({"c": 7})
    drawn = space.sample(100, np.random.default_rng(0))
    assert set(drawn.codes[:, :4].ravel().tolist()) == {6}
    empty = DesignSpace(
        [Integer("a", 1, 1000), Integer("b", 1, 1000)],
        [Rule("never", param("a") + param("b") > 5000)],
    )
    with pytest.raises(DesignError, match="no design is legal"):
        empty.sample(1, np.random.default_rng(0))


def test_huge_spaces_are_drawn_from() -> None:
    space = DesignSpace(
        [
            *(Integer(f"a{i}", 1, 1000) for i in range(3)),
            *(Integer(f"x{i}", 0, 999) for i in range(12)),
        ],
        [Rule("ab", param("a0") == param("a1")), Rule("bc", param("a1") == param("a2"))],
    )
    assert space.canonical_cardinality == 1000**13
    drawn = space.sample(1000, np.random.default_rng(0))
    assert space.legal(drawn).all()
    assert drawn.codes.min(axis=0).max() < 100


class Narrow(archgym.Environment):
    """An environment with such a space."""

    design_space = narrow()
    metrics = (Metric("time_ns", "ns", "minimize"),)
    default_objective = "minimize time_ns"
    baseline = {"a": 1, "b": 1, "c": 1, "d": 1, **{f"x{i}": 31 for i in range(4)}}  # noqa: RUF012

    def simulate(self, design: dict[str, int]) -> dict[str, float]:
        return {"time_ns": 1.0 + design["a"] + sum(design[f"x{i}"] for i in range(4))}


@pytest.mark.parametrize("agent", ["random", "ga", "sa", "local", "nsga2"])
def test_agents_find_legal_designs(agent: str) -> None:
    env = Narrow()
    make_agent(agent, env.design_space, seed=0).search(env, budget=30)
    assert env.evaluator.simulations >= 20
