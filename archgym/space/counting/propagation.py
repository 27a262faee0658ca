"""Drawing legal designs where rules leave next to nothing: parameter by parameter, by counts.

What :mod:`archgym.space.counting.cardinality` counts from the first parameter to the last is
weighed here from the last to the first. A parameter's level is then drawn with the share that legal
designs behind it have, so that no draw is in vain. Designs have the same probabilities as where
random ones are sifted by the rules: each combination of levels is equally likely, those of inactive
parameters too.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archgym.errors import DesignError
from archgym.space.conditions_and_rules import ConstrainedSpace
from archgym.space.counting.cardinality import active_states, grown_states, unique_rows
from archgym.space.designs import Designs
from archgym.space.parameter import Codes

_PROBED = 1 << 18
_ENOUGH = 8
"""Legal designs among :data:`_PROBED` random ones with which sifting is fast enough."""
_KEPT = 8


@dataclass(frozen=True)
class _Free:
    """A parameter that no later condition or rule looks at.

    Attributes:
        active: whether it is, for each state before it.
    """

    active: NDArray[np.bool_]


@dataclass(frozen=True)
class _Branch:
    """A parameter that is looked at: what each state before it may become.

    Attributes:
        start: index of the first branch of each state.
        until: sum of the shares of all branches up to each, where those of a state make 1.
        code: level of each branch, -1 for inactive.
        target: state that follows each.
    """

    start: NDArray[np.int64]
    until: NDArray[np.float64]
    code: NDArray[np.int64]
    target: NDArray[np.int64]


class Propagation:
    """Draws legal designs of one space.

    Args:
        space: the design space.

    Raises:
        SpaceTooLargeError: if too many parameters depend on each other.
        DesignError: if no design is legal.
    """

    def __init__(self, space: ConstrainedSpace) -> None:
        self._space = space
        self._layers: list[_Free | _Branch] = []
        steps: list[tuple[NDArray[np.int64], ...] | NDArray[np.bool_]] = []
        states, kept = np.zeros((1, 0), dtype=np.int64), list[int]()
        sizes: list[int] = []
        for position in range(len(space.parameters)):
            sizes.append(len(states))
            looked_at = space.is_referenced_after(position, position)
            if not looked_at and not space.rules_completed_by(position):
                steps.append(active_states(space, position, kept, states))
                continue
            grown, rows = grown_states(space, position, kept, states)
            kept = [*kept, position]
            keep = [i for i, p in enumerate(kept) if space.is_referenced_after(p, position)]
            kept, code = [kept[i] for i in keep], grown[:, -1]
            states, target = unique_rows(grown[:, keep])
            steps.append((rows, code, target))
        weight: NDArray[np.float64] = np.ones(len(states))
        for position in reversed(range(len(steps))):
            step = steps[position]
            if not isinstance(step, tuple):
                self._layers.append(_Free(step))  # every state has as many levels: no share changes
                continue
            rows, code, target = step
            levels = len(space.allowed_codes(position))
            ways = np.where(code < 0, float(levels), 1.0) * weight[target]
            weight = np.bincount(rows, ways, minlength=sizes[position]).astype(np.float64)
            if not weight.any():
                names = ", ".join(rule.name for rule in space.rules)
                raise DesignError(f"no design is legal: the rules ({names}) leave next to nothing")
            with np.errstate(invalid="ignore"):
                share = np.nan_to_num(ways / weight[rows])
            start = np.searchsorted(rows, np.arange(sizes[position] + 1))
            self._layers.append(_Branch(start, np.cumsum(share), code, target))
            weight /= weight.max()
        self._layers.reverse()

    def sample(self, n: int, rng: np.random.Generator) -> Designs:
        """Random legal designs, shape (n, n_parameters)."""
        parts, found = list[Codes](), 0
        while found < n:
            designs = Designs(self._space, self._draw(n - found, rng))
            # A sum of shares may be off in its last digit, and a branch without designs be met.
            parts.append(designs.codes[self._space.legal(designs)])
            found += len(parts[-1])
        return Designs(self._space, np.concatenate(parts))

    def _draw(self, n: int, rng: np.random.Generator) -> Codes:
        codes = np.empty((n, len(self._layers)), dtype=np.int64, order="F")
        state = np.zeros(n, dtype=np.int64)
        for position, layer in enumerate(self._layers):
            if isinstance(layer, _Free):
                allowed = self._space.allowed_codes(position)
                drawn = allowed[0] + rng.integers(len(allowed), size=n)
                codes[:, position] = np.where(layer.active[state], drawn, -1)
                continue
            first, end = layer.start[state], layer.start[state + 1]
            below = np.where(first > 0, layer.until[first - 1], 0.0)
            branch = np.searchsorted(layer.until, below + rng.random(n), side="right")
            branch = np.clip(branch, first, end - 1)
            codes[:, position], state = layer.code[branch], layer.target[branch]
        return codes


@functools.lru_cache(maxsize=_KEPT)
def propagation_of(space: ConstrainedSpace) -> Propagation:
    """The :class:`Propagation` of a space, known at once if there was one of an equal space."""
    return Propagation(space)


@functools.lru_cache(maxsize=64)
def is_sparse(space: ConstrainedSpace) -> bool:
    """Whether the rules keep next to none of random designs; the same on every machine."""
    rng, found = np.random.default_rng(0), 0
    for _ in range(16):
        raw = np.empty((_PROBED // 16, len(space.parameters)), dtype=np.int64, order="F")
        for position in range(len(space.parameters)):
            levels = space.allowed_codes(position)
            raw[:, position] = levels[0] + rng.integers(len(levels), size=len(raw))
        found += int(space.legal(space.canonicalise(raw)).sum())
        if found >= _ENOUGH:
            return False
    return True
