"""Conditions on rows, as people write them: ``status == ok and param.ways >= 4``.

===========================  =====================================================================
``COLUMN OP VALUE``          OP is ``== != < <= > >=``; a value is a number, a word, or a quoted
                             text
``COLUMN in VALUE, VALUE``   one of several
``COLUMN == null``           there is no value: an inactive parameter, a metric that is not given
``A and B``, ``A or B``,     combinations; ``and`` binds closer than ``or``
``not A``, ``(A)``
===========================  =====================================================================

``param.`` and ``metric.`` may be left out. A comparison with a missing value holds for neither
sign, so ``not (ways >= 4)`` leaves inactive ones out, too. The text becomes an
:class:`~archgym.space.expression.Expression`; nothing is ever handed to ``eval``.
"""

from __future__ import annotations

import datetime
import functools
import operator
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from archgym.errors import InvalidValueError, UnknownNameError, check_choice
from archgym.space.expression import Expression, param

_TOKEN = re.compile(
    r"\s*(?:(?P<mark><=|>=|==|!=|<|>|=|\(|\)|,)|\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'"
    r"|(?P<keyword>and|or|not|in)(?=[\s<>=!(),\"']|$)|(?P<word>[^\s<>=!(),\"']+)|(?P<rest>\S.*))",
    re.DOTALL,
)
_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Column:
    """What a condition may compare a column with.

    Args:
        type: its Arrow type.
        parse: the value that a text means, for ``==``, ``!=`` and ``in``; raises an
            :class:`~archgym.errors.ArchgymError` for a value that it never has.
    """

    def __init__(self, type: pa.DataType, parse: Callable[[str], Any] | None = None) -> None:
        self.type = type.value_type if pa.types.is_dictionary(type) else type
        self._parse = parse

    def value(self, name: str, op: str, text: str) -> Any:
        """The value that a text means.

        Raises:
            InvalidValueError: if it is not of the column's kind.
        """
        if op in ("==", "!=", "in") and self._parse is not None:
            return self._parse(text)
        kind = "a word"
        try:
            if pa.types.is_boolean(self.type):
                kind = "true or false"
                return {"true": True, "false": False}[text.lower()]
            if pa.types.is_integer(self.type) or pa.types.is_floating(self.type):
                kind = "a number"
                return float(text) if not text.lstrip("+-").isdigit() else int(text)
            if pa.types.is_timestamp(self.type):
                kind = "a time such as 2026-05-01T12:30"
                when = datetime.datetime.fromisoformat(text)
                return when if when.tzinfo else when.replace(tzinfo=datetime.UTC)
        except (KeyError, ValueError):
            raise InvalidValueError(f"{name} {op} {text}: {text!r} is not {kind}") from None
        if op not in ("==", "!=", "in"):
            raise InvalidValueError(
                f"{name} {op} {text}: {name} holds words, which go with ==, != and in"
            )
        return text


def parse_condition(text: str, columns: Mapping[str, Column]) -> Expression:
    """The expression that a text means; its names are names of columns.

    Raises:
        InvalidValueError: if it cannot be read.
        UnknownNameError: if there is no such column, with the nearest spelling.
    """
    try:
        return _Parser(text, columns).parse()
    except RecursionError:
        raise InvalidValueError("the condition is nested too deeply") from None


def to_arrow(expression: Expression) -> pc.Expression:
    """The same as an expression of pyarrow, for filtering tables."""
    if expression.op == "not":
        return ~to_arrow(expression.args[0])
    left, right = expression.args
    if expression.op in ("and", "or"):
        combine = operator.and_ if expression.op == "and" else operator.or_
        return combine(to_arrow(left), to_arrow(right))
    field = pc.field(left.args[0])
    if right is None:
        return field.is_null() if expression.op == "==" else field.is_valid()
    if expression.op == "in":
        return functools.reduce(operator.or_, (field == value for value in right))
    found: pc.Expression = _COMPARISONS[expression.op](field, right)
    return found


class _Parser:
    """A parser by recursive descent."""

    def __init__(self, text: str, columns: Mapping[str, Column]) -> None:
        if not isinstance(text, str) or not text.strip():
            raise InvalidValueError(f"a condition is a text such as 'status == ok', not {text!r}")
        self._text, self._columns = text, columns
        self._tokens: deque[tuple[str, str]] = deque()
        for match in _TOKEN.finditer(text):
            kind = str(match.lastgroup)
            word = match[kind]
            if kind == "rest":
                raise InvalidValueError(f"condition {text!r} cannot be read from {word!r} on")
            self._tokens.append((kind, word))
        self._tokens.append(("end", "the end"))

    def parse(self) -> Expression:
        found = self._either()
        if self._take("end") is None:
            raise self._wrong("'and' or 'or'")
        return found

    def _either(self) -> Expression:
        found = self._both()
        while self._take("keyword", "or"):
            found = found | self._both()
        return found

    def _both(self) -> Expression:
        found = self._one()
        while self._take("keyword", "and"):
            found = found & self._one()
        return found

    def _one(self) -> Expression:
        if self._take("keyword", "not"):
            return ~self._one()
        if self._take("mark", "("):
            found = self._either()
            if not self._take("mark", ")"):
                raise self._wrong("')'")
            return found
        return self._comparison()

    def _comparison(self) -> Expression:
        word = self._take("word")
        if word is None:
            raise self._wrong("the name of a column")
        name = self._column(word)
        column = self._columns[name]
        if self._take("keyword", "in"):
            words = [self._value()]
            while self._take("mark", ","):
                words.append(self._value())
            return param(name).isin([column.value(name, "in", word) for word in words])
        op = self._take("mark", "=", *_COMPARISONS)
        if op is None:
            raise self._wrong(f"one of {' '.join(_COMPARISONS)} or in")
        op = "==" if op == "=" else op
        if self._take("word", "null"):
            if op not in ("==", "!="):
                raise InvalidValueError(f"{name} {op} null: null goes with == and !=")
            return Expression(op, (param(name), None))
        return Expression(op, (param(name), column.value(name, op, self._value())))

    def _column(self, word: str) -> str:
        found = [n for n in (word, f"param.{word}", f"metric.{word}") if n in self._columns]
        if not found:
            short = [name.removeprefix("param.").removeprefix("metric.") for name in self._columns]
            raise UnknownNameError(
                "column", word, self._columns if "." in word else short, f"condition {self._text!r}"
            )
        if len(found) > 1 and word not in self._columns:
            raise InvalidValueError(f"condition {self._text!r}: write {' or '.join(found)}")
        return found[0]

    def _value(self) -> str:
        for kind in ("word", "single", "double"):
            word = self._take(kind)
            if word is not None:
                return word
        raise self._wrong("a value")

    def _take(self, kind: str, *words: str) -> str | None:
        """The next token, if it is of this kind and one of these words (any by default)."""
        found, word = self._tokens[0]
        if found != kind or (words and word not in words):
            return None
        self._tokens.popleft()
        return word

    def _wrong(self, wanted: str) -> InvalidValueError:
        word = self._tokens[0][1]
        return InvalidValueError(f"condition {self._text!r}: {wanted} expected before {word!r}")


def known_values(kind: str, allowed: Iterable[Any]) -> Callable[[str], Any]:
    """A parser that takes only values that occur."""
    by_text = {str(value): value for value in allowed}

    def parse(text: str) -> Any:
        check_choice(kind, text, by_text)
        return by_text[text]

    return parse
