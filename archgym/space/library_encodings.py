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

    A permutation has a real dimension for each item: sorted by these keys the items stand in order.

    Attributes:
        dimensions: list of ``skopt.space`` dimensions, one a free parameter, or an item of one.
    """

    def __init__(self, design_space: DesignSpace) -> None:
        super().__init__(design_space)
        from skopt import space as skopt_space

        self._columns = self.columns
        self.dimensions: list[Any] = []
        for p in self._parameters:
            if len(p.axes) > 1:
                self.dimensions += [skopt_space.Real(0.0, 1.0, name=axis) for axis in p.axes]
                continue
            if isinstance(p, Real):
                prior = "log-uniform" if p.log else "uniform"
                found = skopt_space.Real(p.low, p.high, prior=prior, name=p.name)
            elif p.ordered:
                found = skopt_space.Integer(0, p.size - 1, name=p.name)
            else:
                found = skopt_space.Categorical(_names(p), name=p.name)
            self.dimensions.append(found)

    def encode(self, designs: Designs) -> NDArray[np.object_]:
        """Points, object array of Python scalars, shape (n_designs, n_dimensions)."""
        codes = self._known(designs)
        points = np.empty((len(codes), self._columns[-1].stop), dtype=object)
        for i, (p, own) in enumerate(zip(self._parameters, self._columns, strict=True)):
            if len(own) > 1:
                points[:, own] = p.places(codes[:, i])
                continue
            column = (p.values(codes[:, i]) if p.continuous else codes[:, i]).tolist()
            points[:, own.start] = column if p.ordered else [str(p.value(c)) for c in column]
        return points

    def decode(self, rows: NDArray[Any]) -> Designs:
        rows = self._check(np.asarray(rows, dtype=object), self._columns[-1].stop)
        columns = []
        for p, own in zip(self._parameters, self._columns, strict=True):
            if len(own) > 1:
                columns.append(p.from_places(rows[:, own].astype(np.float64)))
                continue
            values = rows[:, own.start]
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
            levels as integers, real values as they are; a permutation has a number for each item,
            ``NAME[ITEM]``, by which the items are sorted.
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
            if len(p.axes) > 1:
                key = distributions.FloatDistribution(0.0, 1.0)
                self.distributions.update(dict.fromkeys(p.axes, key))
                continue
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
        shape = len(rows), len(self.distributions)
        return self.decode(np.array(rows, dtype=object).reshape(shape))


def _names(parameter: Parameter) -> list[str]:
    """The values of an unordered parameter, as text."""
    return [str(parameter.value(code)) for code in range(parameter.size)]
