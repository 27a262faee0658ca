"""Environments by name: what `make` refuses."""

from __future__ import annotations

import pytest

import archgym
from archgym.errors import UnknownNameError


@pytest.mark.parametrize(
    ("name", "argument", "meant"),
    [
        ("TPE-v0", "technolgy", "technology"),  # the environment's own
        ("DRAM-v0", "workloads", "workload"),  # every environment's
    ],
)
def test_a_mistyped_argument_is_named_with_the_nearest_one(
    name: str, argument: str, meant: str
) -> None:
    with pytest.raises(UnknownNameError, match=f"argument of {name} '{argument}'.*'{meant}'"):
        archgym.make(name, **{argument: 1})
