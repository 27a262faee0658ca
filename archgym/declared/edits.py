"""Setting values in copies of JSON, YAML, INI and XML files, by their paths.

A path must be there: a mistyped one is an error, not a new key.
"""

from __future__ import annotations

import configparser
import io
import json
import re
from collections.abc import Mapping
from typing import Any, Final

import yaml

from archgym.errors import InvalidValueError, UnknownNameError
from archgym.reading import plain_yaml, xml_text

__all__ = ["FORMATS", "edited", "steps_of", "values_at"]

FORMATS: Final = {
    "json": "json",
    "yaml": "yaml",
    "yml": "yaml",
    "ini": "ini",
    "cfg": "ini",
    "conf": "ini",
    "xml": "xml",
}
"""The format of a file by the ending of its name."""
_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+|\*)\]")


def edited(text: str, kind: str, values: Mapping[str, Any]) -> str:
    """A text with some values set.

    Args:
        text: what is in the file.
        kind: ``json``, ``yaml``, ``ini`` or ``xml``.
        values: new value by path.

    Raises:
        InvalidValueError: if the text is not of that kind, or a path is not possible.
        UnknownNameError: if a path leads nowhere.
    """
    try:
        if kind == "ini":
            return _edited_ini(text, values)
        if kind == "xml":
            return _edited_xml(text, values)
        data = json.loads(text) if kind == "json" else plain_yaml.parse(text)
    except (ValueError, RecursionError, yaml.YAMLError, configparser.Error) as error:
        if isinstance(error, InvalidValueError):
            raise
        raise InvalidValueError(f"the file to edit is not {kind.upper()}: {error}") from None
    for path, value in values.items():
        _put(data, path, value)
    if kind == "json":
        return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True))


def steps_of(path: str) -> list[str | int]:
    """Keys and positions of a path such as ``caches[0].size``; ``[*]`` is the key ``*``.

    Raises:
        InvalidValueError: if it has another form.
    """
    steps: list[str | int] = []
    position = 0
    for match in _STEP.finditer(path):
        between = path[position : match.start()]
        if between not in ("", "."):
            break
        key, index = match.groups()
        steps.append(key if key is not None else int(index) if index != "*" else "*")
        position = match.end()
    if position != len(path) or not steps:
        raise InvalidValueError(f"{path!r} is no path, such as caches[0].size")
    return steps


def values_at(data: Any, path: str) -> list[Any]:
    """The values that a path leads to in JSON: none if there is no such place."""
    found = [data]
    for step in steps_of(path):
        following: list[Any] = []
        for one in found:
            if step == "*" and isinstance(one, list):
                following += one
            elif step == "*" and isinstance(one, dict):
                following += one.values()
            elif isinstance(one, dict) and str(step) in one:
                following.append(one[str(step)])
            elif isinstance(one, list) and isinstance(step, int) and step < len(one):
                following.append(one[step])
        found = following
    return found


def _put(data: Any, path: str, value: Any) -> None:
    steps = steps_of(path)
    node = data
    for depth, step in enumerate(steps):
        last = depth == len(steps) - 1
        if isinstance(node, list) and isinstance(step, int):
            if step >= len(node):
                raise InvalidValueError(
                    f"{path!r}: there is no position {step}, the last is {len(node) - 1}"
                )
        elif isinstance(node, dict):
            step = str(step)
            if step not in node:
                raise UnknownNameError("key", step, node, f"path {path!r}")
        else:
            raise InvalidValueError(f"{path!r}: before {step!r} stands {node!r:.60}")
        if last:
            node[step] = value
        else:
            node = node[step]


def _edited_ini(text: str, values: Mapping[str, Any]) -> str:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    for path, value in values.items():
        section, dot, key = path.rpartition(".")
        if not dot:
            raise InvalidValueError(f"{path!r} is no path in an INI file, such as section.key")
        if not parser.has_section(section):
            raise UnknownNameError("section", section, parser.sections(), f"path {path!r}")
        if not parser.has_option(section, key):
            raise UnknownNameError("key", key, parser.options(section), f"path {path!r}")
        parser.set(section, key, _text(value))
    out = io.StringIO()
    parser.write(out)
    return out.getvalue()


def _edited_xml(text: str, values: Mapping[str, Any]) -> str:
    root = xml_text.parse(text)
    for path, value in values.items():
        element_path, at, attribute = path.rpartition("/@")
        element_path = element_path if at else path
        try:
            elements = root.findall(element_path) if element_path else [root]
        except SyntaxError as error:
            raise InvalidValueError(f"{path!r} is no path in XML: {error}") from None
        if not elements:
            raise InvalidValueError(f"{path!r}: no element of <{root.tag}> is at {element_path!r}")
        for element in elements:
            if at and attribute not in element.attrib:
                raise UnknownNameError("attribute", attribute, element.attrib, f"path {path!r}")
            if at:
                element.set(attribute, _text(value))
            else:
                element.text = _text(value)
    return xml_text.unparse(root)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
