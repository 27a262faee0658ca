"""YAML that people write: text keys, no key twice, and the line of each value for messages."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

import yaml

from archgym.reading.plain_yaml import UNREADABLE, YAML_LIMIT_BYTES, BoundedLoader

Path = tuple[str | int, ...]
"""Keys and positions that lead to a value of a document."""


class WrittenLoader(BoundedLoader):
    """YAML as people expect it: text keys, no key twice, 1e-3 a number, no dates."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Says which value cannot be read, as a number of 5,000 digits or the 99th of May."""
        try:
            return super().construct_object(node, deep)
        except UNREADABLE:
            raise yaml.MarkedYAMLError(
                problem=f"the value {str(node.value)[:20]}... cannot be read",
                problem_mark=node.start_mark,
            ) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Refuses a key that is no text, or is there twice."""
        self.flatten_mapping(node)
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node)
            if not isinstance(key, str):
                raise yaml.MarkedYAMLError(
                    problem=_not_text(key_node.value, key),
                    problem_mark=key_node.start_mark,
                )
            if key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key!r} is there twice", problem_mark=key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


WrittenLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
WrittenLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\d[\d_]*(\.\d[\d_]*)?|\.\d[\d_]*)[eE][-+]?\d+"),
    list("-+.0123456789"),
)


def _not_text(written: object, key: object) -> str:
    if isinstance(key, bool):
        return (
            f"the key {written} is read as {str(key).lower()}, as YAML reads on, off, yes and no: "
            "is another key meant? Otherwise put it in quotes"
        )
    return f"the key {key!r} is not a text: put it in quotes"


def parse_with_lines(text: str) -> tuple[Any, dict[Path, int]]:
    r"""The value of a YAML text, and where its parts stand.

    >>> parse_with_lines("sizes:\n  - 8")[1]
    {(): 1, ('sizes',): 1, ('sizes', 0): 2}

    Returns:
        The value, and the line of each part, counted from 1; of a mapping's part, its key's.

    Raises:
        yaml.YAMLError: if it is not YAML, too large or nested too deeply.
    """
    if len(text) > YAML_LIMIT_BYTES:
        raise yaml.YAMLError(f"it has more than {YAML_LIMIT_BYTES:,} characters")
    loader = WrittenLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, {(): 1}
        value = loader.construct_document(node)
        lines: dict[Path, int] = {}
        _note(node, (), node.start_mark.line + 1, lines)
        return value, lines
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None
    finally:
        loader.dispose()


def line_of(lines: dict[Path, int], path: Path) -> int:
    """The line of a part, or of the nearest one around it that is there."""
    for length in range(len(path), -1, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1


def _note(node: yaml.Node, path: Path, line: int, lines: dict[Path, int]) -> None:
    lines[path] = line
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            _note(value, (*path, str(key.value)), key.start_mark.line + 1, lines)
    elif isinstance(node, yaml.SequenceNode):
        for position, one in enumerate(node.value):
            _note(one, (*path, position), one.start_mark.line + 1, lines)
