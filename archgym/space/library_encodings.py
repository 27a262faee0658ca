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

if TYPE_CHECKING:
    import optuna

__all__ = ["OptunaEncoding", "SkoptEncoding"]


class SkoptEncoding(Encoding):
    """Points of scikit-optimize: categories as text, levels as integers, real values as they are.

    Attributes:
        dimensions: list of ``skopt.space`` dimensions, one a free parameter.
    """

    def __init__(self, design_space: DesignSpace) -> None:
        super().__init__(design_space)
        from skopt.space import Categorical, Integer, Real

        self.dimensions: list[Any] = []
        for position in self.free:
            p = design_space.parameters[position]
            if p.continuous:
                ends = p.values(np.array([0, p.size - 1])).tolist()
                prior = "log-uniform" if getattr(p, "log", False) else "uniform"
                self.dimensions.append(Real(*ends, prior=prior, name=p.name))
            elif p.ordered:
                self.dimensions.append(Integer(0, p.size - 1, name=p.name))
            else:
                names = [str(p.value(c)) for c in range(p.size)]
                self.dimensions.append(Categorical(names, name=p.name))

    def encode(self, designs: Designs) -> NDArray[np.object_]:
        """Points, object array of Python scalars, shape (n_designs, n_free)."""
        codes = self._known(designs)
        points = np.empty(codes.shape, dtype=object)
        for i, position in enumerate(self.free):
            p = self.design_space.parameters[position]
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
        for i, position in enumerate(self.free):
            p = self.design_space.parameters[position]
            if p.continuous:
                ends = p.values(np.array([0, p.size - 1]))
                codes = [p.code(float(np.clip(v, *ends))) for v in rows[:, i]]
            elif p.ordered:
                codes = [int(v) for v in rows[:, i]]
            else:
                levels = {str(p.value(c)): c for c in range(p.size)}
                codes = [levels[str(v)] for v in rows[:, i]]
            columns.append(np.array(codes, dtype=np.int64))
        return self._assemble(columns, len(rows))


class OptunaEncoding(Encoding):
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
        self._points = SkoptEncoding(design_space)
        self.distributions: dict[str, optuna.distributions.BaseDistribution] = {}
        for position in self.free:
            p = design_space.parameters[position]
            if p.continuous:
                low, high = p.values(np.array([0, p.size - 1])).tolist()
                log = bool(getattr(p, "log", False))
                self.distributions[p.name] = distributions.FloatDistribution(low, high, log=log)
            elif p.ordered:
                self.distributions[p.name] = distributions.IntDistribution(0, p.size - 1)
            else:
                names = [str(p.value(c)) for c in range(p.size)]
                self.distributions[p.name] = distributions.CategoricalDistribution(names)

    def encode(self, designs: Designs) -> NDArray[np.object_]:
        """Values in the order of :attr:`distributions`, shape (n_designs, n_free)."""
        return self._points.encode(designs)

    def decode(self, rows: NDArray[Any]) -> Designs:
        return self._points.decode(rows)

    def to_params(self, designs: Designs) -> list[dict[str, Any]]:
        """One dictionary of Optuna parameters a design."""
        return [dict(zip(self.distributions, row, strict=True)) for row in self.encode(designs)]

    def from_params(self, params: Sequence[Mapping[str, Any]]) -> Designs:
        """The inverse of :meth:`to_params`."""
        rows = [[point[name] for name in self.distributions] for point in params]
        return self.decode(np.array(rows, dtype=object).reshape(len(rows), len(self.free)))
