"""The view of an environment in which one parameter is chosen a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from archgym.environment.unwrapped import unwrapped
from archgym.errors import DesignError
from archgym.space import Designs, DesignSpace, MultiDiscreteEncoding, Rule


@dataclass(slots=True)
class Partial:
    """A design in the making.

    Attributes:
        codes: codes of all parameters, the first level where nothing is chosen yet.
        canonical: the same with -1 where a parameter is inactive.
        place: number of the choice that is next; their number once all are made.
    """

    codes: list[int]
    canonical: tuple[int, ...]
    place: int


class Steps:
    """The order in which a design's parameters are chosen, and what may be chosen.

    Free parameters come in the order of the space; those that are inactive under what has been
    chosen are skipped. A permutation is chosen item by item: which of those left comes next.

    Args:
        space: the design space.
        levels: number of evenly spread values at which real parameters are seen.

    Attributes:
        places: position of the parameter that each choice is of.
        sizes: number of alternatives of each choice.
        n_actions: the largest of them.

    Raises:
        InvalidValueError: if nothing is free, or a parameter is real and ``levels`` is not given.
    """

    def __init__(self, space: DesignSpace, levels: int | None = None) -> None:
        self.space = space
        encoding = MultiDiscreteEncoding(space, levels)
        self.sizes: list[int] = encoding.nvec.tolist()
        self.n_actions: int = max(self.sizes)
        self.places: list[int] = []
        self._codes: list[NDArray[np.int64]] = []  # what each alternative adds to the level
        for position, columns in zip(space.free, encoding.columns, strict=True):
            parameter, sizes = space.parameters[position], [self.sizes[c] for c in columns]
            self.places += [position] * len(columns)
            if parameter.continuous:
                self._codes.append(parameter.from_unit_interval(np.linspace(0, 1, sizes[0])))
                continue
            for column, size in enumerate(sizes):
                digits = np.zeros((size, len(sizes)), dtype=np.int64)
                digits[:, column] = np.arange(size)
                self._codes.append(parameter.from_digits(digits))
        self._alone = [self.places.count(position) == 1 for position in self.places]
        self._middles = [space.parameters[position].middles for position in self.places]
        self._masks = np.arange(self.n_actions) < np.array(self.sizes)[:, None]
        self._rules = _rules_by_place(space, self.places)
        self._first = [int(space.allowed_codes(i)[0]) for i in range(len(space.names))]

    def start(self) -> Partial:
        """A design of which nothing is chosen."""
        canonical = self.space.canonical_codes(self._first)
        place = self._next(canonical, 0)
        # Where fixed values leave no parameter active, there is a step all the same.
        return Partial(list(self._first), canonical, place if place < len(self.places) else 0)

    def choose(self, partial: Partial, action: int) -> bool:
        """Gives the next parameter the level of an action; whether the design is then complete.

        An action beyond the parameter's levels wraps around (``action % levels``), so that the
        levels' shares of the actions differ by one at most.

        Raises:
            DesignError: if there is no such action.
        """
        if not 0 <= action < self.n_actions:
            raise DesignError(f"action {action} does not exist: 0 to {self.n_actions - 1} do")
        place = partial.place
        level = int(self._codes[place][action % self.sizes[place]])
        position = self.places[place]
        begun = place > 0 and self.places[place - 1] == position
        partial.codes[position] = level + (partial.codes[position] if begun else 0)
        partial.canonical = self.space.canonical_codes(partial.codes)
        partial.place = self._next(partial.canonical, place + 1)
        return partial.place == len(self.places)

    def mask(self, partial: Partial) -> NDArray[np.bool_]:
        """Mask of the actions that are legal levels of the next parameter, shape (n_actions,).

        A rule is looked at where its last parameter is chosen. If no level keeps the rules, as
        earlier choices may bring about, all levels are allowed; the design is then illegal.
        """
        place = partial.place
        mask: NDArray[np.bool_] = self._masks[place].copy()
        if self._rules[place]:
            rows = np.tile(np.array(partial.codes), (self.sizes[place], 1))
            position = self.places[place]
            begun = place > 0 and self.places[place - 1] == position
            rows[:, position] = self._codes[place] + (rows[:, position] if begun else 0)
            designs = self.space.canonicalise(rows)
            legal = np.logical_and.reduce(
                [self.space.rule_holds(rule, designs.codes) for rule in self._rules[place]]
            )
            if legal.any():
                mask[: len(legal)] = legal
        return mask

    def observe(self, partial: Partial, row: NDArray[np.float32]) -> None:
        """Writes what is chosen, and what comes next, into a row of ``2 * n_choices`` numbers.

        First each choice's position in [-1, 1], of most parameters as in the environment's own
        observation, 0 where it is inactive or not made yet; then 1 for the choice that comes next.
        """
        row[:] = 0.0
        for i in range(partial.place):
            code = partial.canonical[self.places[i]]
            if code >= 0:
                row[i] = 2.0 * self._middle(i, code) - 1.0
        if partial.place < len(self.places):
            row[len(self.places) + partial.place] = 1.0

    def _middle(self, place: int, code: int) -> float:
        """The position of what was chosen among its alternatives, in [0, 1]."""
        if self._alone[place]:
            return self._middles[place][code][0]
        position = self.places[place]
        digits = self.space.parameters[position].digits(np.array([code]))[0]
        chosen = int(digits[place - self.places.index(position)])
        return (chosen + 0.5) / self.sizes[place]

    def observation_space(self, n_metrics: int) -> gymnasium.Space[NDArray[np.float32]]:
        """Space of :meth:`observe`, followed by the observations of metrics."""
        width = 2 * len(self.places) + n_metrics
        return gymnasium.spaces.Box(-1.0, 1.0, (width,), np.float32)

    def designs(self, complete: Sequence[Partial]) -> Designs:
        """Complete designs as a batch."""
        rows = np.array([partial.canonical for partial in complete], dtype=np.int64)
        return Designs(self.space, rows.reshape(len(complete), len(self.space.names)))

    def _next(self, canonical: Sequence[int], place: int) -> int:
        """The first place from here on that is active; conditions look only at earlier ones."""
        while place < len(self.places) and canonical[self.places[place]] < 0:
            place += 1
        return place


class StepwiseView(gymnasium.Env[NDArray[np.float32], Any]):
    """A Gymnasium environment in which one parameter is chosen a step.

    The step that completes a design evaluates it: it is checked, counted against the budget and
    recorded as any other, and its reward is the environment's; all other rewards are 0. An
    episode ends after ``episode_length`` designs. Parameters that are fixed, or inactive under
    what has been chosen, take no step.

    Observations are float32 in [-1, 1], shape (2 * n_choices + n_metrics,), one choice a free
    parameter and several a permutation: the design as far as it
    is chosen, which parameter comes next (:meth:`Steps.observe`), and the metrics of the
    last complete design as in the environment's own observation, at first the baseline's.

    Actions are levels; :meth:`action_masks` gives those that the next parameter has and the
    rules allow. Without masks, an action beyond the levels wraps around (:meth:`Steps.choose`).

    >>> import archgym
    >>> view = StepwiseView(archgym.make("Conformance-v0", space="finite"))
    >>> _ = view.reset(seed=0)
    >>> view.action_space, view.next_parameter, int(view.action_masks().sum())
    (Discrete(16), 'replacement', 3)

    Args:
        env: the environment; inside Gymnasium's wrappers is fine, they are left out.
        levels: number of evenly spread values at which real parameters are seen.

    Attributes:
        env: the environment.
        steps: the order of the choices.

    Raises:
        InvalidValueError: if a parameter is real and ``levels`` is not given, or ``env`` is not
            an archgym environment.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], levels: int | None = None) -> None:
        self.env = base = unwrapped(env)
        self.metadata = base.metadata
        self.render_mode = base.render_mode
        self.steps = Steps(base.design_space, levels)
        self._n_metrics = len(base.metrics)
        self.action_space = gymnasium.spaces.Discrete(self.steps.n_actions)
        self.observation_space = self.steps.observation_space(len(base.metrics))
        self._partial = self.steps.start()
        self._metrics = np.zeros(self._n_metrics, dtype=np.float32)
        self._designs = 0

    @property
    def next_parameter(self) -> str:
        """Name of the parameter that the next action chooses."""
        return self.steps.space.names[self.steps.places[self._partial.place]]

    def action_masks(self) -> NDArray[np.bool_]:
        """Mask of the actions that are possible now, shape (n_actions,), for MaskablePPO."""
        return self.steps.mask(self._partial)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Starts an episode with nothing chosen; simulates nothing."""
        super().reset(seed=seed)
        first, info = self.env.reset(seed=seed, options=options)
        self._metrics = first[-self._n_metrics :]
        self._partial = self.steps.start()
        self._designs = 0
        return self._observe(self._partial), info

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Chooses the next parameter's level; the last one evaluates the design.

        Raises:
            DesignError: if the action is outside the action space.
            BudgetExhausted: if the trial has a budget and it is spent.
        """
        if not self.steps.choose(self._partial, int(action)):
            return self._observe(self._partial), 0.0, False, False, {}
        complete, self._partial = self._partial, self.steps.start()
        outcomes = self.env.evaluate_batch(self.steps.designs([complete]))
        self._metrics = self.env.observe(outcomes)[0, -self._n_metrics :]
        self._designs += 1
        done = self._designs >= self.env.episode_length
        seen = self._observe(complete if done else self._partial)
        truncated = not done and self.env.evaluator.exhausted
        return seen, float(outcomes.reward[0]), done, truncated, self.env.info(*outcomes.rows())

    def render(self) -> Any:
        """The last complete design and its metrics, as text."""
        return self.env.render()

    def close(self) -> None:
        """Closes the environment."""
        self.env.close()

    def _observe(self, partial: Partial) -> NDArray[np.float32]:
        seen = np.empty(self.observation_space.shape or (), dtype=np.float32)
        self.steps.observe(partial, seen[: -self._n_metrics])
        seen[-self._n_metrics :] = self._metrics
        return seen


def _rules_by_place(space: DesignSpace, choices: Sequence[int]) -> list[list[Rule]]:
    """The rules that are settled once each choice, of the parameter at a position, is made.

    A rule is settled when all free parameters in it are, and those that decide whether the
    parameters in it are active.
    """
    place_of = {position: place for place, position in enumerate(choices)}  # its last choice
    settled: list[list[Rule]] = [[] for _ in choices]
    for rule in space.rules:
        positions: set[int] = set()
        names = list(rule.expression.names)
        while names:
            position = space.index(names.pop())
            when = space.parameters[position].when
            if position not in positions and when is not None:
                names += when.names
            positions.add(position)
        places = [place_of[position] for position in positions if position in place_of]
        if places:
            settled[max(places)].append(rule)
    return settled
