"""Texts of objects that somebody else's code made, such as an error of a simulator."""

from __future__ import annotations

MAX_TEXT = 10_000
"""Characters of which more is cut off: a reason is read by people, and there is one a row."""


def text_of(value: object, *, code: bool = False) -> str:
    r"""The text of an object, whatever its methods do; it can be written as UTF-8.

    >>> text_of("half a character: \udcff")
    'half a character: \\udcff'

    Args:
        value: the object.
        code: as in ``repr``, else as in ``str``.
    """
    try:
        text = repr(value) if code else str(value)
    except Exception:  # a method of its own, or a number of too many digits
        text = f"{type(value).__name__} without a text"
    if len(text) > MAX_TEXT:
        text = f"{text[:MAX_TEXT]}..."
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
