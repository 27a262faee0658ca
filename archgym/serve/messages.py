"""Requests and answers: one JSON object a line.

A request is ``{"id": ..., "op": "NAME", ...}``. Its answer has the same ``id``, ``"ok": true`` and
fields of its own, or ``"ok": false`` and an ``error`` that names the field, its value and what is
allowed. JSON is strict: no ``NaN`` or ``Infinity``, no key twice; numbers keep all their digits.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, Final

from archgym.errors import ArchgymError
from archgym.reading.suggestions import did_you_mean, nearest_name
from archgym.serve.lines import LINE_LIMIT_BYTES

__all__ = [
    "PROTOCOL",
    "Fields",
    "RequestError",
    "answer_line",
    "error_line",
    "finite",
    "read_request",
    "request_id",
]

PROTOCOL: Final = 1
"""Version of the protocol; it changes when a message that was valid is not, or means another."""
_ID_LIMIT: Final = 200
_SHOWN: Final = 200
_MAX_ALLOWED: Final = 100


class RequestError(Exception):
    """What is wrong with a request, as it is answered.

    Args:
        kind: what a program distinguishes, such as ``invalid_value``.
        message: a sentence for people.
        field: where in the request, as in ``designs[2].ways``; empty for the whole.
        value: that was given there; left out if ``...``.
        allowed: what may stand there: a text, or a list.
        nearest: of the allowed names, the one that was probably meant.
        more: further fields of the answer.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        field: str = "",
        value: Any = ...,
        allowed: str | Collection[Any] | None = None,
        nearest: str | None = None,
        **more: Any,
    ) -> None:
        super().__init__(message)
        self.error: dict[str, Any] = {"kind": kind, "message": message}
        if field:
            self.error["field"] = field
        if value is not ...:
            self.error["value"] = _shortened(value)
        if allowed is not None:
            listed = allowed if isinstance(allowed, str) else list(allowed)[:_MAX_ALLOWED]
            self.error["allowed"] = listed
        if nearest is not None:
            self.error["nearest"] = nearest
        self.more = more

    @staticmethod
    def unknown(kind: str, name: str, allowed: Collection[str], field: str) -> RequestError:
        """A name that does not exist."""
        return RequestError(
            "unknown_name",
            f"unknown {kind} {name[:_SHOWN]!r}. {did_you_mean(name[:_SHOWN], allowed)}",
            field=field,
            value=name,
            allowed=allowed,
            nearest=nearest_name(name[:_SHOWN], allowed),
        )

    @staticmethod
    def wrong(field: str, value: Any, allowed: str) -> RequestError:
        """A value that is not possible; ``allowed`` is a phrase such as ``an integer``."""
        return RequestError(
            "invalid_value",
            f"{field} cannot be {_text(value)}: allowed is {allowed}",
            field=field,
            value=value,
            allowed=allowed,
        )


class Fields:
    """The fields of a request, read one by one; what nobody reads is an error.

    Args:
        data: the request, or an object in it.
        where: put before names of fields in messages.
    """

    def __init__(self, data: Mapping[str, Any], where: str = "") -> None:
        self._data, self._where, self._read = data, where, {"id", "op"} if not where else set()

    def __contains__(self, name: object) -> bool:
        return name in self._data

    def place(self, name: str) -> str:
        """A field as messages name it."""
        return f"{self._where}.{name}" if self._where else name

    def get(self, name: str, default: Any = None) -> Any:
        """A field of any kind."""
        self._read.add(name)
        return self._data.get(name, default)

    def integer(self, name: str, default: int, least: int, most: int) -> int:
        """An integer of a range."""
        value = self.get(name, default)
        if type(value) is not int or not least <= value <= most:
            raise RequestError.wrong(self.place(name), value, f"an integer from {least} to {most}")
        return value

    def number(self, name: str, default: float | None) -> float | None:
        """A finite number of at least 0."""
        value = self.get(name, default)
        if value is not None and (not finite(value) or value < 0):
            raise RequestError.wrong(self.place(name), value, "a finite number of at least 0")
        return None if value is None else float(value)

    def text(self, name: str, default: str) -> str:
        """A text."""
        value = self.get(name, default)
        if not isinstance(value, str):
            raise RequestError.wrong(self.place(name), value, "a text")
        return value

    def objects(self, name: str, most: int) -> list[Mapping[str, Any]]:
        """A list of objects, at least one."""
        found = self.several(name, most)
        for i, one in enumerate(found):
            if not isinstance(one, dict):
                raise RequestError.wrong(f"{self.place(name)}[{i}]", one, "an object")
        return found

    def several(self, name: str, most: int) -> list[Any]:
        """A list of anything, at least one."""
        found = self.get(name)
        if not isinstance(found, list) or not 1 <= len(found) <= most:
            raise RequestError.wrong(self.place(name), found, f"a list of 1 to {most}")
        return found

    def done(self, *also: str) -> None:
        """Refuses fields that were not read.

        Args:
            *also: fields that may be there besides, for suggestions.
        """
        allowed = sorted({*self._read, *also})
        for name in self._data:
            if name not in allowed:
                raise RequestError.unknown("field", name, allowed, self.place(name))


def read_request(line: bytes) -> dict[str, Any]:
    """The object on a line.

    Raises:
        RequestError: if it is too long, not JSON, or not an object.
    """
    if len(line) > LINE_LIMIT_BYTES:
        raise RequestError(
            "too_long",
            f"the line is longer than {LINE_LIMIT_BYTES} bytes: send fewer designs in a request",
            allowed=f"at most {LINE_LIMIT_BYTES} bytes",
        )
    try:
        text = line.decode()
        found = json.loads(
            text, parse_constant=_refuse_constant, parse_float=_float, object_pairs_hook=_object
        )
    except RecursionError:
        raise RequestError("not_json", "the line is nested too deeply") from None
    except ValueError as error:  # of JSON, of UTF-8, and of integers with thousands of digits
        reason = str(error)[:_SHOWN]
        raise RequestError(
            "not_json", f"the line is not JSON: {reason}", allowed="one JSON object a line, UTF-8"
        ) from None
    if not isinstance(found, dict):
        raise RequestError("not_json", "the line is JSON, but no object", allowed="an object")
    return found


def request_id(request: Mapping[str, Any]) -> Any:
    """The ``id`` of a request; ``None`` if it has none.

    Raises:
        RequestError: if it is neither a text nor a number.
    """
    found = request.get("id")
    short = not isinstance(found, str) or len(found) <= _ID_LIMIT
    if found is not None and (not (finite(found) or isinstance(found, str)) or not short):
        allowed = f"a number, or a text of at most {_ID_LIMIT} characters"
        raise RequestError.wrong("id", found, allowed)
    return found


def answer_line(identity: Any, fields: Mapping[str, Any]) -> bytes:
    """The answer to a request."""
    return _encoded({"id": identity, "ok": True, **fields})


def error_line(identity: Any, error: Exception) -> bytes:
    """The answer to a request that cannot be fulfilled."""
    if not isinstance(error, RequestError):
        kind = "not_possible" if isinstance(error, ArchgymError) else "internal"
        about = str(error) if kind == "not_possible" else f"{type(error).__name__}: {error}"
        error = RequestError(kind, about)
    return _encoded({"id": identity, "ok": False, "error": error.error, **error.more})


def finite(value: Any) -> bool:
    """Whether a value is a finite number, and no boolean."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer of hundreds of digits
        return False


def _encoded(data: Any) -> bytes:
    """JSON in ASCII, without blanks, with every digit; what is not finite is null."""
    return json.dumps(_plain(data), separators=(",", ":"), allow_nan=False).encode()


def _plain(data: Any) -> Any:
    if isinstance(data, dict):
        return {str(key): _plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    if isinstance(data, float):
        return float(data) if math.isfinite(data) else None
    return data


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise ValueError(f"the key {twice[:_SHOWN]!r} stands twice in an object")
    return found


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON; write null where there is no value")


def _shortened(value: Any) -> Any:
    """A value as an error repeats it: whole if it is short."""
    if value is None or isinstance(value, bool) or finite(value):
        short = not isinstance(value, int) or abs(value) < 1 << 64
        return value if short else _text(value)
    return value[:_SHOWN] if isinstance(value, str) else _text(value)


def _text(value: Any) -> str:
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
