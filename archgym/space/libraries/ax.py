"""Designs as parameterizations of Ax."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archgym.space.design_space import DesignSpace
from archgym.space.expression import Expression
from archgym.space.libraries.linear import LinearBound, linear_bound
from archgym.space.libraries.points import Form, PointEncoding
from archgym.space.libraries.regions import conjuncts, levels_of, regions
from archgym.space.numeric import Integer, Real
from archgym.space.parameter import Parameter, plain

if TYPE_CHECKING:
    from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

_MIN_RANGE = 2e-5
"""Width below which Ax refuses a range, as that of a period in seconds."""
_MAX_CHOICES = 1000
"""Values of a choice that Ax takes at most."""
_MAX_LISTED = 256
"""Levels up to which a parameter's values are listed one by one."""


class AxEncoding(PointEncoding):
    """Parameters and constraints for ``ax.api.client.Client``; needs ``ax-platform``.

    A variable has the parameter's own value, as far as the values are of one type; other
    categories are text. Integers and real numbers are ranges, ordinal values and integers with a
    step ordered choices, or above 256 values the number of the level. Of a range that is too narrow
    for Ax, such as seconds of a clock period, it is the decimal logarithm on a logarithmic scale,
    else the number of the level.

    A parameter that is active for some values of one other, listed parameter depends on it, so
    that Ax's space is a hierarchy. Rules become parameter constraints where they are linear
    bounds on ranges that are always active. :attr:`unexpressed` lists the others.

    >>> from archgym.space import Categorical, DesignSpace, Integer, param
    >>> encoding = AxEncoding(DesignSpace([
    ...     Categorical("refresh", ["none", "all_bank"]),
    ...     Integer("postponed", 0, 8, when=param("refresh") == "all_bank"),
    ... ]))
    >>> encoding.parameters[0].dependent_parameters
    {'all_bank': ['postponed']}
    >>> encoding.point({"refresh": "none"}), encoding.design({"refresh": "none"})
    ({'refresh': 'none'}, {'refresh': 'none'})

    Args:
        design_space: the space.

    Attributes:
        parameters: configurations of parameters, for ``Client.configure_experiment``.
        parameter_constraints: bounds on sums of parameters, as text, for the same.

    Raises:
        MissingDependencyError: if Ax is not installed.
    """

    package = "'archgym[ax]'"

    def __init__(self, design_space: DesignSpace) -> None:
        try:
            from ax.api import configs
        except ImportError:
            raise self._missing("Ax") from None
        super().__init__(design_space)
        self._configs = configs
        children = self._dependents()
        self.parameters: list[ChoiceParameterConfig | RangeParameterConfig] = []
        for parameter in self.searched:
            self.parameters += self._configured(parameter, children.get(parameter.name))
        self.parameter_constraints: list[str] = []
        self._add_rules()

    def _form(self, parameter: Parameter) -> Form:
        if parameter.kind == "permutation":
            return Form.KEYS
        if isinstance(parameter, Real) and parameter.high - parameter.low < _MIN_RANGE:
            return Form.LOG if parameter.log else Form.LEVEL
        if _is_range(parameter):
            return Form.VALUE
        if parameter.size > (_MAX_LISTED if parameter.ordered else _MAX_CHOICES):
            return Form.LEVEL
        values = [plain(parameter.value(code)) for code in range(parameter.size)]
        return Form.VALUE if _type_of(values) else Form.TEXT

    def _configured(self, parameter: Parameter, children: dict[Any, list[str]] | None) -> list[Any]:
        form, name = self._forms[parameter.name], parameter.name
        between = self._configs.RangeParameterConfig
        if form is Form.KEYS:
            return [between(axis, (0.0, 1.0), "float") for axis in parameter.axes]
        if form is Form.LEVEL:
            return [between(name, (0, parameter.size - 1), "int")]
        if isinstance(parameter, Real):
            scaling = "log" if parameter.log and form is Form.VALUE else "linear"
            ends = [self._variables(parameter, code)[name] for code in (0, parameter.size - 1)]
            return [between(name, (ends[0], ends[1]), "float", scaling=scaling)]
        if isinstance(parameter, Integer) and _is_range(parameter):
            return [between(name, (parameter.low, parameter.high), "int")]
        values = [self._variables(parameter, code)[name] for code in range(parameter.size)]
        kind = _type_of(values)
        if kind == "float":
            values = [float(value) for value in values]
        choice = self._configs.ChoiceParameterConfig
        return [choice(name, values, kind, parameter.ordered, dependent_parameters=children)]

    def _dependents(self) -> dict[str, dict[Any, list[str]]]:
        """For each parent, and each of its values, the variables that are there only then."""
        children: dict[str, dict[Any, list[str]]] = {}
        untold = []
        for parameter in self.searched:
            when = parameter.when
            if when is None:
                continue
            found = regions(self.design_space, when)
            parents = [name for name in when.names if name in self._forms]
            conditional = [name for name in when.names if self.design_space[name].when is not None]
            if found == [{}] and not conditional:
                continue  # always active
            # A variable of Ax may depend on one value of its parent only.
            single = found is not None and len(found) == 1 and len(found[0]) == 1
            told = single and all(name in self.conditional for name in conditional)
            levels = levels_of(*found[0].values()) if told and found else []
            if len(levels) == 1 and len(parents) == 1 and self._is_listed(parents[0]):
                parent = self.design_space[parents[0]]
                value = self._variables(parent, levels[0])[parent.name]
                children.setdefault(parent.name, {}).setdefault(value, []).extend(parameter.axes)
                self.conditional |= {parameter.name}
            else:
                untold.append(f"condition of {parameter.name}")
        self.unexpressed += tuple(untold)
        return children

    def _is_listed(self, name: str) -> bool:
        form = self._forms[name]
        return form is Form.TEXT or (form is Form.VALUE and not _is_range(self.design_space[name]))

    def _add_rules(self) -> None:
        untold = []
        for rule in self.design_space.rules:
            plain_ = all(self.design_space[name].when is None for name in rule.expression.names)
            parts = conjuncts(rule.expression) if plain_ else [rule.expression]
            bounds = [self._bound(part) if plain_ else None for part in parts]
            if any(bound is None for bound in bounds):
                untold.append(f"rule {rule.name}")
            self.parameter_constraints += [str(bound) for bound in bounds if bound is not None]
        self.unexpressed += tuple(untold)

    def _bound(self, expression: Expression) -> LinearBound | None:
        bound = linear_bound(expression, self.design_space.fixed)
        if bound is None or not bound.terms:
            return None
        for name in bound.terms:
            parameter = self.design_space[name]
            is_log = isinstance(parameter, Real) and parameter.log
            if self._forms[name] is not Form.VALUE or not _is_range(parameter) or is_log:
                return None
        whole = all(isinstance(self.design_space[name], Integer) for name in bound.terms)
        return bound.closed(whole)


def _is_range(parameter: Parameter) -> bool:
    """Whether all numbers between the ends are values, or real ones near them."""
    return isinstance(parameter, Real) or (isinstance(parameter, Integer) and parameter.step == 1)


def _type_of(values: list[Any]) -> str:
    """Ax's name of the type that all values have; empty if there is none."""
    kinds = {type(value) for value in values}
    if kinds == {int, float}:
        return "float"
    names = {bool: "bool", int: "int", float: "float", str: "str"}
    return names[kinds.pop()] if len(kinds) == 1 else ""
