"""Designs as points of pymoo's problems of mixed variables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from archgym.space.design_space import DesignSpace
from archgym.space.libraries.points import Form, PointEncoding
from archgym.space.numeric import Real
from archgym.space.parameter import Parameter

if TYPE_CHECKING:
    import pymoo.core.variable


class PymooEncoding(PointEncoding):
    """Variables of pymoo, for its algorithms that mix kinds of variables; needs ``pymoo``.

    Unordered parameters are a ``Choice`` of their values, booleans ``Binary``, ordered ones an
    ``Integer``, the number of the level, real ones ``Real``, on a logarithmic scale the decimal
    logarithm. Conditions and rules are not known to the variables:
    :func:`archgym.views.pymoo.pymoo_problem` makes rules a constraint.

    >>> from archgym.space import Boolean, DesignSpace, Ordinal
    >>> encoding = PymooEncoding(DesignSpace([Boolean("fast"), Ordinal("size", [1, 2, 4, 8])]))
    >>> encoding.point({"fast": True, "size": 8})
    {'fast': True, 'size': 3}

    Args:
        design_space: the space.

    Attributes:
        variables: one for each free parameter, or item of a permutation, by name.

    Raises:
        MissingDependencyError: if pymoo is not installed.
    """

    package = "'archgym[pymoo]'"

    def __init__(self, design_space: DesignSpace) -> None:
        try:
            import pymoo.core.variable
        except ImportError:
            raise self._missing("pymoo") from None
        super().__init__(design_space)
        self._kinds = pymoo.core.variable
        conditions = [p for p in self.searched if p.when is not None]
        self.unexpressed = (
            *(f"condition of {p.name}" for p in conditions),
            *(f"rule {rule.name}" for rule in design_space.rules),
        )
        self.variables: dict[str, pymoo.core.variable.Variable] = {
            axis: self._variable(p) for p in self.searched for axis in p.axes
        }

    def _form(self, parameter: Parameter) -> Form:
        if parameter.kind == "permutation":
            return Form.KEYS
        if isinstance(parameter, Real):
            return Form.LOG if parameter.log else Form.VALUE
        return Form.LEVEL if parameter.ordered else Form.VALUE

    def _variable(self, parameter: Parameter) -> Any:
        form = self._forms[parameter.name]
        if form is Form.KEYS:
            return self._kinds.Real(bounds=(0.0, 1.0))
        if isinstance(parameter, Real):
            ends = parameter.low, parameter.high
            return self._kinds.Real(bounds=tuple(map(math.log10, ends)) if parameter.log else ends)
        if form is Form.LEVEL:
            return self._kinds.Integer(bounds=(0, parameter.size - 1))
        if parameter.kind == "boolean":
            return self._kinds.Binary()
        options = np.empty(parameter.size, dtype=object)  # else numbers become text
        options[:] = [parameter.value(code) for code in range(parameter.size)]
        return self._kinds.Choice(options=options)
