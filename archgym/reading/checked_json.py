"""Reading JSON whose form is known: one that has another form is damaged, and a message says where.

The form is a type of Python: a dataclass, or lists and mappings of plain types.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable
from pathlib import Path
from typing import Any, TypeVar, cast

from archgym.reading.files import JSON_LIMIT_BYTES, read_text
from archgym.reading.pydantic_messages import allowed_text

T = TypeVar("T")


def read_checked_json(path: Path, form: type[T], limit_bytes: int = JSON_LIMIT_BYTES) -> T:
    """What is in a JSON file, as a given type.

    Args:
        path: the file.
        form: the type; a dataclass ignores keys that it does not have.
        limit_bytes: maximum size of the file.

    Raises:
        OSError: if it cannot be read or is too large.
        ValueError: as :func:`checked_json`.
    """
    return checked_json(read_text(path, limit_bytes), form)


def checked_json(text: str, form: type[T]) -> T:
    """What a JSON text stands for, as a given type.

    >>> checked_json('{"a": [1, 2]}', dict[str, list[int]])
    {'a': [1, 2]}
    >>> checked_json('{"a": [1, "x"]}', dict[str, list[int]])
    Traceback (most recent call last):
    ...
    ValueError: a.1 is 'x': allowed is an integer

    Raises:
        ValueError: if it is no JSON, or has another form; the message names the place.
    """
    import pydantic  # slow to import

    try:
        found: T = _adapter(cast(Hashable, form)).validate_json(text, strict=True)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            raise ValueError(str(first["msg"])) from None
        place = ".".join(map(str, first["loc"])) or "the whole"
        if first["type"] == "missing":
            raise ValueError(f"{place} is missing") from None
        raise ValueError(f"{place} is {first['input']!r:.80}: {allowed_text(first)}") from None
    except UnicodeEncodeError as error:  # half of a character
        raise ValueError(str(error)) from None
    return found


@functools.lru_cache(maxsize=32)
def _adapter(form: Any) -> Any:
    import pydantic

    return pydantic.TypeAdapter(form)
