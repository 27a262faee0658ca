"""Expressions over parameters: the language of conditions and rules.

An expression is built with Python operators, evaluates on plain values or on whole columns,
and goes to JSON and back; nothing is ever handed to ``eval``.

>>> rule = param("rows") * param("columns") <= 64
>>> rule.evaluate({"rows": 8, "columns": 8})
True
>>> Expression.from_json(rule.to_json()).evaluate({"rows": 8, "columns": 9})
False
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from archgym.errors import InvalidValueError, UnknownNameError

_DEEPEST = 200
"""Operators within one another; what walks through an expression does so by recursion."""
Literal = str | int | float | bool
_LITERALS = (str, int, float, bool)


def _and(left: Any, right: Any) -> Any:
    return np.logical_and(left, right) if _is_array(left, right) else bool(left) and bool(right)


def _or(left: Any, right: Any) -> Any:
    return np.logical_or(left, right) if _is_array(left, right) else bool(left) or bool(right)


def _not(value: Any) -> Any:
    return np.logical_not(value) if isinstance(value, np.ndarray) else not value


def _in(value: Any, allowed: tuple[Literal, ...]) -> Any:
    if isinstance(value, np.ndarray):
        found = np.zeros(value.shape, dtype=bool)
        for item in allowed:
            found |= value == item
        return found
    return value in allowed


def _is_array(*values: Any) -> bool:
    return any(isinstance(value, np.ndarray) for value in values)


def _arithmetic(function: Callable[[float, float], float]) -> Callable[[Any, Any], Any]:
    """Arithmetic in double precision, on numbers and on columns alike.

    A result that is no finite real number (1 / 0, (-8) ** 0.5) is not a number, and compares
    as false; so one design and a batch of designs give the same.
    """

    def compute(left: Any, right: Any) -> Any:
        if not isinstance(left, np.ndarray) and not isinstance(right, np.ndarray):
            try:
                result = function(float(left), float(right))
            except (ArithmeticError, TypeError):
                return math.nan
            return result if isinstance(result, float) and math.isfinite(result) else math.nan
        left, right = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
        if function in _ONE_BY_ONE:  # libraries differ in the last bit: the same one for both
            pairs = np.broadcast(left, right)
            return np.array([compute(float(a), float(b)) for a, b in pairs]).reshape(pairs.shape)
        column: Any = function(left, right)
        return np.where(np.isfinite(column), column, np.nan)

    return compute


def _of_one(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """A function of one number, on numbers and on columns alike; see :func:`_arithmetic`."""

    def compute(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return np.array([compute(one) for one in value.ravel()]).reshape(value.shape)
        try:
            result = float(function(float(value)))
        except (ArithmeticError, TypeError, ValueError):
            return math.nan
        return result if math.isfinite(result) else math.nan

    return compute


_ONE_BY_ONE: tuple[Callable[..., float], ...] = (operator.pow, min, max)
FUNCTIONS: dict[str, int] = {
    **dict.fromkeys(("abs", "ceil", "floor", "log2", "sqrt"), 1),
    **dict.fromkeys(("min", "max"), 2),
}
"""Names of the functions that expressions may have, with the number of their operands."""
_NUMERIC: dict[str, Callable[..., Any]] = {
    "abs": _of_one(abs),
    "ceil": _of_one(math.ceil),
    "floor": _of_one(math.floor),
    "log2": _of_one(math.log2),
    "sqrt": _of_one(math.sqrt),
    "min": _arithmetic(min),
    "max": _arithmetic(max),
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": _arithmetic(operator.add),
    "-": _arithmetic(operator.sub),
    "*": _arithmetic(operator.mul),
    "/": _arithmetic(operator.truediv),
    "//": _arithmetic(operator.floordiv),
    "%": _arithmetic(operator.mod),
    "**": _arithmetic(operator.pow),
}
"""The operators and functions that need numbers."""
_OPERATORS: dict[str, Callable[..., Any]] = {
    **_NUMERIC,
    "==": operator.eq,
    "!=": operator.ne,
    "and": _and,
    "or": _or,
    "not": _not,
    "in": _in,
}


def _binary(op: str) -> Callable[[Expression, Any], Expression]:
    """The method behind a Python operator, with the expression on its left."""
    return lambda self, other: Expression(op, (self, other))


def _reflected(op: str) -> Callable[[Expression, Any], Expression]:
    """The method behind a Python operator, with the expression on its right."""
    return lambda self, other: Expression(op, (other, self))


class Expression:
    """A formula over parameters; see the module's example.

    Operators: ``== != < <= > >= + - * / // % **``, ``&`` (and), ``|`` (or), ``~`` (not), and the
    methods :meth:`isin` and :meth:`implies`. Expressions that are written as texts
    (:func:`archgym.space.formula.parse_formula`) may also have :data:`FUNCTIONS`.

    Attributes:
        op: the operator, or ``"param"``.
        args: operands: expressions, literals, for ``in`` a tuple of literals.
        names: names of the parameters that occur, sorted.

    Raises:
        InvalidValueError: if it is nested deeper than 200 operators.
    """

    __slots__ = ("_depth", "args", "names", "op")

    def __init__(self, op: str, args: tuple[Any, ...]) -> None:
        self.op = op
        self.args = args
        if op == "param":
            self.names: tuple[str, ...] = (args[0],)
            self._depth = 0
        else:
            parts = [arg for arg in args if isinstance(arg, Expression)]
            self.names = tuple(sorted({name for part in parts for name in part.names}))
            self._depth = 1 + max((part._depth for part in parts), default=0)
        if self._depth > _DEEPEST:
            raise InvalidValueError(
                f"an expression of {', '.join(self.names[:3])} ... is nested deeper than "
                f"{_DEEPEST} operators: split it into several rules, or add up in pairs"
            )

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """The value of the expression.

        Args:
            values: for each parameter that occurs, its value, or a column of values (an array
                of shape (n,)); then the result is an array too.
        """
        with np.errstate(all="ignore"):
            return self._value(values)

    def _value(self, values: Mapping[str, Any]) -> Any:
        if self.op == "param":
            return values[self.args[0]]
        operands = [a._value(values) if isinstance(a, Expression) else a for a in self.args]
        return _OPERATORS[self.op](*operands)

    def compile(self, positions: Mapping[str, int]) -> Callable[[list[Any]], Any]:
        """A fast function of a list of parameter values.

        Args:
            positions: index of each parameter in that list.
        """
        if self.op == "param":
            return operator.itemgetter(positions[self.args[0]])
        function = _OPERATORS[self.op]
        if (
            _is_param(self.args[0])
            and len(self.args) == 2
            and not isinstance(self.args[1], Expression)
        ):
            position, literal = positions[self.args[0].args[0]], self.args[1]
            return lambda values: function(values[position], literal)
        parts = [
            a.compile(positions) if isinstance(a, Expression) else _constant(a) for a in self.args
        ]
        if len(parts) == 1:
            (only,) = parts
            return lambda values: function(only(values))
        left, right = parts
        if self.op == "and":
            return lambda values: left(values) and right(values)
        if self.op == "or":
            return lambda values: left(values) or right(values)
        return lambda values: function(left(values), right(values))

    def isin(self, allowed: Iterable[Literal]) -> Expression:
        """True where the value is one of ``allowed``."""
        return Expression("in", (self, tuple(allowed)))

    def implies(self, other: Expression) -> Expression:
        """False only where this holds and ``other`` does not."""
        return ~self | other

    def to_json(self) -> Any:
        """A JSON value from which :meth:`from_json` builds the same expression."""
        if self.op == "param":
            return {"param": self.args[0]}
        args = [
            a.to_json() if isinstance(a, Expression) else list(a) if isinstance(a, tuple) else a
            for a in self.args
        ]
        return {"op": self.op, "args": args}

    @staticmethod
    def from_json(data: Any) -> Expression:
        """The inverse of :meth:`to_json`.

        Raises:
            InvalidValueError: if ``data`` is not an expression.
        """
        if isinstance(data, Mapping) and "param" in data:
            return param(data["param"])
        if not isinstance(data, Mapping) or "op" not in data or "args" not in data:
            raise InvalidValueError(f"not an expression: {data!r}")
        if data["op"] not in _OPERATORS:
            raise UnknownNameError("operator", data["op"], _OPERATORS)
        if not isinstance(data["args"], list):
            raise InvalidValueError(f"not an expression: {data!r}")
        args = tuple(_operand(data["op"], place, arg) for place, arg in enumerate(data["args"]))
        if len(args) != FUNCTIONS.get(data["op"], 1 if data["op"] == "not" else 2):
            raise InvalidValueError(f"operator {data['op']!r} has {len(args)} operands: {data!r}")
        return Expression(data["op"], args)

    def literals(self) -> list[tuple[str, Literal]]:
        """Pairs (parameter, literal) that are compared for equality, for checking spellings."""
        pairs: list[tuple[str, Literal]] = []
        if self.op in {"==", "!=", "in"} and _is_param(self.args[0]):
            right = self.args[1]
            if not isinstance(right, Expression):
                name = self.args[0].args[0]
                pairs += [(name, v) for v in (right if isinstance(right, tuple) else (right,))]
        for arg in self.args:
            if isinstance(arg, Expression) and arg.op != "param":
                pairs += arg.literals()
        return pairs

    def numeric_names(self) -> set[str]:
        """Parameters that are used in arithmetic or ordered comparisons, so must be numbers."""
        parts = [arg for arg in self.args if isinstance(arg, Expression)]
        used = {arg.args[0] for arg in parts if arg.op == "param" and self.op in _NUMERIC}
        return used.union(*(arg.numeric_names() for arg in parts))

    def __str__(self) -> str:
        if self.op == "param":
            return str(self.args[0])
        if self.op in FUNCTIONS:
            return f"{self.op}({', '.join(map(str, self.args))})"
        shown = [f"({a})" if _is_compound(a) else _show(a) for a in self.args]
        return f"not {shown[0]}" if self.op == "not" else f"{shown[0]} {self.op} {shown[1]}"

    def __repr__(self) -> str:
        return f"Expression({str(self)!r})"

    def __bool__(self) -> bool:
        raise InvalidValueError(
            f"the expression '{self}' has no truth value of its own: "
            "write & | ~ instead of and, or, not, and .isin([...]) instead of in"
        )

    __hash__ = object.__hash__

    __eq__ = _binary("==")  # type: ignore[assignment]
    __ne__ = _binary("!=")  # type: ignore[assignment]
    __lt__ = _binary("<")
    __le__ = _binary("<=")
    __gt__ = _binary(">")
    __ge__ = _binary(">=")
    __add__, __radd__ = _binary("+"), _reflected("+")
    __sub__, __rsub__ = _binary("-"), _reflected("-")
    __mul__, __rmul__ = _binary("*"), _reflected("*")
    __truediv__, __rtruediv__ = _binary("/"), _reflected("/")
    __floordiv__, __rfloordiv__ = _binary("//"), _reflected("//")
    __mod__, __rmod__ = _binary("%"), _reflected("%")
    __pow__, __rpow__ = _binary("**"), _reflected("**")
    __and__ = _binary("and")
    __or__ = _binary("or")

    def __invert__(self) -> Expression:
        return Expression("not", (self,))


def param(name: str) -> Expression:
    """The value of a parameter, as the start of an expression.

    >>> str(param("policy").isin(["open", "closed"]))
    'policy in (open, closed)'
    """
    if not isinstance(name, str) or not name:
        raise InvalidValueError(f"a parameter's name is a non-empty string, not {name!r}")
    return Expression("param", (name,))


def _operand(op: str, place: int, data: Any) -> Any:
    """An operand from JSON: an expression, a literal, or the list of literals of ``in``."""
    if isinstance(data, Mapping):
        return Expression.from_json(data)
    listed = data if op == "in" and place == 1 else [data]
    if not isinstance(listed, list) or not all(isinstance(one, _LITERALS) for one in listed):
        raise InvalidValueError(f"operator {op!r} does not take {data!r:.80}")
    return tuple(listed) if listed is data else data


def _constant(value: Any) -> Callable[[list[Any]], Any]:
    return lambda values: value


def _is_param(value: Any) -> bool:
    return isinstance(value, Expression) and value.op == "param"


def _is_compound(value: Any) -> bool:
    return isinstance(value, Expression) and value.op != "param" and value.op not in FUNCTIONS


def _show(value: Any) -> str:
    return "(" + ", ".join(map(str, value)) + ")" if isinstance(value, tuple) else str(value)
