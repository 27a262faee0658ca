"""Boolean functions as Liberty files write them, on many bits at once.

>>> parse("!(A1 & A2)")({"A1": 0b0011, "A2": 0b0101}, 0b1111)
14
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from archgym.errors import InvalidValueError

__all__ = ["Function", "parse"]

Function: TypeAlias = Callable[[Mapping[str, int], int], int]
"""From the value of each pin, a bit for each case, and the mask of all cases to the result."""

_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_\[\]]*|[01()!&|^*+'])")
_MAX_TOKENS = 2000


def parse(text: str) -> Function:
    """A function in Liberty's notation.

    The operators, the tightest first: ``'`` behind and ``!`` before an operand, ``^``, then
    ``&``, ``*`` or nothing (and), then ``|`` or ``+``.

    Raises:
        InvalidValueError: if it is none.
    """
    tokens: list[str] = []
    at, text = 0, text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or len(tokens) == _MAX_TOKENS:
            raise InvalidValueError(f"Boolean function {text!r}: not understood at {text[at:]!r}")
        tokens.append(match.group(1))
        at = match.end()
    parser = _Parser(text, tokens)
    function = parser.either()
    parser.end()
    return function


class _Parser:
    def __init__(self, text: str, tokens: list[str]) -> None:
        self._text = text
        self._tokens = tokens
        self._at = 0

    def either(self) -> Function:
        found = self._both()
        while self._next() in ("|", "+"):
            self._at += 1
            found = _or(found, self._both())
        return found

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise self._error()

    def _both(self) -> Function:
        found = self._one_of()
        while self._next() not in ("", ")", "|", "+", "^"):
            if self._next() in ("&", "*"):
                self._at += 1
            found = _and(found, self._one_of())
        return found

    def _one_of(self) -> Function:
        found = self._operand()
        while self._next() == "^":
            self._at += 1
            found = _xor(found, self._operand())
        return found

    def _operand(self) -> Function:
        token = self._next()
        self._at += 1
        if token == "!":
            return _not(self._operand())
        if token == "(":
            found = self.either()
            if self._next() != ")":
                raise self._error()
            self._at += 1
        elif token in ("0", "1"):
            found = _constant(token == "1")
        elif re.match(r"[A-Za-z_]", token):
            found = _pin(token)
        else:
            self._at -= 1
            raise self._error()
        while self._next() == "'":
            self._at += 1
            found = _not(found)
        return found

    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _error(self) -> InvalidValueError:
        where = self._next() or "its end"
        return InvalidValueError(f"Boolean function {self._text!r}: not understood at {where!r}")


def _pin(name: str) -> Function:
    return lambda values, ones: values[name]


def _constant(value: bool) -> Function:
    return lambda values, ones: ones if value else 0


def _not(f: Function) -> Function:
    return lambda values, ones: ones ^ f(values, ones)


def _and(f: Function, g: Function) -> Function:
    return lambda values, ones: f(values, ones) & g(values, ones)


def _or(f: Function, g: Function) -> Function:
    return lambda values, ones: f(values, ones) | g(values, ones)


def _xor(f: Function, g: Function) -> Function:
    return lambda values, ones: f(values, ones) ^ g(values, ones)
