"""Search in two stages: some parameters first, the rest after, as successive optimisation does."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from archgym import agent
from archgym.agents.common.hyperparameters import Number, Part
from archgym.agents.common.observations import some_outcomes
from archgym.environment.environment import Environment
from archgym.errors import AgentUnsuitableError, InvalidValueError, UnknownNameError
from archgym.evaluation.best import Best
from archgym.evaluation.outcome import Outcomes, told
from archgym.problem.status import Status
from archgym.registry import agent_class
from archgym.space import Designs

_MAX_IDLE = 64
"""Turns of the searcher without a new design after which a stage is over."""


class Staged(agent.Agent):
    """Searches some parameters, holds them at the best that it found, and searches the rest.

    This is how networks and hardware are designed one after the other: networks first with the
    chip at the baseline, then a chip for the best network; or the chip first. What is searched
    first is named by groups or parameters of the design space, the rest stays at the baseline
    design meanwhile. The first stage has a share of the budget, the second what is left of it. A
    stage is searched by another agent. One that has nothing new to propose ends its stage early;
    what is then left of the budget after both goes to a search of all parameters.

    With several ``rounds`` both stages follow each other again and again, each with the other's
    parameters at the best found so far: networks for the chip, a chip for the networks. That is a
    search of all parameters together that moves one block of them at a time.

    With ``first_limits: ignored`` the first stage looks at goals alone, as a search for the most
    accurate network does that knows nothing of hardware.

    The result of the method is the best design of its second stage; the trial's best may be of
    the first one, where that happens to be better.

    References:
        Yang et al., Co-Exploration of Neural Architectures and Heterogeneous ASIC
            Accelerator Designs Targeting Multiple Tasks, DAC 2020, whose baselines
            search in stages.

    >>> import archgym
    >>> from archgym.registry import make_agent
    >>> env = archgym.make("Conformance-v0")
    >>> staged = make_agent("staged", env.design_space, first="ways, size_kb", seed=1)
    >>> result = staged.search(env, budget=60)
    >>> staged.held == {name: result.best.design[name] for name in ("size_kb", "ways")}
    True
    """

    name: ClassVar[str] = "staged"
    plans_by_budget: ClassVar[bool] = True

    class Hyperparameters(agent.Hyperparameters):
        """Hyperparameters of a search in two stages."""

        first: str = Field(
            "",
            description="groups or parameters to search first, separated by commas, with * for "
            "any letters; the first half of the groups if first and last are empty",
        )
        last: str = Field(
            "", description="groups or parameters to search in the second stage, instead of first"
        )
        share: Part = Field(0.5, description="share of the budget for the first stage")
        rounds: Number = Field(
            1, description="runs of both stages, with equal shares of the budget"
        )
        first_limits: Literal["kept", "ignored"] = Field(
            "kept", description="whether the objective's limits count in the first stage"
        )
        searcher: str = Field("ga", description="agent that searches in each stage")

    def setup(self) -> None:
        """Finds out what is searched first, and by whom.

        Raises:
            InvalidValueError: if both first and last are given.
            UnknownNameError: if a name is no group and no parameter, or the searcher no agent.
            AgentUnsuitableError: if a stage has nothing to search, or the searcher does not ask
                and tell.
        """
        searcher = agent_class(self.hyperparameters.searcher)
        if not issubclass(searcher, agent.Sampler):
            raise AgentUnsuitableError(
                f"agent {self.name!r}: searcher {searcher.name!r} drives the environment itself; "
                "one that asks and tells is needed, such as ga, local or random"
            )
        self._searcher: type[agent.Sampler] = searcher
        settings = self.hyperparameters
        if settings.first and settings.last:
            raise InvalidValueError(
                f"agent {self.name!r}: give first or last, not both: {settings.first!r} and "
                f"{settings.last!r}"
            )
        self._free = free = {self.space.names[position] for position in self.space.free}
        self._first = free - self._named(settings.last) if settings.last else self._chosen()
        for names, which in ((self._first, "first"), (free - self._first, "second")):
            if not names:
                raise AgentUnsuitableError(
                    f"agent {self.name!r}: the {which} stage has no free parameter to search"
                )
        self.held: dict[str, object] = {}
        """Parameters that the second stage holds, and their values; empty before it."""

    def run(self, env: Environment, initial: Designs) -> None:
        """Runs both stages, and what is left of the budget."""
        rounds, share = self.hyperparameters.rounds, self.hyperparameters.share
        limits = self.hyperparameters.first_limits == "kept"
        self._known = [told(env.evaluate_batch(initial))] if len(initial) else []
        best = env.design_space.codes(env.baseline_design)
        for turn in range(rounds):
            most, last = turn + share, turn + 1 if turn < rounds - 1 else np.inf
            best = self._stage(env, best, self._first, most, limits=limits)
            limits = True
            found = env.design_space.design(best)
            self.held = {name: value for name, value in found.items() if name in self._first}
            best = self._stage(env, best, self._free - self._first, last, limits=True)
        self._stage(env, best, self._free, np.inf, limits=True)

    def _stage(
        self, env: Environment, start: tuple[int, ...], names: set[str], most: float, limits: bool
    ) -> tuple[int, ...]:
        """Searches some parameters; codes of the best design, ``start`` if none could be run.

        Args:
            env: the environment.
            start: what the other parameters are held at.
            names: the parameters to search.
            most: what the trial may have spent when the stage is over, in shares of a round.
            limits: whether limits count.
        """
        held = {  # inactive ones at their first level
            name: self.space[name].value(max(code, 0))
            for name, code in zip(self.space.names, start, strict=True)
            if name not in names
        }
        space = self.space.fix({**held, **self.space.fixed})
        searcher = self._searcher(space, self.directions, int(self.rng.integers(2**31)))
        best = Best()

        def learn(outcomes: Outcomes) -> None:
            judged = outcomes if limits else _without_limits(outcomes)
            within = np.flatnonzero(space.legal(Designs(space, outcomes.designs.codes)))
            if len(within):
                kept = some_outcomes(judged, within, space)
                searcher.tell(kept.designs, kept)
                best.update(dataclasses.replace(kept, cached=np.zeros(len(kept), dtype=bool)))

        for outcomes in self._known:
            learn(outcomes)
        if env.evaluator.asynchronous:
            self._search_steadily(env, searcher, learn, most)
        else:
            self._search(env, searcher, learn, most)
        if best.outcome is None:
            return start
        return env.design_space.codes(best.outcome.design)

    def _search(
        self,
        env: Environment,
        searcher: agent.Sampler,
        learn: Callable[[Outcomes], None],
        most: float,
    ) -> None:
        """Asks and tells in batches until ``most`` is spent."""
        idle = 0
        while (left := self._left(env, most)) >= 1 and idle < _MAX_IDLE:
            spent = env.evaluator.spent
            designs = searcher.ask(int(min(searcher.batch_size, left)))
            if env.evaluator.exhausted or not len(designs):
                break
            outcomes = told(env.evaluate_batch(Designs(env.design_space, designs.codes)))
            self._known.append(outcomes)
            learn(outcomes)
            idle = 0 if env.evaluator.spent > spent else idle + 1

    def _search_steadily(
        self,
        env: Environment,
        searcher: agent.Sampler,
        learn: Callable[[Outcomes], None],
        most: float,
    ) -> None:
        """Asks whenever a worker is free, until ``most`` is spent."""
        idle = 0

        def propose(in_flight: int) -> tuple[Designs, float]:
            if self._left(env, most) - in_flight < 1 or idle >= _MAX_IDLE:
                return env.design_space.designs(()), 1.0
            return Designs(env.design_space, searcher.ask(1).codes), 1.0

        def take(outcomes: Outcomes) -> None:
            nonlocal idle
            self._known.append(outcomes)
            learn(outcomes)
            idle = idle + 1 if outcomes.cached[0] or outcomes.status[0] == Status.ILLEGAL else 0

        agent.keep_busy(env, propose, take)

    def _left(self, env: Environment, most: float) -> float:
        """Designs that may be simulated before ``most`` is spent; infinite for hours."""
        core, rounds = env.evaluator, self.hyperparameters.rounds
        if core.budget is None:
            return np.inf if core.spent_share * rounds < most else 0.0
        return float(most * (core.budget / rounds) - core.spent)

    def _chosen(self) -> set[str]:
        """The free parameters that are searched first."""
        if self.hyperparameters.first:
            return self._named(self.hyperparameters.first)
        groups = list(self.space.groups.values())
        return {name for names in groups[: (len(groups) + 1) // 2] for name in names}

    def _named(self, patterns: str) -> set[str]:
        """The free parameters whose name or group fits one of some patterns."""
        groups = self.space.groups
        found: set[str] = set()
        for pattern in (text.strip() for text in patterns.split(",")):
            matching = {
                name
                for group, names in groups.items()
                for name in names
                if fnmatchcase(group, pattern) or fnmatchcase(name, pattern)
            }
            if not matching:
                known = [*groups, *(name for names in groups.values() for name in names)]
                raise UnknownNameError("group or free parameter", pattern, dict.fromkeys(known))
            found |= matching
        return found


def _without_limits(outcomes: Outcomes) -> Outcomes:
    """The outcomes as if the objective had no limits."""
    ok = outcomes.status == Status.OK
    mean = np.clip(outcomes.costs.mean(axis=1), -50.0, 50.0)
    return dataclasses.replace(
        outcomes,
        violations=np.where(ok[:, None], 0.0, outcomes.violations),
        feasible=ok,
        reward=np.where(ok, 1.0 / (1.0 + np.exp(mean)), outcomes.reward),
        reason=["" if good else text for good, text in zip(ok, outcomes.reason, strict=True)],
    )
