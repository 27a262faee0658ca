"""Reading dataclasses of numbers from mappings, with errors that name field, value and range."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Final, TypeVar

from archgym.errors import InvalidValueError, UnknownNameError
from archgym.reading import plain_yaml

__all__ = ["LARGEST", "Entry", "catalogue", "field", "is_number", "read_entry", "spelled_out"]


@dataclasses.dataclass(frozen=True)
class Entry:
    """The base of a chip, cluster or model: a name, a line on it, and a source.

    Attributes:
        name: as in the data file, or ``custom``.
        doc: one line.
        source: where the figures come from.
        base: name of the entry that this one changes; empty for one that stands alone.
    """

    name: str
    doc: str
    source: str
    base: str = dataclasses.field(default="", kw_only=True)


Read = TypeVar("Read", bound=Entry)
LARGEST: Final = 1e12
"""Largest number of a field: beyond all hardware, and far within 64 bits."""


def field(least: float = 0, most: float = LARGEST, **default: Any) -> Any:
    """A numeric dataclass field with the range of its values.

    Args:
        least: smallest value.
        most: largest value.
        **default: ``default``, where the field may be left out.
    """
    return dataclasses.field(metadata={"range": (least, most)}, kw_only=True, **default)


@functools.cache
def catalogue(file: str) -> dict[str, dict[str, Any]]:
    """The entries of a shipped data file, by name."""
    text = resources.files("archgym.envs.llm.data").joinpath(file).read_text("utf-8")
    found: dict[str, dict[str, Any]] = plain_yaml.parse(text)
    return found


def spelled_out(
    kind: str, spec: Any, shipped: Mapping[str, Mapping[str, Any]], keys: Sequence[str] = ()
) -> tuple[str, Mapping[str, Any]]:
    """The name and the mapping of what is given by name or as a mapping, which has no name.

    Args:
        kind: for messages, such as ``workload``.
        spec: what is given.
        shipped: mappings by name.
        keys: that a mapping must have, for the message.

    Raises:
        UnknownNameError, InvalidValueError: naming what is allowed.
    """
    if isinstance(spec, str):
        if spec not in shipped and keys and spec.endswith(".json"):
            raise InvalidValueError(
                f"{kind} is the file {spec!r}; a config.json is the {keys[0]} of one, as in "
                f"{{{keys[0]}: {spec}, {': ..., '.join(keys[1:])}: ...}}"
            )
        if spec not in shipped:
            raise UnknownNameError(kind, spec, shipped)
        return spec, shipped[spec]
    if not isinstance(spec, Mapping):
        having = f" with {', '.join(keys)}" if keys else ""
        raise InvalidValueError(
            f"{kind} is {spec!r:.80}; it must be a name ({', '.join(shipped)}) or a mapping{having}"
        )
    return "", spec


def read_entry(cls: type[Read], spec: Any, file: str, kind: str) -> Read:
    """An entry by name, from a mapping, or from one that changes a named entry (``base``).

    Args:
        cls: what is read.
        spec: name, or mapping of fields; ``base`` names an entry that the others change.
        file: of the named ones.
        kind: for messages, such as ``chip``.

    Raises:
        UnknownNameError, InvalidValueError: naming the field, the value and what is allowed.
    """
    known = catalogue(file)
    if isinstance(spec, str):
        if spec not in known:
            raise UnknownNameError(kind, spec, known)
        return _read(cls, {"name": spec, **known[spec]}, kind)
    if not isinstance(spec, Mapping):
        raise InvalidValueError(
            f"{kind} is {spec!r:.80}; it must be a name ({', '.join(known)}) or a mapping"
        )
    values = dict(spec)
    base = values.pop("base", None)
    if base is not None and (not isinstance(base, str) or base not in known):
        raise UnknownNameError(kind, f"{base!s:.80}", known, f"{kind}: base")
    start = {"doc": "", "source": "the user", **(known[base] if base is not None else {})}
    label = "custom" if base is None else f"{base}, changed"
    return _read(cls, {"name": label, **start, **values, "base": base or ""}, kind)


def _read(cls: type[Read], values: Mapping[str, Any], kind: str) -> Read:
    fields = {one.name: one for one in dataclasses.fields(cls)}
    for key in values:
        if key not in fields:
            raise UnknownNameError("field", key, fields, kind)
    found = {}
    for name, one in fields.items():
        if name in values:
            found[name] = _checked(values[name], one, f"{kind}: {name}")
        elif one.default is dataclasses.MISSING:
            raise InvalidValueError(f"{kind}: the field {name!r} is missing")
    return cls(**found)


def _checked(value: Any, one: dataclasses.Field[Any], where: str) -> Any:
    if "range" not in one.metadata:
        if one.type == "str" and not isinstance(value, str):
            raise InvalidValueError(f"{where} is {value!r:.80}; it must be a text")
        return value
    least, most = one.metadata["range"]
    if isinstance(one.default, bool):
        if not isinstance(value, bool):
            raise InvalidValueError(f"{where} is {value!r:.80}; it must be true or false")
        return value
    whole = one.type == "int"
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise InvalidValueError(
            f"{where} is {value!r:.80}; it must be a {'whole ' if whole else ''}number"
        )
    if not least <= value <= most:
        raise InvalidValueError(
            f"{where} is {value!r:.80}; it must be a number from {least:g} to {most:g}"
        )
    return value


def is_number(value: Any) -> bool:
    """Whether a value is a number that a cost model can compute with."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST
