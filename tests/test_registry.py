"""Environments by name: what `make` refuses."""

from __future__ import annotations

import pytest

import archgym
from archgym import agent
from archgym.errors import ArchgymError, InvalidValueError, UnknownNameError
from archgym.evaluation.outcome import Outcomes
from archgym.registry import agent_class
from archgym.space import Designs
from tests.helpers import Adder


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


class Nameless(agent.Sampler):
    """Complete, but for its name."""

    def ask(self, n: int) -> Designs:
        return self.space.sample(n, self.rng)

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        """Learns nothing."""


class Deaf(agent.Sampler):
    """Cannot be told."""

    name = "deaf"

    class Hyperparameters(agent.Hyperparameters):
        """One without a default."""

        population: int

    def ask(self, n: int) -> Designs:
        return self.space.sample(n, self.rng)


@pytest.mark.parametrize(
    ("name", "message"),
    [("Nameless", "has no name.* as in name = 'nameless'"), ("Deaf", "does not define tell")],
)
def test_what_an_agent_lacks_is_said_before_it_runs(name: str, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        agent_class(f"{__name__}:{name}")


def test_a_hyperparameter_without_a_value_is_named() -> None:
    with pytest.raises(InvalidValueError, match="hyperparameter population has no default"):
        Deaf.check_hyperparameters({})
