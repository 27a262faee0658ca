"""What a typed model allows, in the words of the files that users write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KINDS = {
    "int": "an integer",
    "float": "a number",
    "finite_number": "a finite number",
    "string": "a text",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "dict": "a mapping",
    "none_required": "nothing",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
    "multiple_of": ("multiple_of", "a multiple of"),
    "too_short": ("min_length", "a list of at least"),
    "too_long": ("max_length", "a list of at most"),
}


def allowed_text(problem: Mapping[str, Any]) -> str:
    """The allowed values, for an error message, as in ``allowed is an integer``.

    Args:
        problem: one entry of ``pydantic.ValidationError.errors()``.
    """
    kind, context = problem["type"], problem.get("ctx") or {}
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"allowed is {words} {context[key]:g}"
    if kind == "literal_error":
        return f"allowed is {context['expected']}"
    for ending in ("_type", "_parsing", "_from_float", ""):
        known = _KINDS.get(kind.removesuffix(ending)) if kind.endswith(ending) else None
        if known:
            return f"allowed is {known}"
    return str(problem["msg"]).removeprefix("Value error, ")
