"""Hyperband: many designs at a low fidelity, the best of them at higher ones."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from pydantic import Field

from archgym import agent
from archgym.agents.common.arrays import Ints
from archgym.agents.common.hyperparameters import BlockSize, Share, Size
from archgym.agents.common.observations import Observations, some_outcomes
from archgym.agents.common.parzen import GoodAndOther
from archgym.agents.common.samplers import NewDesignSampler
from archgym.agents.nsga2 import constrained_order
from archgym.evaluation.outcome import Outcomes
from archgym.problem.fidelity import Fidelity
from archgym.space import Designs

_TOLERANCE = 1.25
"""Factor by which the ratio of the costs of two rungs may be smaller than ``eta``."""


class Hyperband(NewDesignSampler):
    """Hyperband (Li et al., JMLR 2018), with the model of BOHB (Falkner et al., ICML 2018).

    A bracket evaluates some new designs at a low fidelity, the best one in ``eta`` of them at
    the next one, and so on up to the full simulation (successive halving). Brackets take turns:
    one begins with many designs at the lowest fidelity, the next with fewer at a higher one, the
    last with some at full fidelity, so that it does not matter much how well low fidelities
    foretell the full one; all cost about the same.

    The fidelities are the environment's; of any that cost nearly the same, the fuller one is
    used. Where there is only the full one, each bracket is one design, and what is left is the
    model's sampling. Once all designs have been met, those that were not promoted are simulated
    fully after all, the best first.

    If it is asked for more while outcomes of a bracket are still to come, it goes on without
    brackets (asynchronous successive halving, Li et al., MLSys 2020): a design among the best one
    in ``eta`` of all that are known at its fidelity is promoted at once; where none is, a new one
    is begun, at the fidelities and in the numbers in which brackets begin them. So no worker waits
    for the slowest simulation.

    New designs come from a kernel density of the best designs at the highest fidelity of which
    enough are known (:mod:`archgym.agents.common.parzen`), and a part of them at random; without
    the model all are random. Nothing is proposed twice at a fidelity. Designs are ranked by limits
    before goals, several goals by nondominated sorting and crowding distance. The same seed gives
    the same search on the same machine and versions.

    References:
        Li et al., Hyperband: A Novel Bandit-Based Approach to Hyperparameter
            Optimization, JMLR 18, 2018.
        Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020.
        Falkner, Klein and Hutter, BOHB: Robust and Efficient Hyperparameter
            Optimization at Scale, ICML 2018.

    >>> import archgym
    >>> from archgym.registry import make_agent
    >>> env = archgym.make("Conformance-v0")
    >>> result = make_agent("hyperband", env.design_space, seed=1).search(env, budget=20)
    >>> result.duplicates, result.spent <= 20 < result.simulations, result.best.fidelity
    (0, True, 1.0)
    """

    name: ClassVar[str] = "hyperband"

    class Hyperparameters(agent.Hyperparameters):
        """Hyperparameters of Hyperband."""

        eta: int = Field(
            3,
            ge=2,
            le=64,
            description="number of designs of which one is promoted to the next fidelity",
        )
        model: bool = Field(
            True, description="whether a model proposes designs (BOHB) or all are random"
        )
        random_share: Share = Field(
            0.33, description="share of random designs when a model proposes"
        )
        good_share: float = Field(
            0.15,
            gt=0,
            le=0.5,
            description="share of the known designs that the model counts as good",
        )
        candidates: BlockSize = Field(
            64, description="designs drawn from the model, of which the best is proposed"
        )
        batch_size: Size = Field(8, description="maximum designs proposed at once")

    def setup(self) -> None:
        """Starts with nothing known."""
        super().setup()
        self._known: dict[float, _Known] = {}
        self._rungs: list[float] = []
        self._turn = 0  # brackets begun
        self._rung = 0
        self._members = self.space.designs(())  # of the bracket, at its rung
        self._waiting = self._members  # those of them that have not been proposed there
        self._steady = False  # whether it goes on without brackets
        self._to_begin = 0  # new designs that are to begin at the rung, without brackets

    def ask(self, n: int) -> Designs:
        """Up to ``n`` designs, all at :attr:`fidelity`.

        Fewer where the bracket needs their outcomes to go on. A design whose outcome never
        arrives is not promoted.
        """
        if not self._rungs:
            self._rungs = _rungs(self.fidelities, self.hyperparameters.eta)
        self._steady = self._steady or self._outcomes_are_missing()
        if self._steady:
            return self._next_steadily()
        asked = self.space.designs(())
        while len(asked) < n:
            needs_outcomes = len(asked) > 0 and self._rung < len(self._rungs) - 1
            if not len(self._waiting) and (needs_outcomes or not self._go_on()):
                break
            fidelity = self._rungs[self._rung]
            if len(asked) and fidelity != self.fidelity:
                break
            self.fidelity = fidelity
            part = self._waiting[: n - len(asked)]
            self._waiting = self._waiting[len(part) :]
            self._at(fidelity).wait_for(part)
            asked = asked.concatenate(part)
        return asked

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        """Takes in outcomes, at whatever fidelity."""
        self._unseen.add(designs)
        for value in np.unique(outcomes.fidelity).tolist():
            rows = np.flatnonzero(outcomes.fidelity == value)
            self._at(value).learn(designs[rows], some_outcomes(outcomes, rows, self.space))

    # -- brackets --------------------------------------------------------------------------------

    def _go_on(self) -> bool:
        """Fills the list of waiting designs: the next rung or bracket; false if none is left."""
        top = len(self._rungs) - 1
        while self._rung < top and len(self._members):
            ranked = self._at(self._rungs[self._rung]).best_of(self._members)
            self._rung += 1
            self._members = ranked[: max(1, len(ranked) // self.hyperparameters.eta)]
            self._waiting = self._new_at(self._rungs[self._rung], self._members)
            if len(self._waiting):
                return True
        self._rung, size = self._begin()
        self._members = self._waiting = self._propose(size)
        return len(self._members) > 0 or self._take_up()

    def _outcomes_are_missing(self) -> bool:
        """Whether the bracket cannot go on before outcomes come that are in flight."""
        if len(self._waiting) or self._rung >= len(self._rungs) - 1:
            return False
        known = self._at(self._rungs[self._rung])
        return any(known.is_awaited(key) for key in self._members.keys())  # noqa: SIM118

    def _next_steadily(self) -> Designs:
        """One design without brackets: a promoted one, or a new one."""
        top = len(self._rungs) - 1
        for rung in reversed(range(top)):
            known = self._at(self._rungs[rung])
            best = known.best_first()[: len(known) // self.hyperparameters.eta]
            sound = known.codes[best[np.isfinite(known.total_excess[best])]]
            promoted = self._new_at(self._rungs[rung + 1], Designs(self.space, sound))
            if len(promoted):
                return self._send(promoted[:1], rung + 1)
        if len(self._waiting):
            first, self._waiting = self._waiting[:1], self._waiting[1:]
            return self._send(first, self._rung)
        if self._to_begin <= 0:
            self._rung, self._to_begin = self._begin()
        self._to_begin -= 1
        proposed = self._propose(1)
        if not len(proposed) and self._take_up():
            proposed, self._waiting = self._waiting[:1], self._waiting[1:]
        return self._send(proposed, self._rung)

    def _send(self, designs: Designs, rung: int) -> Designs:
        self.fidelity = self._rungs[rung]
        self._at(self.fidelity).wait_for(designs)
        return designs

    def _begin(self) -> tuple[int, int]:
        """First rung of the next bracket, and its number of new designs."""
        top = len(self._rungs) - 1
        rung = self._turn % (top + 1)
        self._turn += 1
        higher = top - rung  # rungs above the first one of the bracket
        return rung, math.ceil((top + 1) / (higher + 1) * self.hyperparameters.eta**higher)

    def _take_up(self) -> bool:
        """With no new design left: full simulations of those that were not promoted."""
        self._rung = len(self._rungs) - 1
        full = self._rungs[-1]
        for fidelity in reversed(self._rungs[:-1]):
            known = self._at(fidelity)
            left = self._new_at(full, Designs(self.space, known.codes[known.best_first()]))
            if len(left):
                self._members = self._waiting = left
                return True
        return False

    def _at(self, fidelity: float) -> _Known:
        return self._known.setdefault(fidelity, _Known(self.space, len(self.directions)))

    def _new_at(self, fidelity: float, designs: Designs) -> Designs:
        known = self._at(fidelity)
        rows = [row for row, key in enumerate(designs.keys()) if key not in known]
        return designs[np.array(rows, dtype=np.int64)]

    # -- new designs -----------------------------------------------------------------------------

    def _propose(self, n: int) -> Designs:
        """Up to ``n`` designs that were not met at any fidelity."""
        model, proposed = self._model(), self.space.designs(())
        for _ in range(n):
            design = self.space.designs(())
            if model is not None and self.rng.random() >= self.hyperparameters.random_share:
                drawn = self._unseen.sift(model.sample(self.hyperparameters.candidates))
                if len(drawn):
                    design = self._unseen.take_best(drawn, model.score(drawn))
            if not len(design):
                design = self._unseen.take(1)
            if not len(design):
                break
            proposed = proposed.concatenate(design)
        return proposed

    def _model(self) -> GoodAndOther | None:
        """A model from the highest fidelity at which enough designs are known."""
        least = len(self._moves.free) + 1
        if not self.hyperparameters.model:
            return None
        for fidelity in reversed(self._rungs):
            known = self._at(fidelity)
            if len(known) < least + 2:
                continue
            ranked = known.codes[known.best_first()]
            good = max(least, math.ceil(self.hyperparameters.good_share * len(ranked)))
            other = max(least, len(ranked) - good)
            return GoodAndOther(self._moves, self.rng, ranked[:good], ranked[-other:])
        return None


class _Known(Observations):
    """What is known at one fidelity."""

    _order: Ints = np.empty(0, dtype=np.int64)

    def __contains__(self, key: int) -> bool:
        """Whether a design was asked for or observed."""
        return key in self._rows or key in self._waiting

    def is_awaited(self, key: int) -> bool:
        """Whether a design was asked for and not observed."""
        return key in self._waiting

    def best_of(self, designs: Designs) -> Designs:
        """Those of the designs that are known and did not fail, the best first."""
        place = self.best_first().argsort()
        found = [
            (place[row], i)
            for i, key in enumerate(designs.keys())
            if (row := self._rows.get(key)) is not None and np.isfinite(self.total_excess[row])
        ]
        return designs[np.array([i for _, i in sorted(found)], dtype=np.int64)]

    def best_first(self) -> Ints:
        """Rows of all that is known, failures last, shape (n,)."""
        if len(self._order) < len(self):
            goals, excess = self.goals, self.total_excess
            if goals.shape[1] == 1:
                self._order = np.lexsort((np.where(excess > 0, 0.0, goals[:, 0]), excess))
            else:
                self._order = constrained_order(goals, excess)
        return self._order


def _rungs(fidelities: tuple[Fidelity, ...], eta: int) -> list[float]:
    """Values of the fidelities that are used, ascending: costs about ``eta`` apart, or more."""
    rungs = [fidelities[-1]]
    for fidelity in reversed(fidelities[:-1]):
        if fidelity.cost * eta <= rungs[0].cost * _TOLERANCE:
            rungs.insert(0, fidelity)
    return [fidelity.value for fidelity in rungs]
