"""Parses Liberty files: cells, their pins and their tables of delay, constraint and energy.

A reader for the part of the Liberty format that calibration needs (Liberty User Guides and
Reference Manual Suite, 2017.06), written to be safe on any file: it evaluates nothing, reads no
other file, and bounds size, nesting and table dimensions.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from archgym.errors import InvalidValueError

__all__ = ["Group", "parse_liberty", "read_liberty_text"]

LIMIT_BYTES = 256 * 2**20
"""Size of a Liberty file, uncompressed, beyond which it is refused; the largest in use have some
tens of megabytes."""
_LIMIT_DEPTH = 24

_TOKEN = re.compile(
    r"""
    (?P<skip>(?:\s|\\\r?\n|//[^\n]*|\#[^\n]*)+)
  | /\*(?P<comment>.*?)\*/
  | "(?P<text>[^"\\]*(?:\\.[^"\\]*)*)"
  | (?P<mark>[(){}:;,])
  | (?P<word>[^\s(){}:;,"]+)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass
class Group:
    """A Liberty group, as in `pin (A) { direction : input; }`.

    Attributes:
        kind: what it is (`pin`).
        arguments: the words in its parentheses (`A`).
        attributes: its simple and complex attributes, each a list of words; the last one wins.
        repeated: its complex attributes in their order, as in `fanout_length (1, 9.93);`.
        groups: the groups within it.
    """

    kind: str
    arguments: list[str]
    attributes: dict[str, list[str]] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    repeated: list[tuple[str, list[str]]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its first argument, or an empty text."""
        return self.arguments[0] if self.arguments else ""

    def text(self, attribute: str, default: str = "") -> str:
        """An attribute as text."""
        return " ".join(self.attributes.get(attribute, [default]))

    def number(self, attribute: str, default: float | None = None) -> float:
        """An attribute as a number.

        Raises:
            InvalidValueError: if it is none, or absent without a default.
        """
        words = self.attributes.get(attribute)
        if not words:
            if default is None:
                raise InvalidValueError(f"Liberty: {self.kind}({self.name}) has no {attribute}")
            return default
        try:
            return float(words[0])
        except ValueError:
            raise InvalidValueError(
                f"Liberty: {attribute} of {self.kind}({self.name}) is {words[0]!r}, no number"
            ) from None

    def all(self, kind: str) -> Iterator[Group]:
        """The groups of a kind within it."""
        return (group for group in self.groups if group.kind == kind)


def read_liberty_text(path: str | os.PathLike[str]) -> str:
    """The text of a Liberty file, which may be compressed with gzip (`.gz`).

    Raises:
        InvalidValueError: if there is no such file, or it is too large.
    """
    path = Path(path)
    if not path.is_file():
        raise InvalidValueError(f"there is no Liberty file {path}")
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            data = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        raise InvalidValueError(f"{path} cannot be read: {error}") from None
    if len(data) > LIMIT_BYTES:
        raise InvalidValueError(f"{path} has more than {LIMIT_BYTES} bytes: no Liberty file")
    return data.decode("utf-8", errors="replace")


def parse_liberty(text: str) -> Group:
    """The library group of a Liberty text.

    Raises:
        InvalidValueError: says in which line what was not expected.
    """
    tokens = _Tokens(text)
    kind, found = tokens.word("the library")
    if kind != "library":
        raise InvalidValueError(f"Liberty, line {found}: a library was expected, not {kind!r}")
    arguments = tokens.arguments()
    tokens.expect("{")
    library = _body(tokens, Group("library", arguments), 1)
    return library


def _body(tokens: _Tokens, group: Group, depth: int) -> Group:
    if depth > _LIMIT_DEPTH:
        raise InvalidValueError(f"Liberty, line {tokens.line}: groups nested beyond {_LIMIT_DEPTH}")
    while True:
        mark, name = tokens.next(f"{group.kind}({group.name})")
        if mark == "}":
            return group
        if mark == ";":
            continue
        if mark:
            raise InvalidValueError(f"Liberty, line {tokens.line}: unexpected {mark!r}")
        mark, _ = tokens.next(name)
        if mark == ":":
            group.attributes[name] = tokens.value()
        elif mark == "(":
            arguments = tokens.rest_of_arguments()
            if tokens.peek() == "{":
                tokens.expect("{")
                group.groups.append(_body(tokens, Group(name, arguments), depth + 1))
            else:
                group.attributes[name] = arguments
                group.repeated.append((name, arguments))
        else:
            raise InvalidValueError(
                f"Liberty, line {tokens.line}: ':' or '(' was expected after {name!r}"
            )


class _Tokens:
    """Tokens of a Liberty text: (mark, "") or ("", word)."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._start = 0

    @property
    def line(self) -> int:
        """Line of the last token."""
        return self._text.count("\n", 0, self._start) + 1

    def next(self, within: str) -> tuple[str, str]:
        while True:
            match = _TOKEN.match(self._text, self._at)
            if match is None:
                if self._at >= len(self._text):
                    raise InvalidValueError(f"Liberty: the text ends within {within}")
                self._start = self._at
                raise InvalidValueError(f"Liberty, line {self.line}: a text without its end")
            self._start, self._at = self._at, match.end()
            which = match.lastgroup
            if which == "mark":
                return match.group("mark"), ""
            if which == "text":
                return "", match.group("text").replace("\\\n", " ").replace("\\\r\n", " ")
            if which == "word":
                return "", match.group("word")

    def peek(self) -> str:
        """The next mark, or an empty text; nothing is consumed."""
        at, start = self._at, self._start
        try:
            return self.next("")[0]
        except InvalidValueError:
            return ""
        finally:
            self._at, self._start = at, start

    def word(self, within: str) -> tuple[str, int]:
        mark, word = self.next(within)
        if mark:
            raise InvalidValueError(f"Liberty, line {self.line}: {within} expected, not {mark!r}")
        return word, self.line

    def expect(self, mark: str) -> None:
        found, word = self.next(mark)
        if found != mark:
            raise InvalidValueError(
                f"Liberty, line {self.line}: {mark!r} was expected, not {found or word!r}"
            )

    def arguments(self) -> list[str]:
        self.expect("(")
        return self.rest_of_arguments()

    def rest_of_arguments(self) -> list[str]:
        words: list[str] = []
        while True:
            mark, word = self.next("an argument list")
            if mark == ")":
                return words
            if mark in ("{", "}", ";"):
                raise InvalidValueError(f"Liberty, line {self.line}: ')' was expected")
            if not mark:
                words.append(word)

    def value(self) -> list[str]:
        """Words up to the semicolon; a line that ends without one ends the value as well."""
        words: list[str] = []
        begin = self._at
        while True:
            at, start = self._at, self._start
            mark, word = self.next("a value")
            if mark == ";":
                return words
            if mark == "}" or (words and "\n" in self._text[begin : self._start]):
                self._at, self._start = at, start
                return words
            begin = self._at
            words.append(mark or word)
