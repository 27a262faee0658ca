"""Designs as values of a parametrization of nevergrad."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from archgym.space.design_space import DesignSpace
from archgym.space.libraries.points import Form, PointEncoding
from archgym.space.numeric import Real
from archgym.space.parameter import Parameter

if TYPE_CHECKING:
    import nevergrad

_MAX_LISTED = 256
"""Levels up to which an ordered parameter is a choice with transitions, as nevergrad's are."""


class NevergradEncoding(PointEncoding):
    """A ``nevergrad.p.Dict``; needs ``nevergrad``.

    Unordered parameters are a ``Choice``, ordered ones a ``TransitionChoice`` of their values, or
    above 256 of them a ``Scalar`` with the number of the level; real ones are a ``Scalar``, or a
    ``Log`` on a logarithmic scale.

    Rules become cheap constraints: nevergrad looks for a candidate that keeps them, and gives one
    that does not if it finds none soon. Nevergrad has no conditions: a candidate has a value for
    every parameter, and two that differ in one without effect are one design.

    >>> from archgym.space import Categorical, DesignSpace, Integer, param
    >>> encoding = NevergradEncoding(DesignSpace([
    ...     Categorical("refresh", ["none", "all_bank"]),
    ...     Integer("postponed", 0, 8, when=param("refresh") == "all_bank"),
    ... ]))
    >>> encoding.design({"refresh": "none", "postponed": 3})
    {'refresh': 'none'}
    >>> encoding.point({"refresh": "none"})
    {'refresh': 'none', 'postponed': 0}

    Args:
        design_space: the space.
        default: where optimisers begin, a design such as an environment's ``baseline_design``;
            by default nevergrad's middle of every parameter.
        seed: of the parametrization's random numbers, and so of the optimiser's.

    Attributes:
        parametrization: the ``nevergrad.p.Dict``; the value of a candidate is a point.

    Raises:
        MissingDependencyError: if nevergrad is not installed.
        DesignError: if the default is no design of the space.
    """

    package = "'archgym[nevergrad]'"

    def __init__(
        self,
        design_space: DesignSpace,
        *,
        default: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        try:
            import nevergrad
        except ImportError:
            raise self._missing("nevergrad") from None
        super().__init__(design_space)
        self._p = nevergrad.p
        self.unexpressed = tuple(
            f"condition of {p.name}" for p in self.searched if p.when is not None
        )
        variables = {axis: self._variable(p, axis) for p in self.searched for axis in p.axes}
        self.parametrization: nevergrad.p.Dict = nevergrad.p.Dict(**variables)
        if default is not None:
            self.parametrization.value = self.point({**default, **design_space.fixed})
        if design_space.rules:
            self.parametrization.register_cheap_constraint(self._keeps_rules)
        if seed is not None:
            self.parametrization.random_state = np.random.RandomState(seed)

    def _form(self, parameter: Parameter) -> Form:
        if parameter.kind == "permutation":
            return Form.KEYS
        large = parameter.ordered and not parameter.continuous and parameter.size > _MAX_LISTED
        return Form.LEVEL if large else Form.VALUE

    def _variable(self, parameter: Parameter, axis: str) -> Any:
        p, form = self._p, self._forms[parameter.name]
        if form is Form.KEYS:
            return p.Scalar(lower=0.0, upper=1.0)
        if isinstance(parameter, Real):
            ends = {"lower": parameter.low, "upper": parameter.high}
            return p.Log(**ends) if parameter.log else p.Scalar(**ends)
        if form is Form.LEVEL:
            return p.Scalar(lower=0, upper=parameter.size - 1).set_integer_casting()
        values = [self._variables(parameter, code)[axis] for code in range(parameter.size)]
        return p.TransitionChoice(values) if parameter.ordered else p.Choice(values)

    def _keeps_rules(self, point: Mapping[str, Any]) -> bool:
        return not self.design_space.broken_rule(self.design(point))
