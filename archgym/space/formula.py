"""Expressions as people write them in files: ``sets * ways <= 4096 and policy == lru``.

The text has the syntax of Python, of which arithmetic, comparisons, ``and``, ``or``, ``not``,
``in`` and the functions of :data:`archgym.space.expression.FUNCTIONS` are taken. Python's parser
reads it; nothing is evaluated.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, Final

from archgym.errors import InvalidValueError, UnknownNameError
from archgym.space.expression import FUNCTIONS, Expression, Literal

MAX_CHARACTERS: Final = 2000
_BINARY: Final[Mapping[type[ast.operator], str]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
_COMPARISONS: Final[Mapping[type[ast.cmpop], str]] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


def parse_formula(text: str, names: Mapping[str, Expression | Literal]) -> Expression | Literal:
    """The expression that a text means; a number or a word alone is that literal.

    >>> from archgym.space import param
    >>> known = {"ways": param("ways"), "policy": param("policy")}
    >>> str(parse_formula("policy == lru and log2(ways) <= 3", known))
    '(policy == lru) and (log2(ways) <= 3)'

    Args:
        text: as it stands in a file. A word that is compared for equality with a name needs no
            quotes unless it is a name itself.
        names: what each name stands for.

    Raises:
        InvalidValueError: if the text has another form.
        UnknownNameError: if it has a name that is not known, with the nearest spelling.
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidValueError(f"an expression has at most {MAX_CHARACTERS} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
        found: Expression | Literal = _Reader(text, names).read(tree.body)
        return found
    except (RecursionError, MemoryError):
        raise InvalidValueError(f"{text!r:.80} is nested too deeply") from None
    except (SyntaxError, ValueError) as error:
        if isinstance(error, InvalidValueError):
            raise
        raise InvalidValueError(
            f"{text!r} is no expression, such as 'ways * 2 <= 16 and policy == lru'"
        ) from None


class _Reader:
    """Turns the parts of a parsed text into expressions."""

    def __init__(self, text: str, names: Mapping[str, Expression | Literal]) -> None:
        self._text, self._names = text, names

    def read(self, node: ast.expr) -> Any:
        """The expression, or the literal, that a part of the text is."""
        match node:
            case ast.Constant(value=bool() | int() | float() | str()):
                return node.value
            case ast.Name(id="true" | "false" as word):
                return word == "true"
            case ast.Name(id=name):
                return self._named(name)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return -value
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return Expression("-", (0, self.read(operand)))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Expression("not", (self.read(operand),))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return Expression(_BINARY[type(op)], (self.read(left), self.read(right)))
            case ast.BoolOp(op=op, values=values):
                return self._joined("and" if isinstance(op, ast.And) else "or", values)
            case ast.Compare(left=left, ops=ops, comparators=others):
                parts = [left, *others]
                pairs = zip(parts, ops, parts[1:], strict=False)
                compared = [self._compared(*pair) for pair in pairs]
                return _chained("and", compared)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self._called(name, args)
        raise self._not_taken(node)

    def _named(self, name: str) -> Expression | Literal:
        if name not in self._names:
            raise UnknownNameError("name", name, self._names, repr(self._text))
        return self._names[name]

    def _joined(self, op: str, values: list[ast.expr]) -> Expression:
        return _chained(op, [self.read(value) for value in values])

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Expression:
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(right, ast.List | ast.Tuple | ast.Set):
                raise self._not_taken(right)
            allowed = tuple(self._word_or(value) for value in right.elts)
            if any(isinstance(one, Expression) for one in allowed):
                raise InvalidValueError(f"{self._text!r}: after 'in' stands a list of values")
            found = Expression("in", (self.read(left), allowed))
            return found if isinstance(op, ast.In) else Expression("not", (found,))
        if type(op) not in _COMPARISONS:
            raise self._not_taken(left)
        sign = _COMPARISONS[type(op)]
        if sign not in ("==", "!="):
            return Expression(sign, (self.read(left), self.read(right)))
        if self._is_word(left) and not self._is_word(right):
            left, right = right, left
        if isinstance(left, ast.Constant):  # what is compared with a number is no word
            return Expression(sign, (self.read(left), self.read(right)))
        return Expression(sign, (self.read(left), self._word_or(right)))

    def _called(self, name: str, args: list[ast.expr]) -> Expression:
        if name not in FUNCTIONS:
            raise UnknownNameError("function", name, FUNCTIONS, repr(self._text))
        if len(args) != FUNCTIONS[name]:
            raise InvalidValueError(
                f"{self._text!r}: {name} takes {FUNCTIONS[name]} operands, not {len(args)}"
            )
        return Expression(name, tuple(self.read(arg) for arg in args))

    def _is_word(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id not in {*self._names, "true", "false"}

    def _word_or(self, node: ast.expr) -> Any:
        return node.id if isinstance(node, ast.Name) and self._is_word(node) else self.read(node)

    def _not_taken(self, node: ast.expr) -> InvalidValueError:
        part = ast.get_source_segment(self._text.strip(), node) or type(node).__name__
        return InvalidValueError(
            f"{self._text!r}: {part!r} is not taken: allowed are names, numbers, words in quotes, "
            f"+ - * / // % ** == != < <= > >= and or not in, and {', '.join(FUNCTIONS)}"
        )


def _chained(op: str, parts: list[Any]) -> Expression:
    found = parts[0]
    for part in parts[1:]:
        found = Expression(op, (found, part))
    return found  # type: ignore[no-any-return]
