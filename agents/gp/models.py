"""The Gaussian processes of a search: of each goal, of each limit that was broken, of failing."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np

from archgym.agents.common.arrays import Floats, Ints
from archgym.agents.common.observations import Observations
from archgym.agents.common.scores import BROKEN_LIMIT_COST
from archgym.agents.common.targets import (
    broken_limits,
    cost_forms,
    distance_from_limits,
    noise_shares,
)
from archgym.agents.gp.additive import AdditiveProcess
from archgym.agents.gp.experience import FAILING, Experience, Guess
from archgym.agents.gp.gaussian_process import GaussianProcess
from archgym.agents.gp.interactions import Interactions
from archgym.agents.gp.levels import Columns, coordinates
from archgym.agents.gp.trended import AnyProcess, TrendedProcess
from archgym.history import History
from archgym.space import DesignSpace

_PRIOR_DATA = 5.0
"""Designs for which the sources' scale of costs counts."""


@dataclass(frozen=True)
class Learned:
    """What the processes know at the moment.

    Attributes:
        goals: one process for each goal; one for the distance from
            all limits while nothing is feasible.
        targets: what they learned of the feasible designs, shape (n_feasible, n_goals); of all
            designs while nothing is feasible.
        limits: processes of what has to be negative.
        feasible: whether any design is.
    """

    goals: list[AnyProcess]
    targets: Floats
    limits: list[AnyProcess]
    feasible: bool

    @property
    def trusts(self) -> bool:
        """Whether what earlier searches say of goals is in use."""
        return any(isinstance(goal, TrendedProcess) and goal.trusts for goal in self.goals)


class Models:
    """Learns from observations.

    Each goal has several processes that differ in their prior and take turns, so that no process
    misleads the search for long. They learn the form of the cost that makes the data likeliest
    (:func:`archgym.agents.common.targets.cost_forms`). Until something feasible is known, the
    distance from keeping all limits takes the place of the goals.

    Args:
        space: the design space.
        n_goals: goals of the objective.
        n_models: processes of each goal; a single one has the default prior.
        interactions: whether to learn which parameters act together.
        rng: the only source of randomness.

    Attributes:
        goals: the processes of each goal.
    """

    def __init__(
        self,
        space: DesignSpace,
        n_goals: int,
        n_models: int,
        interactions: bool,
        rng: np.random.Generator,
    ) -> None:
        self._space, self._columns = space, Columns.of(space)
        self._n_models, self._rng = n_models, rng
        additive = interactions and len(space.free) in Interactions.columns
        self.goals: list[list[AnyProcess]] = [[*self._processes(additive)] for _ in range(n_goals)]
        self._likeliest = [[""] * n_models for _ in range(n_goals)]  # form of the cost, by process
        self._limits: dict[int, AnyProcess] = {}
        self.experience: Experience | None = None

    def recall(self, history: History) -> tuple[int, ...]:
        """Learns from earlier searches; without any that helps all stays as it is.

        Returns:
            Places of the sources that are left out.
        """
        experience = Experience(self._space, history, copy.deepcopy(self._rng))
        if len(experience):
            self.experience = experience
            rng = self._rng if self._n_models > 1 else None
            self.goals = [
                [
                    TrendedProcess(one, GaussianProcess(self._columns, rng))
                    for one in processes
                    if isinstance(one, GaussianProcess)
                ]
                for processes in self.goals
            ]
        return experience.ignored

    def alike(self, codes: Ints, centres: Ints) -> Floats:
        """Correlation of the first process, so that tabu regions change only as it learns."""
        x, z = coordinates(self._space, codes), coordinates(self._space, centres)
        return self.goals[0][0].correlation(x, z)

    def learn(
        self, known: Observations, rows: Ints, turn: int, *, believed: bool = True
    ) -> Learned:
        """Learns some of the observed designs; those in flight count as predicted.

        Args:
            known: all observations.
            rows: which of them to learn from.
            turn: decides which processes take part.
            believed: whether earlier searches are: of limits that these have seen broken there is
                then a process before the first one is broken here.
        """
        x = coordinates(self._space, known.codes[rows])
        ok, excess, costs = ~known.failed[rows], known.excess[rows], known.costs[rows]
        feasible = bool((costs < BROKEN_LIMIT_COST).any())
        if feasible:
            forms = [cost_forms(goal) for goal in known.goals[rows][ok].T]
            pairs = zip(known.goals[rows][ok].T, known.errors[rows][ok].T, strict=True)
            noise = [noise_shares(goal, errors) for goal, errors in pairs]
        else:  # the way to what keeps the limits comes first
            distance = distance_from_limits(excess[ok])
            forms = [{"cost": cost_forms(distance)["cost"]}]
            noise = [np.zeros(int(ok.sum()))]
            excess = excess[:, :0]
        expected = []
        if feasible and believed and self.experience is not None:
            expected = [limit for limit in self.experience.limits if limit != FAILING]
        limits = []
        for limit, seen, target in broken_limits(excess, ~ok, expected=expected):
            process = self._limit(limit)
            if isinstance(process, TrendedProcess):
                process.believed = believed
            process.tune(x[seen], target)
            process.fit(x[seen], target)
            limits.append(process)
        waiting = coordinates(self._space, known.waiting)
        goals: list[AnyProcess] = []
        targets = []
        for number, (form, known_noise) in enumerate(zip(forms, noise, strict=True)):
            which = turn % self._n_models
            model = self.goals[number][which]
            if isinstance(model, TrendedProcess):
                model.believed = believed
                cost = known.goals[rows][ok][:, number] if feasible else distance
                form = self._follow(model, cost, number if feasible else None)
                known_noise = known_noise * form["cost"][0].var()
            latest = self._likeliest[number][which]
            used, target = self._fit(model, x[ok], form, latest, waiting, known_noise)
            self._likeliest[number][which] = used
            targets.append(target)
            goals.append(model)
        keeps = costs[ok] < BROKEN_LIMIT_COST if feasible else np.ones(int(ok.sum()), dtype=bool)
        return Learned(goals, np.stack(targets, axis=1)[keeps], limits, feasible)

    def _limit(self, number: int) -> AnyProcess:
        """The process of a limit, around what sources say of it if all of them have broken it."""
        if number not in self._limits:
            plain = GaussianProcess(self._columns)
            process: AnyProcess = plain
            experience = self.experience
            if experience is not None and number in experience.limits:
                process = TrendedProcess(plain, GaussianProcess(self._columns))
                process.follow(lambda x: experience.limit(number, x))
            self._limits[number] = process
        return self._limits[number]

    def _follow(
        self, model: TrendedProcess, cost: Floats, goal: int | None
    ) -> dict[str, tuple[Floats, float]]:
        """Tells a process what sources expect; gives the form of the cost that it learns.

        The scale is at first that of the sources, as the first designs may all be good ones.

        Args:
            model: the process.
            cost: of each design, shape (n,).
            goal: its number; ``None`` for the distance from all limits.
        """
        experience = self.experience
        assert experience is not None
        centre, n = float(cost.mean()), len(cost)
        of_sources = experience.distance_scale if goal is None else experience.goal_scale(goal)
        variance = (n * float(cost.var()) + _PRIOR_DATA * of_sources**2) / (n + _PRIOR_DATA)
        scale = float(np.sqrt(variance)) or 1.0

        def expect(x: Floats) -> Guess:
            guess = experience.distance(x) if goal is None else experience.goal(goal, x)
            return Guess((guess.mean - centre) / scale, guess.deviation / scale)

        model.follow(expect)
        return {"cost": ((cost - centre) / scale, 0.0)}

    @staticmethod
    def _fit(
        model: AnyProcess,
        x: Floats,
        forms: dict[str, tuple[Floats, float]],
        latest: str,
        waiting: Floats,
        noise: Floats,
    ) -> tuple[str, Floats]:
        """Fits a process to the likeliest form of a cost; gives its name and targets.

        It is tuned on the form that was the likeliest the time before, ``latest``.
        """
        start, _ = forms.get(latest) or next(iter(forms.values()))
        model.tune(x, start, noise)
        model.fit(x, start, noise)
        used = max(forms, key=lambda name: model.retarget(forms[name][0]) + forms[name][1])
        target, _ = forms[used]
        model.retarget(target)
        if len(waiting):
            model.anticipate(waiting)
        return used, target

    def _processes(self, additive: bool) -> list[GaussianProcess]:
        """Those of a goal, which take turns."""
        rng = self._rng if self._n_models > 1 else None
        if not additive:
            return [GaussianProcess(self._columns, rng) for _ in range(self._n_models)]
        interactions = Interactions(len(self._space.free), self._rng)
        return [AdditiveProcess(self._columns, rng, interactions) for _ in range(self._n_models)]
