"""The agent that is checked, and how it is watched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from archgym.agent import Agent, Sampler, SearchResult
from archgym.check.agents.environments import FAMILIES, Family
from archgym.check.result import CheckFailed, NotApplicableError, expect
from archgym.environment.environment import Environment
from archgym.errors import AgentUnsuitableError, InvalidValueError
from archgym.registry import agent_class
from archgym.space import Designs

BUDGET = 24
"""Designs that a check simulates, as a rule."""

Evaluation = tuple[dict[str, Any], float]
"""A design and the fidelity at which it was evaluated."""


@dataclass(frozen=True)
class Subject:
    """The agent that is checked.

    Attributes:
        cls: its class.
        target: how another process finds it.
        hyperparameters: with which it is checked.
    """

    cls: type[Agent]
    target: str
    hyperparameters: Mapping[str, Any]

    def make(self, env: Environment, seed: int = 0) -> Agent:
        """The agent, fresh.

        Raises:
            AgentUnsuitableError: if it refuses the environment.
        """
        directions = ["minimize"] * len(env.objective.goals)
        return self.cls(env.design_space, directions, seed, **self.hyperparameters)

    def sampler(self, env: Environment) -> Sampler:
        """The agent, fresh, if it asks and tells.

        Raises:
            NotApplicableError: if it does not.
        """
        agent = self.make(env)
        if not isinstance(agent, Sampler):
            raise NotApplicableError("drives the environment itself: there is no ask and tell")
        return agent

    @property
    def asks(self) -> bool:
        """Whether it asks and tells."""
        return issubclass(self.cls, Sampler)


def subject_of(target: str | type[Agent], hyperparameters: Mapping[str, Any]) -> Subject:
    """An agent by registered name, ``module:Class`` or class, to be checked."""
    if isinstance(target, str):
        return Subject(agent_class(target), target, hyperparameters)
    if not (isinstance(target, type) and issubclass(target, Agent)):
        raise InvalidValueError(f"{target!r} is not a subclass of archgym.agent.Agent")
    return Subject(target, f"{target.__module__}:{target.__qualname__}", hyperparameters)


def trajectories(
    target: str | type[Agent], hyperparameters: Mapping[str, Any]
) -> dict[str, list[Evaluation] | str]:
    """A short search on each family, or the sentence by which the agent refuses it."""
    subject = subject_of(target, hyperparameters)
    found: dict[str, list[Evaluation] | str] = {}
    for family in FAMILIES:
        try:
            found[family.name] = evaluations_of(subject, family, seed=5)
        except AgentUnsuitableError as refusal:
            found[family.name] = str(refusal)
    return found


def first_taken(subject: Subject) -> Family:
    """The first environment that the agent does not refuse."""
    for family in FAMILIES[:-1]:
        try:
            subject.make(family.make())
        except AgentUnsuitableError as error:
            refusal = error
        else:
            return family
    raise refusal


def asked_of(agent: Sampler, n: int) -> Designs:
    """What an agent proposes: designs, also where it returns a list of mappings."""
    asked = agent.ask(n)
    return asked if isinstance(asked, Designs) else agent.space.designs(asked)


def watch(env: Environment) -> list[Evaluation]:
    """A list to which every evaluation is appended."""
    seen: list[Evaluation] = []
    env.on_evaluated = lambda outcomes: seen.extend(
        zip(outcomes.designs, outcomes.fidelity.tolist(), strict=True)
    )
    return seen


def search(
    subject: Subject, env: Environment, budget: int, seed: int = 0
) -> tuple[list[Evaluation], SearchResult]:
    """The evaluations of a search in order, and its result."""
    seen = watch(env)
    return seen, subject.make(env, seed).search(env, budget)


def evaluations_of(
    subject: Subject, family: Family, *, seed: int, budget: int = BUDGET
) -> list[Evaluation]:
    """The evaluations of a search on a fresh environment."""
    return search(subject, family.make(), budget, seed)[0]


def ended(env: Environment, result: SearchResult, budget: int) -> None:
    """The search is over for one of the reasons for which it may be.

    Of the budget, less than a full simulation may be left.
    """
    spent = result.spent
    expect(spent <= budget, f"{spent:g} designs were simulated, the budget is {budget}")
    expect(
        spent > budget - 1 or env.evaluator.exhausted,
        f"it gave up after {spent:g} of {budget} simulations and {result.proposals} proposals",
    )


def refused(error: type[Exception], word: str, call: Callable[[], Any]) -> None:
    """Expects a call to raise an error that names ``word``."""
    try:
        call()
    except error as refusal:
        expect(word in str(refusal), f"{word!r} is not named in: {refusal}")
    else:
        raise CheckFailed(f"a bad value of {word!r} is not refused: {call}")
