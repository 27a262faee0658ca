"""Properties of agents that ask and tell, and of the hyperparameters of every agent."""

from __future__ import annotations

import json
import math
import typing
from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

import numpy as np

from archgym.check.agents.agent_under_test import (
    BUDGET,
    Subject,
    asked_of,
    evaluations_of,
    first_taken,
    refused,
    search,
)
from archgym.check.agents.environments import FEW_LEVELS, SMALL, with_faults
from archgym.check.result import NotApplicableError, expect
from archgym.errors import InvalidValueError, SimulationError, UnknownNameError

_BOUNDS = (("lower", -1), ("upper", 1))
_AWAY = 0.2
"""Least share of pairs. Without a direction it is near 0.5; early learners gave 0.34."""
_BOUNDED = "Field(16, ge=1, le=1000, description=...)"


def check_hyperparameters(subject: Subject) -> str:
    """Hyperparameters have defaults, descriptions and bounds; what is out of them is refused."""
    fields, accept = subject.cls.Hyperparameters.model_fields, subject.cls.check_hyperparameters
    for name, found in fields.items():
        expect(bool(found.description), f"{name} has no description")
        expect(not found.is_required(), f"{name} has no default")
        kinds = {kind for kind in _kinds(found.annotation) if kind in (int, float)}
        refused(UnknownNameError, name, partial(accept, {name + "_": 1}))
        refused(InvalidValueError, name, partial(accept, {name: object()}))
        if not kinds:
            continue
        bounds = [
            (bound, sign)
            for constraint in found.metadata
            for word, sign in (("ge", -1), ("gt", -1), ("le", 1), ("lt", 1))
            if (bound := getattr(constraint, word, None)) is not None
        ]
        missing = [word for word, side in _BOUNDS if side not in {sign for _, sign in bounds}]
        expect(not missing, f"{name} has no {' and no '.join(missing)} bound, as in {_BOUNDED}")
        for value in (math.inf, math.nan, *(bound + sign for bound, sign in bounds)):
            refused(InvalidValueError, name, partial(accept, {name: value}))
    defaults = accept({})
    again = accept(json.loads(defaults.model_dump_json()))
    expect(again == defaults, "the defaults are others after a round trip through JSON")
    return f"{len(fields)} hyperparameters"


def check_prefix(subject: Subject) -> str:
    """A smaller budget gives the first part of the same search."""
    if not subject.asks:
        raise NotApplicableError("may look at its budget")
    family = first_taken(subject)
    long, short = (
        evaluations_of(subject, family, seed=3, budget=n) for n in (BUDGET, BUDGET // 2 + 1)
    )
    expect(long[: len(short)] == short, "the budget changes the first proposals")
    return f"{len(short)} of {len(long)}"


def check_ask(subject: Subject) -> str:
    """Any number of designs can be asked for, and none comes twice."""
    for n in (1, 3, 7, 40):
        env = first_taken(subject).make()
        agent = subject.sampler(env)
        expect(agent.batch_size >= 1, f"batch_size is {agent.batch_size}")
        keys: set[int] = set()
        rounds = -(-40 // n)
        for _ in range(rounds):
            designs = asked_of(agent, n)
            expect(
                len(designs) == n,
                f"{n} were asked for, {len(designs)} came: Unseen.take gives as many as are asked "
                "for, while the space has new ones",
            )
            agent.tell(designs, env.evaluate_batch(designs))
            keys.update(designs.keys())
        expect(len(keys) == n * rounds, f"of {n * rounds} designs only {len(keys)} differ")
    return "1, 3, 7 and 40 at a time"


def check_tell(subject: Subject) -> str:
    """Outcomes may come in another order, in part, twice, or not at all."""
    env = first_taken(subject).make()
    agent = subject.sampler(env)
    asked = asked_of(agent, 9)
    some = asked[np.array([4, 1])]
    agent.tell(some, env.evaluate_batch(some))
    agent.tell(some, env.evaluate_batch(some))
    none = asked[:0]
    agent.tell(none, env.evaluate_batch(none))
    again = asked_of(agent, 9)
    expect(not set(asked.keys()) & set(again.keys()), "a design was asked for twice")
    return "outcomes of 2 of 9 designs, twice"


def check_exhausted_space(subject: Subject) -> str:
    """With one design left it proposes that one, and then nothing."""
    env = SMALL.make()
    agent = subject.sampler(env)
    everything = next(env.design_space.enumerate())
    agent.tell(everything[:-1], env.evaluate_batch(everything[:-1]))
    last = asked_of(agent, 5)
    expect(
        last.keys() == everything[-1:].keys(),
        "it did not propose the one that was left, as Unseen.take does",
    )
    expect(len(asked_of(agent, 5)) == 0, "it proposed something when nothing was left")
    return f"{len(everything) - 1} of {len(everything)} designs were known"


def check_every_value(subject: Subject) -> str:
    """Where nothing draws the search to one place, it reaches every value."""
    env = with_faults(FEW_LEVELS, lambda design: SimulationError("broken"))
    subject.sampler(env)
    seen, _ = search(subject, env, 100)
    for position in env.design_space.free:
        parameter = env.design_space.parameters[position]
        values = {design[parameter.name] for design, _ in seen if parameter.name in design}
        if parameter.continuous:
            codes = np.array([parameter.code(value) for value in values])
            places = parameter.unit_interval(codes)
            expect(
                places.min() < 0.2 and places.max() > 0.8,
                f"{parameter.name} stays within {min(values)} and {max(values)}",
            )
        else:
            expect(len(values) == parameter.size, f"{parameter.name} takes only {sorted(values)}")
    return f"{len(seen)} proposals"


def check_direction(subject: Subject) -> str:
    """It goes towards good designs, not away from them as one does that mistakes the sign."""
    family = first_taken(subject)
    late = []
    for seed in (1, 2):
        env = family.make()
        seen: list[float] = []
        env.on_evaluated = lambda outcomes, seen=seen: seen.extend(outcomes.reward.tolist())
        subject.make(env, seed).search(env, 4 * BUDGET)
        late += seen[len(seen) // 2 :]
    env = family.make()
    drawn = env.evaluate_batch(env.design_space.sample(1000, np.random.default_rng(0))).reward
    pairs = np.sign(np.subtract.outer(np.array(late), drawn))
    better = float((pairs.mean() + 1) / 2)
    expect(
        better > _AWAY,
        f"its later designs are worse than random ones: better in {better:.0%} of all pairs; a "
        "larger reward is a better design, whatever the objective",
    )
    return f"its later designs are better than random ones in {better:.0%} of all pairs"


def _kinds(annotation: Any) -> Iterator[Any]:
    """The types that an annotation is made of."""
    if typing.get_origin(annotation) is Literal:
        return
    parts = typing.get_args(annotation)
    if not parts:
        yield annotation
    for part in parts:
        yield from _kinds(part)
