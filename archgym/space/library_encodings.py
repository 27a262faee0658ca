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
        from skopt.space import Categorical, Integer, Real

        self.dimensions: list[Any] = []
        for p in self._parameters:
            if p.continuous:
                prior = "log-uniform" if _is_log(p) else "uniform"
                self.dimensions.append(Real(*_ends(p), prior=prior, name=p.name))
            elif p.ordered:
                self.dimensions.append(Integer(0, p.size - 1, name=p.name))
            else:
                self.dimensions.append(Categorical(_names(p), name=p.name))

    def encode(self, designs: Designs) -> NDArray[np.object_]:
        """Points, object array of Python scalars, shape (n_designs, n_free)."""
        codes = self._known(designs)
        points = np.empty(codes.shape, dtype=object)
        for i, p in enumerate(self._parameters):
            if p.continuous:
                points[:, i] = p.values(codes[:, i]).tolist()
            elif p.ordered:
                points[:, i] = codes[:, i].tolist()
            else:
                points[:, i] = [str(p.value(c)) for c in codes[:, i].tolist()]
        return points

    def decode(self, rows: NDArray[Any]) -> Designs:
        rows = self._check(np.asarray(rows, dtype=object), len(self.free))
        columns = []
        for p, values in zip(self._parameters, rows.T, strict=True):
            if p.continuous:
                codes = [p.code(float(np.clip(v, *_ends(p)))) for v in values]
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
            if p.continuous:
                found = distributions.FloatDistribution(*_ends(p), log=_is_log(p))
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


def _ends(parameter: Parameter) -> tuple[float, float]:
    """The least and the greatest value of a real parameter."""
    return float(parameter.value(0)), float(parameter.value(parameter.size - 1))


def _is_log(parameter: Parameter) -> bool:
    return bool(getattr(parameter, "log", False))


def _names(parameter: Parameter) -> list[str]:
    """The values of an unordered parameter, as text."""
    return [str(parameter.value(code)) for code in range(parameter.size)]
