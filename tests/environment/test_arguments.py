"""Differently configured environments never pass for the same one."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

import archgym
from archgym.check import check_environment
from archgym.errors import InvalidValueError
from archgym.simulators.shared_cache import simulation_key
from archgym.space import DesignSpace, Integer


class Wire(archgym.Environment):
    """A wire whose delay depends on two arguments, of which the settings name one."""

    design_space = DesignSpace([Integer("length_um", 1, 100)])
    metrics: ClassVar = (archgym.Metric("delay_ps", "ps"),)
    default_objective: ClassVar = "minimize delay_ps"
    baseline: ClassVar = {"length_um": 10}

    def __init__(
        self,
        width_nm: float = 40.0,
        *,
        layers: tuple[str, ...] = (),
        derate: Any = None,
        **arguments: Any,
    ) -> None:
        self.width_nm, self.layers, self.derate = width_nm, layers, derate
        super().__init__(**arguments)

    @property
    def settings(self) -> dict[str, Any]:
        return {"width_nm": self.width_nm}

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        return {"delay_ps": design["length_um"] * 40.0 / self.width_nm * (2 + len(self.layers))}


class Silent(Wire):
    """The same, and says nothing of any argument."""

    settings = archgym.Environment.settings


def test_settings_tell_two_environments_apart() -> None:
    design = {"length_um": 5}
    keys = {
        simulation_key(env.description, design, 1.0)
        for env in (Wire(), Wire(20.0), Wire(width_nm=30.0))
    }
    assert len(keys) == 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: Wire(layers=("m1",)),
        lambda: archgym.make(f"{__name__}:Wire", layers=("m1",)),
        lambda: Wire(derate=np.array([1.0, 2.0]), layers=("m1",)),
    ],
)
def test_an_argument_that_settings_do_not_name_is_refused(make: Any) -> None:
    with pytest.raises(InvalidValueError) as refusal:
        make()
    for part in ("Wire", "layers", "settings", "incidental_arguments = ('layers',)"):
        assert part in str(refusal.value).replace("derate", "layers")


@pytest.mark.parametrize(
    "arguments", [{}, {"layers": ()}, {"layers": []}, {"derate": None}, {"width_nm": 40.0}]
)
def test_what_is_as_by_default_need_not_be_named(arguments: dict[str, Any]) -> None:
    assert Wire(**arguments).evaluate({"length_um": 1}).metrics == {"delay_ps": 2.0}


def test_a_positional_argument_counts_too() -> None:
    with pytest.raises(InvalidValueError, match=r"Silent: .*width_nm=20.0"):
        Silent(20.0)


def test_incidental_arguments_are_taken() -> None:
    class Logged(Wire):
        incidental_arguments: ClassVar = ("derate", "log")

        def __init__(self, *, log: str = "", **arguments: Any) -> None:
            self.log = log
            super().__init__(**arguments)

    one, other = Logged(log="a.txt"), Logged(log="b.txt")
    design = {"length_um": 5}
    assert simulation_key(one.description, design, 1.0) == simulation_key(
        other.description, design, 1.0
    )


def test_a_simulator_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"simulator must be a name.*not 3"):
        archgym.make("Conformance-v0", simulator=3)


def test_the_shipped_check_finds_settings_that_are_not_there() -> None:
    (result,) = check_environment(Silent)
    assert not result.passed
    assert "width_nm" in result.detail
    assert "settings" in result.detail
    assert all(result.passed for result in check_environment(Wire))
