"""Suggestions for mistyped names: the nearest allowed spelling, and what is allowed."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable

_MAX_BEGUN = 3
"""At most this many allowed names that begin as the mistyped one are suggested."""


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """A sentence that suggests the nearest allowed spelling and lists what is allowed.

    >>> did_you_mean("rnadom", ["genetic", "random"])
    "Did you mean 'random'? Allowed: genetic, random."
    """
    names = list(dict.fromkeys(str(candidate) for candidate in allowed))
    if names and all(map(_is_number, names)):
        names.sort(key=float)
        if _is_number(name):
            nearest = min(names, key=lambda allowed: abs(float(allowed) - float(name)))
            return f"The nearest is {nearest}. Allowed: {_listing(names)}."
    else:
        names.sort()
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    begun = [candidate for candidate in names if _begins(candidate, str(name))]
    if begun and not set(near) & set(begun):
        near = begun[:_MAX_BEGUN]
    listing = f"Allowed: {_listing(names) or 'nothing'}."
    return f"Did you mean {' or '.join(map(repr, near))}? {listing}" if near else listing


def nearest_name(name: str, allowed: Iterable[str]) -> str | None:
    """The allowed name that was probably meant, as :func:`did_you_mean` suggests it.

    >>> nearest_name("rnadom", ["genetic", "random"]), nearest_name("x", ["genetic", "random"])
    ('random', None)
    """
    names = list(dict.fromkeys(map(str, allowed)))
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    begun = sorted(candidate for candidate in names if _begins(candidate, name))
    return next(iter([one for one in near if one in begun or not begun] or begun), None)


def _begins(candidate: str, name: str) -> bool:
    """Whether a name may be short for a candidate; one letter is short for anything."""
    folded = name.casefold()
    return candidate.casefold() == folded or (
        len(folded) > 1 and candidate.casefold().startswith(folded)
    )


def _listing(names: list[str]) -> str:
    return ", ".join(names[:40]) + (", ..." if len(names) > 40 else "")


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
