"""Fits the coefficients of a technology to synthesised blocks.

Both fits are least squares of relative errors with coefficients that cannot be negative, and a
weak pull towards the proportions of a typical library: terms that the blocks do not distinguish (a
full adder and the partial product bit that feeds it) then keep a sensible ratio instead of taking
whatever value suits the sample. The period is the slowest stage's, which is found with the
coefficients of the round before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archgym.envs.tpe.microarchitecture.structure import Counts
from archgym.envs.tpe.technology.technology import (
    AREA_TERMS,
    PERIOD_TERMS,
    SIGNED_TERMS,
    Technology,
    area_terms,
    stage_terms,
)
from archgym.errors import InvalidValueError

__all__ = ["Fit", "Sample", "cross_validate", "fit"]

FloatArray = NDArray[np.float64]

_ROUNDS = 12
_PULL = 0.01

#: Typical area of each term relative to a flip-flop, and delay relative to a full adder: gate
#: equivalents of a standard-cell library with simple gates (NAND2 = 1, flip-flop 5.5).
_TYPICAL = Technology(
    "typical",
    "a library of simple gates",
    "gate equivalents",
    {
        "register": 1.0,
        "full_adder": 0.9,
        "half_adder": 0.5,
        "select": 0.75,
        "sign": 0.5,
        "and": 0.4,
        "encoder": 1.5,
        "stored_encoder": 0.8,
        "multiplexer": 0.4,
        "pending": 0.8,
        "recoding": 0.7,
        "adder": 1.0,
        "ripple": 1.0,
        "prefix_bit": 0.9,
        "prefix_node": 0.35,
    },
    {
        "register": 1.2,
        "encoder": 0.8,
        "select": 0.8,
        "select_fanout": 0.025,
        "operand_fanout": 0.1,
        "and": 0.4,
        "level": 1.0,
        "multiplexer": 0.5,
        "pending": 0.33,
        "adder": 0.5,
        "adder_bit": 0.2,
        "late_adder_bit": 0.16,
        "second_adder": 1.0,
        "sign_fanout": 0.3,
        "ripple": 0.0,
        "brent_kung": 0.0,
        "kogge_stone": 0.0,
        "sklansky": 0.0,
    },
)
_SCALE_OF_SIGNED = 0.025
"""Spread of the terms that compare adder forms, full adders a bit."""
_MINIMA = 0.02
"""Least share of a term's typical value that a library with less is taken to have."""


@dataclass(frozen=True)
class Sample:
    """A synthesised block.

    Attributes:
        counts: its cells and stages.
        area_um2: area of the mapped netlist, um2.
        min_period_ns: least clock period, ns.
        weight: how much it counts.
    """

    counts: Counts
    area_um2: float
    min_period_ns: float
    weight: float = 1.0


@dataclass(frozen=True)
class Fit:
    """Fitted coefficients: see :class:`archgym.envs.tpe.technology.technology.Technology`."""

    area_um2_of: dict[str, float]
    delay_ns_of: dict[str, float]

    def area_um2(self, counts: Counts) -> float:
        """Area of a block, um2."""
        return sum(self.area_um2_of[name] * n for name, n in area_terms(counts).items())

    def min_period_ns(self, counts: Counts) -> float:
        """Least clock period of a block, ns."""
        return max(
            sum(self.delay_ns_of[name] * n for name, n in stage_terms(stage).items())
            for stage in counts.stages
        )


def fit(samples: Sequence[Sample], *, pull: float = _PULL, like: Sequence[Technology] = ()) -> Fit:
    """Coefficients of a library from synthesised blocks.

    Args:
        samples: the blocks; at least ten, of different kinds.
        pull: weight of the typical proportions against one sample.
        like: technologies whose proportions are the typical ones; those of simple gates if none.

    Raises:
        InvalidValueError: if there are too few samples, or one is not positive.
    """
    if len(samples) < 10:
        raise InvalidValueError(f"{len(samples)} blocks are too few to calibrate from, give 10")
    for sample in samples:
        if not (sample.area_um2 > 0 and sample.min_period_ns > 0):
            raise InvalidValueError(f"a block has no area or no period: {sample}")
    areas = np.array([sample.area_um2 for sample in samples])
    terms = np.array([list(area_terms(sample.counts).values()) for sample in samples], float)
    weights = np.array([sample.weight for sample in samples])
    of_area, of_delay = _proportions(like)
    area = _solve(terms, areas, weights, of_area, np.zeros(len(of_area), bool), pull)
    delay = _fit_delay(samples, weights, of_delay, pull)
    return Fit(
        dict(zip(AREA_TERMS, map(float, area), strict=True)),
        dict(zip(PERIOD_TERMS, map(float, delay), strict=True)),
    )


def _proportions(like: Sequence[Technology]) -> tuple[FloatArray, FloatArray]:
    """Typical areas and delays, up to a factor each: the mean of some technologies."""
    return (
        _mean(AREA_TERMS, "register", _TYPICAL.area_um2_of, [t.area_um2_of for t in like]),
        _mean(PERIOD_TERMS, "level", _TYPICAL.delay_ns_of, [t.delay_ns_of for t in like]),
    )


def _mean(
    terms: Iterable[str],
    unit: str,
    typical_of: Mapping[str, float],
    like: Sequence[Mapping[str, float]],
) -> FloatArray:
    """Mean of some tables, each in units of one of its terms."""
    names = list(terms)
    typical = np.array([typical_of[name] for name in names])
    rows = [np.array([table[name] for name in names]) / table[unit] for table in like]
    mean = np.mean(rows, axis=0) if rows else typical
    return np.where(typical > 0, np.maximum(mean, _MINIMA * typical), mean)


def _fit_delay(
    samples: Sequence[Sample], weights: FloatArray, typical: FloatArray, pull: float
) -> FloatArray:
    periods = np.array([sample.min_period_ns for sample in samples])
    signed = np.array([name in SIGNED_TERMS for name in PERIOD_TERMS])
    stages = [
        np.array([list(stage_terms(stage).values()) for stage in sample.counts.stages], float)
        for sample in samples
    ]
    found = typical
    for _ in range(_ROUNDS):
        slowest = np.array([of[int(np.argmax(of @ found))] for of in stages])
        before, found = found, _solve(slowest, periods, weights, typical, signed, pull)
        if np.allclose(before, found):
            break
    return found


def _solve(
    terms: FloatArray,
    values: FloatArray,
    weights: FloatArray,
    typical: FloatArray,
    signed: NDArray[np.bool_],
    pull: float,
) -> FloatArray:
    """Least squares of relative errors, pulled towards typical proportions.

    Coefficients are not negative, except the signed ones, which have a separate spread.
    """
    from scipy.optimize import nnls

    relative = terms / values[:, None]
    root = np.sqrt(weights)
    # The typical proportions, brought to the scale of the library.
    scale = float(np.median(1.0 / (relative @ typical)))
    width = np.where(signed, _SCALE_OF_SIGNED, typical) * scale
    rows = np.vstack((relative * root[:, None], np.diag(np.sqrt(pull) / width)))
    targets = np.concatenate((root, np.sqrt(pull) * typical * scale / width))
    either = np.flatnonzero(signed)
    found = np.asarray(nnls(np.hstack((rows, -rows[:, either])), targets)[0], float)
    found[either] -= found[len(typical) :]
    return found[: len(typical)]


def cross_validate(
    samples: Sequence[Sample],
    *,
    folds: int = 5,
    pull: float = _PULL,
    like: Sequence[Technology] = (),
) -> dict[str, FloatArray]:
    """Relative errors of each sample, predicted by a fit to the others."""
    area, period = np.zeros(len(samples)), np.zeros(len(samples))
    for k in range(folds):
        train = [s for i, s in enumerate(samples) if i % folds != k]
        model = fit(train, pull=pull, like=like)
        for i in range(k, len(samples), folds):
            sample = samples[i]
            area[i] = model.area_um2(sample.counts) / sample.area_um2 - 1
            period[i] = model.min_period_ns(sample.counts) / sample.min_period_ns - 1
    return {"area": area, "period": period}
