"""What a model-based search hopes of designs: acquisition functions, larger is better."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from archgym.agents.common.arrays import Bools, Floats
from archgym.agents.gp.levels import coordinates
from archgym.agents.gp.models import Learned
from archgym.agents.gp.tabu import TabuRegions
from archgym.space import Designs, DesignSpace

Hope = Callable[[Floats, Floats], Floats]
"""From means and deviations of the goals, shape (n, n_goals) each, to what is hoped, (n,)."""
_TABU_SCORE, _CERTAIN_SCORE = -5e2, -1e3
"""Below all others: within a tabu region, and certain in advance."""
_EXACT = 16
"""Scores that are worked out in full, at least."""
_SURE = 2.0
"""Deviations from its limit at which it counts as known whether a design keeps it."""
_NO_GAIN = -1e2
"""Score of a design from which no gain of the front is hoped, before its distance is taken off."""
_LEAST_DEVIATION = 1e-9
"""Standardised deviation that certain designs are given, so that improvement has a logarithm."""
_MARGIN = 0.2
"""Distance of the reference point from the worst values on the front, as a share of its extent."""
_POINTS = 1024
"""Points by which volumes over three and more goals are estimated."""


class Acquisition:
    """Scores designs by what is hoped of their goals and by the chance to keep the limits.

    Args:
        space: the design space.
        learned: the processes.
        certain: deviation of standardised targets below which it counts as certain that a design is
            not better than the best.
        tabu: regions to be left alone, if any.
        hope: what is hoped of the goals.
        n_exact: so many of the best have their score; of others it may be too large, but it is no
            larger than those, and the chance that they keep the limits is not worked out.
    """

    def __init__(
        self,
        space: DesignSpace,
        learned: Learned,
        certain: float,
        tabu: TabuRegions | None,
        hope: Hope,
        n_exact: int = _EXACT,
    ) -> None:
        self._space, self._learned = space, learned
        self._certain, self._tabu, self._hope = certain, tabu, hope
        self._n_exact = n_exact
        self._best, self._least = np.empty(0), -np.inf

    def __call__(self, designs: Designs) -> Floats:
        """Score of each design, shape (n,)."""
        x = coordinates(self._space, designs.codes)
        predicted = [goal.predict(x) for goal in self._learned.goals]
        means, deviations = (np.stack(parts, axis=1) for parts in zip(*predicted, strict=True))
        amplitudes = np.array([goal.amplitude for goal in self._learned.goals])
        score = self._hope(means, deviations)
        sure = (deviations < self._certain * np.minimum(amplitudes, 1.0)).all(axis=1)
        sure &= (means + deviations > self._learned.targets.min(axis=0)).all(axis=1)
        if self._tabu is not None:
            score[~self._tabu.outside(designs.codes)] += _TABU_SCORE
        if not self._learned.limits:
            score[sure] += _CERTAIN_SCORE
            return score
        order = score.argsort(kind="stable")[::-1]
        done, chunk = 0, 4 * self._n_exact
        while done < len(order) and score[order[done]] > self._least:
            rows = order[done : done + chunk]
            score[rows] = self._with_limits(x[rows], score[rows], sure[rows])
            done, chunk = done + len(rows), 2 * chunk
        score[order[done:]] = np.minimum(score[order[done:]], self._least)
        return score

    def _with_limits(self, x: Floats, score: Floats, sure: Bools) -> Floats:
        """Scores less what limits take off them, and less for being certain in advance.

        One limit after the other is asked of those that may still be among the best.
        """
        from scipy.special import log_ndtr

        score = score.copy()
        left = np.arange(len(x))
        for limit in self._learned.limits:
            mean, deviation = limit.predict(x[left])
            sure[left] &= np.abs(mean) > _SURE * deviation
            score[left] += log_ndtr(-mean / deviation)
            left = left[score[left] > self._least]
        score[left] += np.where(sure[left], _CERTAIN_SCORE, 0.0)
        best = np.concatenate([self._best, score[left]])
        if len(best) >= self._n_exact:
            best = np.partition(best, -self._n_exact)[-self._n_exact :]
            self._least = float(best[0])
        self._best = best
        return score


def confidence_bound(kappa: float) -> Hope:
    """Of one goal: minus the lower confidence bound, ``kappa`` deviations below the mean."""

    def hope(means: Floats, deviations: Floats) -> Floats:
        return np.asarray(kappa * deviations[:, 0] - means[:, 0])

    return hope


def expected_improvement(best: float) -> Hope:
    """Of one goal: the logarithm of the expected improvement, of what is less than ``best``.

    With the logarithm of the chance to keep the limits added it is constrained expected improvement
    (Gardner and others, Bayesian Optimization with Inequality Constraints, ICML 2014); far above
    the best the logarithm is that of Ament and others, Unexpected Improvements to Expected
    Improvement for Bayesian Optimization, NeurIPS 2023.
    """
    from scipy.special import erfcx, ndtr

    def hope(means: Floats, deviations: Floats) -> Floats:
        deviation = np.maximum(deviations[:, 0], _LEAST_DEVIATION)
        z = (best - means[:, 0]) / deviation
        worse, better = np.minimum(z, 0.0), np.maximum(z, 0.0)
        ratio = 1 + worse * np.sqrt(np.pi / 2) * erfcx(-worse / np.sqrt(2))
        far = np.log(np.maximum(ratio, np.finfo(np.float64).tiny)) + _log_density(worse)
        near = np.log(np.exp(_log_density(better)) + better * ndtr(better))
        return np.asarray(np.where(z < 0, far, near) + np.log(deviation))

    return hope


def _log_density(z: Floats) -> Floats:
    """Of the standard normal distribution."""
    return np.asarray(-(z**2) / 2 - np.log(2 * np.pi) / 2)


def front_gain(kappa: float, targets: Floats, rng: np.random.Generator) -> Hope:
    """Of several goals: the volume that the lower confidence bounds add to the front.

    The front's dominated volume ends at a reference point somewhat beyond its worst values. Two
    goals have an exact volume, more of them one that is estimated. Of designs that add nothing
    those closest to the front come first. As in SMS-EGO: Ponweiser, Wagner, Biermann and Vincze,
    Multiobjective Optimization on a Limited Budget of Evaluations Using Model-Assisted S-Metric
    Selection, PPSN 2008; here on a logarithmic scale.

    Args:
        kappa: deviations below the mean that count.
        targets: of the designs known, shape (n, n_goals), at least one.
        rng: the only source of randomness.
    """
    import moocore

    front = targets[moocore.is_nondominated(targets, keep_weakly=False)]
    extent = front.max(axis=0) - front.min(axis=0)
    extent = np.where(extent > 0, extent, np.maximum(targets.std(axis=0), 1e-3))
    reference = front.max(axis=0) + _MARGIN * extent
    gain = _exact_gain if targets.shape[1] == 2 else _estimated_gain
    least = front.min(axis=0) - extent
    points = least + (reference - least) * rng.random((_POINTS, targets.shape[1]))

    def hope(means: Floats, deviations: Floats) -> Floats:
        bounds = means - kappa * deviations
        gains = gain(bounds, front, reference, points)
        far = (bounds[:, None, :] - front).max(axis=2).min(axis=1)
        with np.errstate(divide="ignore"):
            return np.where(gains > 0, np.log(gains), _NO_GAIN - np.maximum(far, 0.0))

    return hope


def _exact_gain(bounds: Floats, front: Floats, reference: Floats, _: Floats) -> Floats:
    """Area that each point adds to what two goals of the front dominate, shape (n,)."""
    front = front[front[:, 0].argsort(kind="stable")]
    starts = np.append(-np.inf, front[:, 0])
    ends = np.append(front[:, 0], reference[0])
    heights = np.append(reference[1], front[:, 1])
    widths = np.maximum(0.0, ends - np.maximum(starts, bounds[:, :1]))
    return np.asarray((widths * np.maximum(0.0, heights - bounds[:, 1:])).sum(axis=1))


def _estimated_gain(bounds: Floats, front: Floats, reference: Floats, points: Floats) -> Floats:
    """Share of the points that each bound dominates and the front does not, shape (n,)."""
    free = points[~(front[:, None, :] <= points).all(axis=2).any(axis=0)]
    return (
        np.asarray((bounds[:, None, :] <= free).all(axis=2).mean(axis=1))
        if len(free)
        else np.zeros(len(bounds))
    )
