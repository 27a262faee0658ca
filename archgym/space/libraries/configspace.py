"""Designs as configurations of ConfigSpace, which SMAC and the hyperband libraries take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from archgym.errors import DesignError
from archgym.space.design_space import DesignSpace
from archgym.space.expression import Expression
from archgym.space.libraries.points import Form, PointEncoding
from archgym.space.libraries.regions import Region, Run, conjuncts, levels_of, regions
from archgym.space.parameter import Parameter

if TYPE_CHECKING:
    import ConfigSpace

_MAX_LISTED = 256
"""Levels up to which a parameter's values are listed one by one."""
_BROKEN = {
    "<": "ForbiddenGreaterThanEqualsRelation",
    "<=": "ForbiddenGreaterThanRelation",
    ">": "ForbiddenLessThanEqualsRelation",
    ">=": "ForbiddenLessThanRelation",
    "!=": "ForbiddenEqualsRelation",
}
"""The relation of two parameters that breaks a rule."""


class ConfigSpaceEncoding(PointEncoding):
    """A ``ConfigurationSpace`` with conditions and forbidden clauses; needs ``ConfigSpace``.

    A variable has the parameter's own value: categories and ordinal values as they are, integers,
    real numbers, on a logarithmic scale if the parameter has one. Integers with a step are
    ordinals. Above 256 values, levels are numbered.

    Conditions become conditions, exactly. Rules become forbidden clauses where few boxes of levels
    hold all that breaks them, or where they compare two numbers; :attr:`unexpressed` lists the
    others, whose designs have the outcome ``illegal``.

    >>> from archgym.space import Categorical, DesignSpace, Integer, param
    >>> encoding = ConfigSpaceEncoding(DesignSpace([
    ...     Categorical("refresh", ["none", "all_bank"]),
    ...     Integer("postponed", 0, 8, when=param("refresh") == "all_bank"),
    ... ]))
    >>> dict(encoding.point({"refresh": "all_bank", "postponed": 3}))
    {'refresh': 'all_bank', 'postponed': 3}
    >>> encoding.design(encoding.space.sample_configuration())["refresh"] in ("none", "all_bank")
    True

    Args:
        design_space: the space.
        default: the space's default configuration, a legal design such as an environment's
            ``baseline_design``; by default one that is drawn.
        seed: of the configurations that the space draws.
        name: of the space.

    Attributes:
        space: the ``ConfigSpace.ConfigurationSpace``.

    Raises:
        MissingDependencyError: if ConfigSpace is not installed.
        DesignError: if the default is no legal design, or there is none.
    """

    package = "'archgym[configspace]'"

    def __init__(
        self,
        design_space: DesignSpace,
        *,
        default: Mapping[str, Any] | None = None,
        seed: int | None = None,
        name: str = "archgym",
    ) -> None:
        try:
            import ConfigSpace
        except ImportError:
            raise self._missing("ConfigSpace") from None
        super().__init__(design_space)
        self._library = ConfigSpace
        codes = self._default(default)
        self.space: ConfigSpace.ConfigurationSpace = ConfigSpace.ConfigurationSpace(name, seed=seed)
        for parameter in self.searched:
            level = max(codes[design_space.index(parameter.name)], 0)
            self.space.add(self._hyperparameters(parameter, level))
        self._add_conditions()
        self._add_rules()

    def _default(self, default: Mapping[str, Any] | None) -> tuple[int, ...]:
        space = self.design_space
        if default is None:
            codes: list[int] = space.sample(1, np.random.default_rng(0)).codes[0].tolist()
            return tuple(codes)
        found = space.codes({**default, **space.fixed})
        if reason := space.illegal_reason(found):
            raise DesignError(f"the default is no legal design: {reason}")
        return found

    def _form(self, parameter: Parameter) -> Form:
        if parameter.kind == "permutation":
            return Form.KEYS
        if parameter.continuous or (parameter.kind == "integer" and _step(parameter) == 1):
            return Form.VALUE
        if parameter.ordered and parameter.size > _MAX_LISTED:
            return Form.LEVEL
        values = {parameter.value(code) for code in range(parameter.size)}
        return Form.VALUE if len(values) == parameter.size else Form.TEXT  # 1 and True are equal

    def _hyperparameters(self, parameter: Parameter, level: int) -> list[Any]:
        library, variables = self._library, self._variables(parameter, level)
        form, name = self._forms[parameter.name], parameter.name
        if form is Form.KEYS:
            return [
                library.UniformFloatHyperparameter(axis, 0.0, 1.0, default_value=key)
                for axis, key in variables.items()
            ]
        first, last = parameter.value(0), parameter.value(parameter.size - 1)
        default = variables[name]
        about = {"meta": {"unit": parameter.unit, "doc": parameter.doc}}
        if parameter.continuous:
            log = bool(getattr(parameter, "log", False))
            kind = library.UniformFloatHyperparameter
            return [kind(name, first, last, default_value=default, log=log, **about)]
        if form is Form.LEVEL or (parameter.kind == "integer" and _step(parameter) == 1):
            if form is Form.LEVEL:
                first, last = 0, parameter.size - 1
            kind = library.UniformIntegerHyperparameter
            return [kind(name, first, last, default_value=default, **about)]
        values = [self._variables(parameter, code)[name] for code in range(parameter.size)]
        if parameter.ordered:
            kind = library.OrdinalHyperparameter
            return [kind(name, values, default_value=default, **about)]
        return [library.CategoricalHyperparameter(name, values, default_value=default, **about)]

    def _point(self, codes: Any) -> Any:
        return self._library.Configuration(self.space, values=super()._point(codes))

    # -- conditions ----------------------------------------------------------------------------

    def _add_conditions(self) -> None:
        untold = []
        for parameter in self.searched:
            when = parameter.when
            if when is None:
                continue
            found = regions(self.design_space, when) if self._is_told(when) else None
            if found is None:
                untold.append(f"condition of {parameter.name}")
                continue
            for axis in parameter.axes:
                self._add_condition(self.space[axis], when, found)
            self.conditional |= {parameter.name}
        self.unexpressed += tuple(untold)

    def _add_condition(self, child: Any, when: Expression, found: list[Region]) -> None:
        alternatives = [
            [self._within(child, name, box[name]) for name in box]
            for box in self._boxes(when, found)
        ]
        if all(alternatives):  # an empty one holds always
            each = [_joined(parts, self._library.AndConjunction) for parts in alternatives]
            self.space.add(_joined(each, self._library.OrConjunction))

    def _within(self, child: Any, name: str, runs: tuple[Run, ...]) -> Any:
        """The condition that a parameter is active and has one of some levels."""
        library, parameter, parent = self._library, self.design_space[name], self.space[name]
        if parameter.size <= _MAX_LISTED:
            values = self._listed(parameter, runs)
            if len(values) == 1:
                return library.EqualsCondition(child, parent, values[0])
            return library.InCondition(child, parent, values)
        parts = []
        for run in runs:
            above, below = self._ends(parameter, run)
            ends = [] if above is None else [library.GreaterThanCondition(child, parent, above)]
            ends += [] if below is None else [library.LessThanCondition(child, parent, below)]
            if not ends:
                lowest = library.EqualsCondition(child, parent, parent.lower)
                higher = library.GreaterThanCondition(child, parent, parent.lower)
                ends = [library.OrConjunction(lowest, higher)]
            parts.append(_joined(ends, library.AndConjunction))
        return _joined(parts, library.OrConjunction)

    # -- rules ---------------------------------------------------------------------------------

    def _add_rules(self) -> None:
        untold = []
        for rule in self.design_space.rules:
            plain = all(self.design_space[name].when is None for name in rule.expression.names)
            parts = conjuncts(rule.expression) if plain else [rule.expression]
            clauses = [self._clauses(part) for part in parts]
            if any(found is None for found in clauses):
                untold.append(f"rule {rule.name}")
            for found in clauses:
                for clause in found or ():
                    self.space.add(clause)
        self.unexpressed += tuple(untold)

    def _clauses(self, expression: Expression) -> list[Any] | None:
        """Clauses that together forbid what breaks an expression; ``None`` if there are none."""
        if self.never & set(expression.names):
            return []
        if not self._is_told(expression):
            return None
        found = regions(self.design_space, expression, holds=False)
        if found is not None:
            boxes = self._boxes(expression, found)
            return [clause for box in boxes for clause in self._forbidden(box)]
        left, right = expression.args[0], expression.args[-1]
        pair = [one.args[0] for one in (left, right) if getattr(one, "op", "") == "param"]
        numbers = all(name in self._forms and self._is_number(name) for name in pair)
        if len(pair) == 2 and numbers and expression.op in _BROKEN:
            relation = getattr(self._library, _BROKEN[expression.op])
            return [relation(*(self.space[name] for name in pair))]
        return None

    def _is_number(self, name: str) -> bool:
        found = self.design_space[name]
        return self._forms[name] is Form.VALUE and (found.continuous or found.kind == "integer")

    def _forbidden(self, box: Region) -> list[Any]:
        """The clauses that forbid a box: several if a parameter of many levels has several runs."""
        library = self._library
        alternatives: list[list[Any]] = [[]]
        for name, runs in box.items():
            parameter, variable = self.design_space[name], self.space[name]
            if parameter.size <= _MAX_LISTED:
                listed = [library.ForbiddenInClause(variable, self._listed(parameter, runs))]
                alternatives = [[*before, *listed] for before in alternatives]
                continue
            intervals = []
            for run in runs:
                above, below = self._ends(parameter, run)
                low, high = library.ForbiddenGreaterThanClause, library.ForbiddenLessThanClause
                ends = [] if above is None else [low(variable, above)]
                ends += [] if below is None else [high(variable, below)]
                if not ends:  # active, at whatever level
                    at_least = library.ForbiddenGreaterThanEqualsClause
                    ends = [at_least(variable, variable.lower)]
                intervals.append(ends)
            alternatives = [[*before, *ends] for before in alternatives for ends in intervals]
        return [_joined(parts, library.ForbiddenAndConjunction) for parts in alternatives]

    # -- both ----------------------------------------------------------------------------------

    def _is_told(self, expression: Expression) -> bool:
        """Whether the library's variables say which parameters of an expression are active."""
        for name in expression.names:
            parameter = self.design_space[name]
            if parameter.when is not None and name not in self.conditional:
                return False
            if self._forms.get(name) is Form.KEYS:
                return False
        return True

    def _boxes(self, expression: Expression, found: list[Region]) -> list[Region]:
        """Boxes which, of parameters with a condition, also say that they are active."""
        names = [name for name in expression.names if name in self.conditional]
        whole = {name: ((0, self.design_space[name].size - 1),) for name in names}
        return [
            {name: runs for name, runs in {**whole, **box}.items() if name in self._forms}
            for box in found
        ]

    def _listed(self, parameter: Parameter, runs: tuple[Run, ...]) -> list[Any]:
        name = parameter.name
        return [self._variables(parameter, code)[name] for code in levels_of(runs)]

    def _ends(self, parameter: Parameter, run: Run) -> tuple[Any, Any]:
        """What a variable is above and below of in a run of levels; ``None`` at an end."""
        first, last = run
        below = None if last == parameter.size - 1 else self._border(parameter, last, 1)
        return None if first == 0 else self._border(parameter, first - 1, 0), below

    def _border(self, parameter: Parameter, level: int, side: int) -> Any:
        """A value between a level and the next one, or the one of them on the other side."""
        both = [self._variables(parameter, code)[parameter.name] for code in (level, level + 1)]
        return sum(both) / 2 if parameter.continuous else both[side]


def _step(parameter: Parameter) -> int:
    return int(getattr(parameter, "step", 1))


def _joined(parts: list[Any], conjunction: Any) -> Any:
    return parts[0] if len(parts) == 1 else conjunction(*parts)
