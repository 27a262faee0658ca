"""How users write a workload: a name, the path of a file, or a mapping of one of several kinds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches

from archgym.errors import InvalidValueError, UnknownNameError


def kind_of(
    spec: object,
    kinds: Collection[str],
    *,
    settings: Collection[str] = (),
    forms: str = "a name, a path",
) -> str:
    """Which kind of workload a mapping describes: the one of ``kinds`` that is a key of it.

    >>> kind_of({"generator": "stream", "seed": 3}, ("generator", "file"))
    'generator'

    Args:
        spec: what the user wrote.
        kinds: keys of which there is exactly one.
        settings: other keys that there may be, if they are the same for all kinds.
        forms: what the workload might be instead of a mapping.

    Raises:
        UnknownNameError: if a kind is missing and a key is unknown.
        InvalidValueError: if it is no mapping, or has none or several of the keys.
    """
    allowed = ", ".join(kinds)
    if not isinstance(spec, Mapping):
        raise InvalidValueError(
            f"workload {spec!r:.80} must be {forms} or a mapping with one of the keys {allowed}"
        )
    found = [kind for kind in kinds if kind in spec]
    if len(found) == 1:
        return found[0]
    for key in spec:
        if not found and key not in settings and (settings or get_close_matches(str(key), kinds)):
            raise UnknownNameError("workload key", key, (*kinds, *settings))
    raise InvalidValueError(
        f"workload {dict(spec)!r:.200} must have exactly one of the keys {allowed}"
    )
