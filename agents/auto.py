"""A portfolio that shares all data and needs no hyperparameters."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from archgym import agent
from archgym.agents.common.hyperparameters import BatchSize
from archgym.agents.common.samplers import SequentialSampler
from archgym.agents.common.scores import BROKEN_LIMIT_COST, FAILED_COST, costs
from archgym.agents.common.uninfluenced import Uninfluenced
from archgym.agents.ga import Genetic
from archgym.agents.gp.search import GaussianProcessSearch
from archgym.agents.local import LocalSearch
from archgym.agents.nsga2 import Nsga2
from archgym.evaluation.outcome import Outcomes
from archgym.history import History
from archgym.space import Designs

_Members = tuple[type[agent.Sampler], ...]
_MEMBERS: _Members = (GaussianProcessSearch, LocalSearch, Genetic)
_MEMBERS_SEVERAL_GOALS: _Members = (GaussianProcessSearch, Nsga2)
"""The members: one with a model, and model-free ones for one goal and for several."""
_FAST = {"models": 1, "interactions": False, "candidates": 120, "climbs": 1, "most_data": 100}
"""Hyperparameters of the member with a model for the fast effort."""
_MAX_MODEL_FREE_SHARE = 0.5
"""Maximum share of turns given to model-free members while the search stagnates."""
_SHARE_WHILE_LOST = 0.3
"""Share of turns of model-free members as long as nothing keeps the limits."""
_PATIENCE, _HALF_WAY = 60, 120
"""Designs without progress before model-free members have any turns, and further ones before they
have half of that share."""
_MEMORY = 40.0
"""Turns of model-free members after which the weight of a success has fallen to a third."""
_DOUBT = 5.0
"""Turns of average success with which each model-free member starts."""
_GOOD_SHARE, _GOOD_CREDIT = 0.05, 0.2
"""Share of the best known designs that count as a success too, and as how much of one."""

_FRESH = -1
"""Stands for the member that searches from nothing besides the one that learns from history."""
_MAX_FRESH_SHARE, _HISTORY_PATIENCE, _HISTORY_HALF_WAY = 0.8, 5, 3
"""Maximum share of its turns; designs for which history may lead to nothing better until it has
some, and further ones before it has half of that share."""
_GAIN = 0.002
"""What counts as better: a share of the distance from the best known design to the middle one."""


class Auto(SequentialSampler):
    """Search without the lottery: a portfolio whose members see all data and earn their turns.

    No search is good on every landscape: models find the way over rugged ones in few evaluations,
    but sit on plateaus and in basins; local moves and crossovers use no model, and so no model
    misleads them. The members (Gaussian processes, local search and a genetic algorithm; NSGA-II in
    place of the latter two with several goals) learn every outcome, whoever proposed the design. As
    long as there is progress all turns are the model's, but for three tenths until something keeps
    the limits; the longer there is none, the more turns the model-free members have, up to half.
    They share these by recent success: a design better than all before counts as one, a design
    among the best twentieth as a fifth of one. No decision
    depends on time.

    Given history, the member with a model learns from it (:class:`GaussianProcessSearch`), and a
    second one joins that searches from nothing. Of what history led to it hears only where that is
    no better than what it knows, once the data speak against history. It has turns as soon as
    history leads to nothing better, up to four fifths of the model's, and all of them where the
    designs that history suggests are poor: a misleading history costs a few designs, but not the
    way to the optimum.

    It has nothing to tune. The same seed gives the same search on the same machine and versions.

    References:
        Its own portfolio; the members' pages name theirs.

    >>> import archgym
    >>> from archgym.registry import make_agent
    >>> env = archgym.make("Conformance-v0")
    >>> result = make_agent("auto", env.design_space, seed=1).search(env, budget=20)
    >>> result.simulations, result.duplicates
    (20, 0)
    """

    name: ClassVar[str] = "auto"

    class Hyperparameters(BatchSize):
        """Batch size and effort; there is nothing to tune."""

        effort: Literal["full", "fast"] = Field(
            "full",
            description="full: some 20 to 30 ms a proposal; fast: some 5 ms, with a simpler model, "
            "for simulators of milliseconds",
        )

    def setup(self) -> None:
        """Starts with all members and no evidence."""
        super().setup()
        kinds = _MEMBERS if len(self.directions) == 1 else _MEMBERS_SEVERAL_GOALS
        seeds = [int(self.rng.integers(2**31)) for _ in kinds]
        settings = _FAST if self.hyperparameters.effort == "fast" else {}
        self._members = [
            kind(self.space, self.directions, seed, **(settings if number == 0 else {}))
            for number, (kind, seed) in enumerate(zip(kinds, seeds, strict=True))
        ]
        self._settings = settings
        self._fresh: Uninfluenced | None = None
        self._fruitless = 0  # designs since history last led to a better one
        self._success, self._tries = np.zeros((2, len(kinds) - 1))
        self._idle = 0  # designs since the last one that was better than all before
        self._asked: dict[int, int] = {}  # member that a design without outcome is from, by its key
        self._ranked: list[float] = []  # costs of all known designs, ascending
        self._known: set[int] = set()

    @property
    def odds(self) -> dict[str, float]:
        """Probability of each member, by its name, that the next turn is its own."""
        shares = self._shares().tolist()
        return {m.name: share for m, share in zip(self._members, shares, strict=True)}

    def recall(self, history: History) -> Designs:
        """Adds a member that searches from nothing; the one with a model learns the history.

        Whatever history says, of what it led to the new member hears only once history is not
        believed, and only of what is no better than what it knows (:class:`Uninfluenced`). So a
        misleading history costs turns, but does not lead it astray, and is learned from.
        """
        kind = type(self._members[0])
        seed = int(self.rng.integers(2**31))
        fresh = kind(self.space, self.directions, seed, **self._settings)
        self._fresh = Uninfluenced(fresh, fresh.hyperparameters.n_initial)
        designs = self._members[0].recall(history)
        self._asked.update(dict.fromkeys(designs.keys(), 0))
        return designs

    def first(self, initial: Designs) -> Designs:
        """All of them, but those that the member with a model asks for itself."""
        return self._members[0].first(initial)

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        """Informs every member, and credits the one whose proposal it was."""
        self._unseen.learn(designs, outcomes)
        values = costs(outcomes)
        fresh = set()
        for row, (key, value) in enumerate(zip(designs.keys(), values.tolist(), strict=True)):
            member = self._asked.pop(key, None)
            if member != 0:
                fresh.add(row)
            if key in self._known:
                continue
            self._credit(member, value)
            self._known.add(key)
            insort(self._ranked, value)
        for each in self._members:
            each.spread = self.spread
            each.tell(designs, outcomes)
        if self._fresh is not None:
            self._fresh.searcher.spread = self.spread
            self._fresh.tell(outcomes, fresh, others_led=self._trusts)

    def _next(self) -> Designs:
        """A design of a member that is drawn, or a random one if that has nothing new."""
        member = int(self.rng.choice(len(self._members), p=self._shares()))
        if member == 0 and self._fresh is not None and self.rng.random() < self._fresh_share:
            member = _FRESH
            design = self._unseen.sift(self._fresh.ask())
        else:
            design = self._unseen.sift(self._members[member].ask(1))
        if not len(design):  # asked for by another, or nothing is left
            design = self._unseen.take(1)
        self._unseen.add(design)
        self._asked.update(dict.fromkeys(design.keys(), member))
        return design

    @property
    def _trusts(self) -> bool:
        """Whether the model that learns from history follows it."""
        model = self._members[0]
        return not isinstance(model, GaussianProcessSearch) or model.trusts

    @property
    def _promising(self) -> bool:
        """Whether the designs that history suggested are no poor ones."""
        model = self._members[0]
        return not isinstance(model, GaussianProcessSearch) or model.promising

    @property
    def _fresh_share(self) -> float:
        """Share of the model's turns that the member without history has."""
        if not self._promising:
            return 1.0
        stuck = max(0, self._fruitless - _HISTORY_PATIENCE)
        return _MAX_FRESH_SHARE * stuck / (stuck + _HISTORY_HALF_WAY)

    def _credit(self, member: int | None, cost: float) -> None:
        """Counts progress, and the success of a model-free member."""
        better = bisect_left(self._ranked, cost)
        progress = cost < FAILED_COST and (not self._ranked or cost < self._ranked[0])
        self._idle = 0 if progress else self._idle + 1
        if self._fresh is not None:
            known = self._ranked
            spread = known[len(known) // 2] - known[0] if known else 0.0
            led = member == 0 and progress
            led = led and (not known or cost < known[0] - _GAIN * min(spread, BROKEN_LIMIT_COST))
            self._fruitless = 0 if led else self._fruitless + 1
        if not member or member == _FRESH:  # a model's, or nobody's
            return
        good = cost < FAILED_COST and better < _GOOD_SHARE * len(self._ranked)
        self._success *= 1.0 - 1.0 / _MEMORY
        self._tries *= 1.0 - 1.0 / _MEMORY
        self._success[member - 1] += 1.0 if progress else _GOOD_CREDIT * good
        self._tries[member - 1] += 1.0

    def _shares(self) -> Any:
        """Probabilities of the members, shape (n_members,)."""
        stuck = max(0, self._idle - _PATIENCE)
        free = _MAX_MODEL_FREE_SHARE * stuck / (stuck + _HALF_WAY)
        if self._ranked and self._ranked[0] >= BROKEN_LIMIT_COST:
            free = max(free, _SHARE_WHILE_LOST)
        average = (self._success.sum() + 0.1) / (self._tries.sum() + 1.0)
        rate = (self._success + _DOUBT * average) / (self._tries + _DOUBT)
        return np.concatenate([[1.0 - free], free * rate / rate.sum()])
