"""Digit statistics against published averages and against counting by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from archgym.envs.tpe.microarchitecture.encodings import digits
from archgym.envs.tpe.microarchitecture.pe import ENCODINGS, Encoding
from archgym.envs.tpe.workload.digit_statistics import (
    digit_count_distribution,
    digit_covariance,
    digit_value_shares,
    mean_digits,
    nonzero_shares,
)
from archgym.envs.tpe.workload.operands import OperandDistribution
from archgym.envs.tpe.workload.signals import Signal
from archgym.errors import InvalidValueError

# Mean non-zero digits of 8-bit operands: Booth, EN-T, CSD, two's complement, sign-magnitude; by
# exact enumeration of the definitions, to three digits.
_KNOWN = {
    "uniform": (3.000, 2.918, 2.777, 4.000, 3.504),
    10: (1.925, 1.762, 1.731, 3.931, 1.890),
    20: (2.294, 2.115, 2.063, 3.976, 2.344),
    30: (2.530, 2.335, 2.259, 3.988, 2.619),
    40: (2.673, 2.490, 2.397, 3.993, 2.815),
    50: (2.769, 2.604, 2.500, 3.996, 2.968),
}
_COLUMNS: tuple[Encoding, ...] = ("booth", "ent", "csd", "serial_twos", "serial_sign_magnitude")


def _operands(sigma: str | int) -> OperandDistribution:
    if sigma == "uniform":
        return OperandDistribution.uniform(8)
    return OperandDistribution.normal(8, float(sigma))


@pytest.mark.parametrize("sigma", _KNOWN)
def test_known_averages(sigma: str | int) -> None:
    for encoding, known in zip(_COLUMNS, _KNOWN[sigma], strict=True):
        assert mean_digits(_operands(sigma), encoding) == pytest.approx(known, abs=6e-4)


def test_averages_of_the_paper() -> None:
    # HPCA 2025: 2.41 partial products with Booth digits and 2.22 with EN-T for normal operands.
    normal = OperandDistribution.normal(8, 25.0)
    assert mean_digits(normal, "booth") == pytest.approx(2.41, rel=0.01)
    assert mean_digits(normal, "ent") == pytest.approx(2.22, rel=0.01)


def test_share_of_operands_with_at_most_three_booth_digits() -> None:
    # HPCA 2025: 68.4 % of all 8-bit values, that is 175 of 256.
    shares = digit_count_distribution(OperandDistribution.uniform(8), "booth")
    assert shares[:4].sum() * 256 == pytest.approx(175)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_statistics_of_observed_operands_are_counted_ones(encoding: Encoding) -> None:
    rng = np.random.default_rng(7)
    seen = rng.integers(-500, 500, 3000)
    found = digits(seen, 12, encoding)
    operands = OperandDistribution.of_values(12, seen)
    nonzero = found != 0
    assert mean_digits(operands, encoding) == pytest.approx(nonzero.sum() / len(seen))
    np.testing.assert_allclose(nonzero_shares(operands, encoding), nonzero.mean(axis=0))
    counted = np.bincount(nonzero.sum(axis=1), minlength=found.shape[1] + 1) / len(seen)
    np.testing.assert_allclose(digit_count_distribution(operands, encoding), counted, atol=1e-12)
    between = np.cov(nonzero.T.astype(float), bias=True)
    np.testing.assert_allclose(digit_covariance(operands, encoding), between, atol=1e-12)
    minus_one = (found == -1).mean(axis=0)
    np.testing.assert_allclose(digit_value_shares(operands, encoding)[:, 1], minus_one, atol=1e-12)


@pytest.mark.parametrize("encoding", ["booth", "ent", "csd", "serial_sign_magnitude"])
def test_sign_extension_adds_no_digits(encoding: Encoding) -> None:
    operands = OperandDistribution.normal(8, 20.0)
    wide = operands.extended(16)
    assert mean_digits(wide, encoding) == pytest.approx(mean_digits(operands, encoding))
    # Two's complement repeats the sign: half of the operands are negative.
    more = mean_digits(wide, "serial_twos") - mean_digits(operands, "serial_twos")
    assert more == pytest.approx(8 * operands.probability[:128].sum())


def test_a_normal_distribution_keeps_its_far_ends() -> None:
    # At 5.1 standard deviations: the integral over half a unit around it.
    tail = OperandDistribution.normal(8, 25.0).probability[0]
    exact = (math.erf(128.5 / 25 / math.sqrt(2)) - math.erf(127.5 / 25 / math.sqrt(2))) / 2
    assert tail == pytest.approx(exact, rel=1e-6)
    narrow = OperandDistribution.normal(8, 2.0).probability
    assert 0 < narrow[0] < 1e-300 or narrow[0] == 0
    np.testing.assert_allclose(narrow[1:128], narrow[:128:-1])


def test_quantised_again_a_signal_keeps_its_scale() -> None:
    rng = np.random.default_rng(1)
    codes = np.maximum(rng.normal(0, 30, 20000).round(), 0).clip(0, 127).astype(int)
    signal = Signal("rectified", codes=OperandDistribution.of_values(8, codes))
    assert signal.at(8).zero_share == pytest.approx((codes == 0).mean())
    assert signal.at(16).zero_share == pytest.approx((codes == 0).mean())
    assert signal.at(16).mean / 256 == pytest.approx(signal.at(8).mean, rel=0.01)
    assert signal.at(4).mean * 16 == pytest.approx(signal.at(8).mean, rel=0.1)
    normal = Signal("normal", sigma=25.0)
    assert normal.at(16).standard_deviation == pytest.approx(6400, rel=1e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OperandDistribution.uniform(17), "17"),
        (lambda: OperandDistribution.normal(8, 0.0), "sigma"),
        (lambda: OperandDistribution.of_values(8, [128]), "128"),
        (lambda: OperandDistribution.of_values(8, []), "no values"),
        (lambda: OperandDistribution("x", 4, np.zeros(16)), "not all 0"),
        (lambda: OperandDistribution("x", 4, np.ones(8)), "16"),
        (lambda: OperandDistribution.uniform(8).extended(4), "4 bits"),
    ],
)
def test_impossible_distributions_are_refused(make: object, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        make()  # type: ignore[operator]
