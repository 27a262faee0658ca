"""YAML from files and command lines: plain values only, of a limited size."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from archgym.reading.files import read_text

YAML_LIMIT_BYTES: Final = 1 << 24
"""16 MiB of text."""
MAX_VALUES: Final = 1_000_000
"""Values of a document, those behind an alias counted each time."""
UNREADABLE: Final = (ValueError, OverflowError, LookupError, AttributeError)
"""What PyYAML raises for a value that cannot be read, or does not fit its tag, as ``!!int ""``."""


class BoundedLoader(yaml.SafeLoader):
    """PyYAML's safe loader, for which aliases cannot make a short text huge or endless."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._values = 0
        self._size_of: dict[int, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Counts the values of what is composed."""
        alias = self.check_event(yaml.AliasEvent)
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        before = self._values
        node = super().compose_node(parent, index)
        if alias:
            if id(node) not in self._size_of:
                raise yaml.MarkedYAMLError(problem="an alias of itself", problem_mark=mark)
            self._values += self._size_of[id(node)]
        else:
            self._values += 1
            self._size_of[id(node)] = self._values - before
        if self._values > MAX_VALUES:
            raise yaml.MarkedYAMLError(
                problem=f"more than {MAX_VALUES:,} values, aliases counted", problem_mark=mark
            )
        return node


def parse(text: str, loader: type[BoundedLoader] = BoundedLoader) -> Any:
    """The value of a YAML text.

    Raises:
        yaml.YAMLError: if it is not YAML, too large or nested too deeply.
    """
    if len(text) > YAML_LIMIT_BYTES:
        raise yaml.YAMLError(f"it has more than {YAML_LIMIT_BYTES:,} characters")
    try:
        return yaml.load(text, loader)  # noqa: S506 - the loader is a SafeLoader
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None
    except UNREADABLE as error:  # a number of 5,000 digits, the 99th of May
        raise yaml.YAMLError(f"a value cannot be read: {error}") from None


def read(path: Path) -> Any:
    """The value of a YAML file.

    Raises:
        OSError: if it cannot be read or is too large.
        UnicodeDecodeError: if it is no text in UTF-8.
        yaml.YAMLError: as :func:`parse`.
    """
    return parse(read_text(path, YAML_LIMIT_BYTES))
