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
_FAST = {"models": 1, "interactions": False, "candidates": 120, "generations": 2, "most_data": 100}
"""Hyperparameters of the member with a model for the fast effort."""
_MAX_MODEL_FREE_SHARE = 0.5
"""Maximum share of turns given to model-free members while the search stagnates."""
_SHARE_WHILE_LOST = 0.3
"""Share of turns of model-free members as long as nothing keeps the limits."""
_PATIENCE, _HALF_WAY = 60, 120
"""Fewest designs without progress before model-free members have any turns, and further ones before
they have half of that share."""
_MEMORY = 40.0
"""Turns of model-free members after which the weight of a success has fallen to a third."""
_DOUBT = 5.0
"""Turns of average success with which each model-free member starts."""
_GOOD_SHARE, _GOOD_CREDIT = 0.05, 0.2
"""Share of the best known designs that count as a success too, and as how much of one."""

_FRESH, _INFORMED = -1, -2
"""Stand for the members without history besides the one that learns from it: one searches from
nothing, the other learns all that is found."""
_INFORMED_SHARE = 0.5
"""Share of the latter in the turns that are left to these two."""
_MAX_FRESH_SHARE, _HISTORY_PATIENCE, _HISTORY_HALF_WAY = 0.8, 5, 3
"""Maximum share of the former; designs for which the models that history guides may find nothing
better until it has some, and further ones before it has half of that share."""
_BELIEF = 4.0
"""How many times their length both numbers of designs gain where history foresees what is found."""
_GAIN = 0.002
"""What counts as better: a share of the distance from the best known design to the middle one."""


class Auto(SequentialSampler):
    """Search without the lottery: a portfolio of searches that share all data; nothing to tune.

    Use it first. It takes every design space and any number of goals. Take another agent if a
    proposal has to take less than some milliseconds (``local``, ``ga``), or if a certain algorithm
    is what you study.

    Why a portfolio: no search is good on every landscape. A model finds the way over a rugged one
    in few evaluations, but stays on plateaus and in basins. Local moves and crossovers use no
    model, so no model can mislead them.

    Each turn belongs to one member, which proposes a design. All members learn all outcomes,
    whoever proposed the design.

    While the search makes progress, all turns belong to the model: with full effort and without
    history the designs are those of agent ``gp`` with the same seed. The search stagnates once more
    designs came after the best one than up to it, and at least 60. From then on the members without
    a model have turns too. Their share is a quarter after 120 further designs, and stays below a
    half. Until a design keeps all limits it is three tenths at least.

    The members without a model share their turns by recent success. A new best design counts as one
    success, another one among the best 5 % as a fifth of one. After 40 of their turns a success
    has a third of its weight. No decision depends on time.

    With history, the model learns from it, and two models join that do not. Sources whose designs
    say nothing of one another are left out. The second model learns all designs that are found, by
    whomever. From the tenth design on it shares the turns of the first one, as what is known of the
    place to which history led soon says more of it than history does. The third model searches from
    nothing. It has turns once the other two have found nothing better for more than five designs,
    or for up to 25 where history ranks the designs that are found as they are: up to four fifths of
    the models' turns, and all of them where the designs that history suggests are poor. While the
    data agree with history, the third model is not told which designs the others proposed. Later it
    is told of those that are no better than its own best. So a misleading history costs designs,
    but the third model searches almost as it would alone.

    The same seed gives the same search on the same machine with the same versions.

    Members:
        gp: Gaussian processes, fitted to all designs; all turns while there is progress.
        local: with one goal; tries the neighbours of the best design, and goes on from the first
            that is better; turns while the search stagnates.
        ga: with one goal; crossover and mutation of the best designs; turns while the search
            stagnates.
        nsga2: with several goals, in place of local and ga; a genetic algorithm for the whole
            front; turns while the search stagnates.
        second gp: with history; learns all but history; half of the turns of the first one.
        third gp: with history; searches from nothing; turns while both others find nothing better.

    Measured:
        With budgets of 50 to 1,000 designs; the figures and their dates are in RESULTS.md.
        Search quality, beside Optuna, scikit-optimize, nevergrad, pymoo and BoTorch, on landscapes
            and tables with a known optimum: python -m benchmarks.search_quality
        Tasks on the spaces of the environments: python -m benchmarks.real_tasks
        With the record of earlier searches: python -m benchmarks.history
        With several workers: python benchmarks/asynchronous_quality.py

    Limits:
        Where each component of the cost depends on four parameters, two of five runs are not
            within 1 % of the optimum after 300 designs.
        A history that is consistent but wrong can make it slightly worse than one from nothing.
        Where history leads to a good local optimum, it can stay there for longer than a search from
            nothing takes to find a better place.
        A proposal takes 7 to 65 ms over 300 designs, and 150 ms with 165 parameters. For simulators
            that take microseconds choose the effort fast, or local.

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
        seeds = [self.seed, *(int(self.rng.integers(2**31)) for _ in kinds[1:])]
        settings = _FAST if self.hyperparameters.effort == "fast" else {}
        self._members = [
            kind(self.space, self.directions, seed, **(settings if number == 0 else {}))
            for number, (kind, seed) in enumerate(zip(kinds, seeds, strict=True))
        ]
        self._settings = settings
        self._fresh: Uninfluenced | None = None
        self._informed: agent.Sampler | None = None
        self._fruitless = 0  # designs since the two that history guides last found a better one
        self._success, self._tries = np.zeros((2, len(kinds) - 1))
        self._idle = 0  # designs since the last one that was better than all before
        self._asked: dict[int, int] = {}  # member that a design without outcome is from, by its key
        self._ranked: list[float] = []  # costs of all known designs, ascending
        self._known: set[int] = set()

    @property
    def odds(self) -> dict[str, float]:
        """Probability of each member, by its name, that the next turn is its own."""
        shares = self._shares().tolist()
        odds = {m.name: share for m, share in zip(self._members, shares, strict=True)}
        if self._fresh is not None:
            model = self._members[0].name
            odds[f"third {model}"] = odds[model] * self._fresh_share
            left = odds[model] - odds[f"third {model}"]
            odds[f"second {model}"] = left * self._informed_share
            odds[model] = left - odds[f"second {model}"]
        return odds

    def recall(self, history: History) -> Designs:
        """Adds two members without history; the one with a model learns it.

        One of the two learns all that is found. The other hears of what history led to only once
        history is not believed, and only of what is no better than what it knows
        (:class:`Uninfluenced`). So a misleading history costs turns, but does not lead it astray,
        and is learned from.
        """
        designs = self._members[0].recall(history)
        self.ignored_sources = self._members[0].ignored_sources
        if not self._recalls:
            return designs
        kind = type(self._members[0])
        seed = int(self.rng.integers(2**31))
        fresh = kind(self.space, self.directions, seed, **self._settings)
        self._fresh = Uninfluenced(fresh, fresh.hyperparameters.n_initial)
        seed = int(self.rng.integers(2**31))
        self._informed = kind(self.space, self.directions, seed, **self._settings)
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
            if member not in (0, _INFORMED):
                fresh.add(row)
            if key in self._known:
                continue
            self._credit(member, value)
            self._known.add(key)
            insort(self._ranked, value)
        for each in self._members:
            each.spread = self.spread
            each.tell(designs, outcomes)
        if self._informed is not None:
            self._informed.spread = self.spread
            self._informed.tell(designs, outcomes)
        if self._fresh is not None:
            self._fresh.searcher.spread = self.spread
            self._fresh.tell(outcomes, fresh, others_led=self._trusts)

    def _next(self) -> Designs:
        """A design of a member that is drawn, or a random one if that has nothing new."""
        member = self._draw()
        if member == _FRESH and self._fresh is not None:
            asked = self._fresh.ask()
        elif member == _INFORMED and self._informed is not None:
            asked = self._informed.ask(1)
        else:
            asked = self._members[member].ask(1)
        design = self._unseen.sift(asked)
        if not len(design):  # asked for by another, or nothing is left
            design = self._unseen.take(1)
        self._unseen.add(design)
        self._asked.update(dict.fromkeys(design.keys(), member))
        return design

    def _draw(self) -> int:
        """The member whose turn it is."""
        member = int(self.rng.choice(len(self._members), p=self._shares()))
        if member != 0 or self._fresh is None:
            return member
        if self.rng.random() < self._fresh_share:
            return _FRESH
        share = self._informed_share
        return _INFORMED if share and self.rng.random() < share else member

    @property
    def _recalls(self) -> bool:
        """Whether the model has anything to learn from history."""
        model = self._members[0]
        return not isinstance(model, GaussianProcessSearch) or model.recalls

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
    def _agreement(self) -> float:
        """How well earlier searches foresee what is found."""
        model = self._members[0]
        return model.agreement if isinstance(model, GaussianProcessSearch) else 0.0

    @property
    def _fresh_share(self) -> float:
        """Share of the model's turns that the member without history has."""
        if not self._promising:
            return 1.0
        longer = 1.0 + _BELIEF * self._agreement
        stuck = max(0.0, self._fruitless - longer * _HISTORY_PATIENCE)
        return _MAX_FRESH_SHARE * stuck / (stuck + longer * _HISTORY_HALF_WAY)

    @property
    def _informed_share(self) -> float:
        """Share of the turns left to the model that the one has which learns all but history."""
        enough = len(self._known) >= self._members[0].hyperparameters.n_initial
        return _INFORMED_SHARE if enough else 0.0

    def _credit(self, member: int | None, cost: float) -> None:
        """Counts progress, and the success of a model-free member."""
        better = bisect_left(self._ranked, cost)
        progress = cost < FAILED_COST and (not self._ranked or cost < self._ranked[0])
        self._idle = 0 if progress else self._idle + 1
        if self._fresh is not None:
            known = self._ranked
            spread = known[len(known) // 2] - known[0] if known else 0.0
            led = member in (0, _INFORMED) and progress
            led = led and (not known or cost < known[0] - _GAIN * min(spread, BROKEN_LIMIT_COST))
            self._fruitless = 0 if led else self._fruitless + 1
        if not member or member < 0:  # a model's, or nobody's
            return
        good = cost < FAILED_COST and better < _GOOD_SHARE * len(self._ranked)
        self._success *= 1.0 - 1.0 / _MEMORY
        self._tries *= 1.0 - 1.0 / _MEMORY
        self._success[member - 1] += 1.0 if progress else _GOOD_CREDIT * good
        self._tries[member - 1] += 1.0

    def _shares(self) -> Any:
        """Probabilities of the members, shape (n_members,)."""
        until_best = len(self._known) - self._idle
        stuck = max(0, self._idle - max(_PATIENCE, until_best))
        free = _MAX_MODEL_FREE_SHARE * stuck / (stuck + _HALF_WAY)
        if self._ranked and self._ranked[0] >= BROKEN_LIMIT_COST:
            free = max(free, _SHARE_WHILE_LOST)
        average = (self._success.sum() + 0.1) / (self._tries.sum() + 1.0)
        rate = (self._success + _DOUBT * average) / (self._tries + _DOUBT)
        return np.concatenate([[1.0 - free], free * rate / rate.sum()])
