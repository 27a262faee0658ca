"""Errors cross processes: a pool and Ray send them pickled."""

from __future__ import annotations

import pickle

import pytest

from archgym.errors import ArchgymError, DesignError, UnknownNameError


@pytest.mark.parametrize(
    "error",
    [UnknownNameError("agent", "gaa", ["ga", "gp"], "agents[0]"), DesignError("too large")],
)
def test_an_error_survives_the_way_to_another_process(error: ArchgymError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy)) == (type(error), str(error))


def test_a_long_name_is_shown_in_part() -> None:
    text = str(UnknownNameError("agent", "x" * 100_000, ["ga", "gp"]))
    assert len(text) < 400
    assert "(100,002 characters)" in text
    assert "Allowed: ga, gp" in text
