"""Environments by name: what `make` refuses."""

from __future__ import annotations

import pytest

import archgym
from archgym.errors import ArchgymError, InvalidValueError, UnknownNameError

from .helpers import Adder


class Unmade(Adder):
    def __init__(self, **arguments: object) -> None:
        self.arguments = arguments


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


def test_a_mistyped_class_is_named_with_the_nearest_one() -> None:
    with pytest.raises(ArchgymError, match=r"'Unmaed'\. Did you mean 'Unmade'"):
        archgym.make(f"{__name__}:Unmaed")


def test_a_constructor_that_makes_nothing_is_told_so() -> None:
    with pytest.raises(InvalidValueError, match=r"Unmade was not made: .* super\(\).__init__"):
        archgym.make(f"{__name__}:Unmade")
