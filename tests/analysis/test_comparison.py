"""Comparisons of agents, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from archgym.analysis.comparison import variance_share
from archgym.analysis.statistics import holm, mann_whitney, share_interval


def test_statistics_by_hand() -> None:
    share = share_interval(
        np.zeros(10, dtype=bool)
    )  # Brown, Cai and DasGupta (2001): z2 / (n + z2)
    assert share.low == 0
    assert share.high == pytest.approx(3.8415 / 13.8415, abs=1e-4)
    assert holm([0.5, 0.001, 0.02]) == pytest.approx([0.5, 0.003, 0.04])
    p_value, chance = mann_whitney(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, np.inf]))
    assert chance == 1.0
    assert 0.05 < p_value < 0.11
    assert mann_whitney(np.array([np.inf]), np.array([np.inf])) == (1.0, 0.5)
    assert variance_share(np.array([1.0, 2.0, 3.0, 4.0]), ["a", "a", "b", "b"]) == 0.8
    assert variance_share(np.array([1.0, 2.0]), ["a", "a"]) is None
