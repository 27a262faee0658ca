"""Designs as points of scikit-optimize and as parameters of Optuna."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archgym.errors import MissingDependencyError
from archgym.space.design_space import DesignSpace
from archgym.space.designs import Designs
from archgym.space.encoding import Encoding
from archgym.space.numeric import Real
from archgym.space.parameter import Parameter

if TYPE_CHECKING:
    import optuna


class SkoptEncoding(Encoding):
    """Points of scikit-optimize: categories as text, levels as integers, real values as they are.

    Attributes:
        dimensions: list of ``skopt.space`` dimensions, one a free parameter.
    """

    def __init__(self, design_space: DesignSpace) -> None:
        super().__init__(design_space)
        from skopt import space as skopt_space

        self.dimensions: list[Any] = []
        for p in self._parameters:
            if isinstance(p, Real):
                prior = "log-uniform" if p.log else "uniform"
                found = skopt_space.Real(p.low, p.high, prior=prior, name=p.name)
            elif p.ordered:
                found = skopt_space.Integer(0, p.size - 1, name=p.name)
            else:
                found = skopt_space.Categorical(_names(p), name=p.name)
            self.dimensions.append(found)

    def encode(self, designs: Designs) -> NDArray[np.object_]:
        """Points, object array of Python scalars, shape (n_designs, n_free)."""
        codes = self._known(designs)
        points = np.empty(codes.shape, dtype=object)
        for i, p in enumerate(self._parameters):
            column = (p.values(codes[:, i]) if p.continuous else codes[:, i]).tolist()
            points[:, i] = column if p.ordered else [str(p.value(c)) for c in column]
        return points

    def decode(self, rows: NDArray[Any]) -> Designs:
        rows = self._check(np.asarray(rows, dtype=object), len(self.free))
        columns = []
        for p, values in zip(self._parameters, rows.T, strict=True):
            if isinstance(p, Real):
                codes = [p.code(float(np.clip(v, p.low, p.high))) for v in values]
            elif p.ordered:
                codes = [int(v) for v in values]
            else:
                levels = {name: code for code, name in enumerate(_names(p))}
                codes = [levels[str(v)] for v in values]
            columns.append(np.array(codes, dtype=np.int64))
        return self._assemble(columns, len(rows))


class OptunaEncoding(SkoptEncoding):
    """Optuna's distributions and parameter dictionaries; needs the extra ``archgym[optuna]``.

    Attributes:
        distributions: distribution of each free parameter by name: categories as text,
            levels as integers, real values as they are.
    """

    def __init__(self, design_space: DesignSpace) -> None:
        super().__init__(design_space)
        try:
            from optuna import distributions
        except ImportError:
            raise MissingDependencyError(
                "this encoding needs Optuna: pip install 'archgym[optuna]'"
            ) from None
        self.distributions: dict[str, optuna.distributions.BaseDistribution] = {}
        for p in self._parameters:
            if isinstance(p, Real):
                found = distributions.FloatDistribution(p.low, p.high, log=p.log)
            elif p.ordered:
                found = distributions.IntDistribution(0, p.size - 1)
            else:
                found = distributions.CategoricalDistribution(_names(p))
            self.distributions[p.name] = found

    def to_params(self, designs: Designs) -> list[dict[str, Any]]:
        """One dictionary of Optuna parameters a design."""
        return [dict(zip(self.distributions, row, strict=True)) for row in self.encode(designs)]

    def from_params(self, params: Sequence[Mapping[str, Any]]) -> Designs:
        """The inverse of :meth:`to_params`."""
        rows = [[point[name] for name in self.distributions] for point in params]
        return self.decode(np.array(rows, dtype=object).reshape(len(rows), len(self.free)))


def _names(parameter: Parameter) -> list[str]:
    """The values of an unordered parameter, as text."""
    return [str(parameter.value(code)) for code in range(parameter.size)]
