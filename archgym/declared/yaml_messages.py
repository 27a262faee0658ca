"""What is wrong with a text that is not YAML, for people who do not know YAML's own terms."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from archgym.errors import InvalidValueError

__all__ = ["not_utf8", "not_yaml"]

_PLAIN: Final[Mapping[str, str]] = {
    "while scanning for the next token": "",
    "while scanning a quoted scalar": "in a text in quotes",
    "while scanning a simple key": "in a key",
    "while parsing a flow sequence": "in a list in [ ]",
    "while parsing a flow mapping": "in a mapping in { }",
    "while parsing a flow node": "in brackets",
    "while parsing a block mapping": "in a mapping",
    "while parsing a block collection": "in a list",
    "while constructing a mapping": "in a mapping",
    "found character '\\t' that cannot start any token": "a tab stands here: indent with spaces",
    "mapping values are not allowed here": "a second ': ' in one line: put the text in quotes",
    "found unexpected end of stream": "the closing quote is missing",
    "could not find expected ':'": "a ':' is missing after the key",
}


def not_yaml(path: Path, text: str, error: yaml.YAMLError) -> InvalidValueError:
    """The error for a file that is not YAML: file, line, and what stands there.

    Args:
        path: the file.
        text: what is in it.
        error: of the parser.
    """
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        code = error.character if isinstance(error.character, int) else ord(error.character)
        problem = f"the character with the number {code} must not be in it"
        return InvalidValueError(f"{path}, line {line}: this is not YAML: {problem}")
    if not isinstance(error, yaml.MarkedYAMLError):
        return InvalidValueError(f"{path}: this is not YAML: {error}")
    mark = error.problem_mark or error.context_mark
    place = f", line {mark.line + 1}" if mark else ""
    begun = error.context_mark
    context = _PLAIN.get(error.context or "", error.context or "")
    if context and begun and mark and begun.line != mark.line:
        context += f" that begins in line {begun.line + 1}"
    problem = _PLAIN.get(error.problem or "", error.problem or "")
    said = ": ".join(part for part in (context, problem) if part)
    lines = text.splitlines()
    if mark and mark.line < len(lines) and "{{" in lines[mark.line]:
        said += "; put a text with {{ }} in quotes"
    return InvalidValueError(f"{path}{place}: this is not YAML: {said}")


def not_utf8(path: Path, error: UnicodeDecodeError) -> InvalidValueError:
    """The error for a file that is no text in UTF-8: the line and the byte."""
    line = error.object.count(b"\n", 0, error.start) + 1
    return InvalidValueError(
        f"{path} is not a text file in UTF-8: line {line} has the byte "
        f"0x{error.object[error.start]:02x}; save it as UTF-8"
    )
