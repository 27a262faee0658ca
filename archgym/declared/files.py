"""Files that are written for a design: from templates, from other files, and by setting values."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from archgym.declared.edits import FORMATS, edited, steps_of
from archgym.declared.load import Source
from archgym.declared.schema import CONTENTS, FileEntry
from archgym.declared.templates import Template
from archgym.errors import InvalidValueError, check_choice
from archgym.reading.files import read_bytes, read_text

__all__ = ["File", "declared_file", "file_sha256"]

_TEMPLATE_LIMIT_BYTES: Final = 1 << 26
_COPY_LIMIT_BYTES: Final = 1 << 32


@dataclass(frozen=True)
class File:
    """A file to write: its path, and its content from the values of a design."""

    path: str
    template: Template | None
    raw: bytes
    format: str
    set: Mapping[str, Template | Any]
    executable: bool = False

    def content(self, values: Mapping[str, Any]) -> bytes:
        """What is written.

        Raises:
            SimulationError: if a value is not there.
        """
        if self.template is not None:
            return self.template.fill(values).encode()
        if not self.set:
            return self.raw
        new = {path: _typed(value, values) for path, value in self.set.items()}
        return edited(self.raw.decode("utf-8"), self.format, new).encode()


def declared_file(source: Source, number: int, template: Callable[[str], Template]) -> File:
    """A file of a declaration, read and checked.

    Args:
        source: the declaration.
        number: of the file in its list.
        template: makes a template of a text, with the names that the file may have.

    Raises:
        InvalidValueError, UnknownNameError: if it is not possible, with its line.
    """
    entry = source.declaration.files[number]
    with source.at("files", number):
        kinds = entry.given(CONTENTS)
        if len(kinds) != 1:
            found = " and ".join(kinds) or "none"
            keys = ", ".join(CONTENTS)
            raise InvalidValueError(f"it has exactly one of the keys {keys}, not {found}")
        _check_stage(source, entry)
        path = PurePosixPath(entry.path)
        if path.is_absolute() or ".." in path.parts or not path.name:
            raise InvalidValueError(
                f"path is {entry.path!r}, allowed is a path inside the folder of the run"
            )
        if (entry.set is not None) != (entry.edit is not None):
            raise InvalidValueError("'edit' and 'set' go together: a file, and what is set")
    with source.at("files", number, kinds[0]):
        return _content(source, entry, template)


def _check_stage(source: Source, entry: FileEntry) -> None:
    if entry.stage is None:
        return
    stages = source.declaration.stages
    own = [name for name, stage in stages.items() if stage.uses is not None]
    if entry.stage in stages and entry.stage not in own:
        raise InvalidValueError(
            f"stage {entry.stage!r} has no 'uses', so it runs in the folder of the run: "
            "leave out 'stage'"
        )
    check_choice("stage with 'uses'", entry.stage, own)


def _content(source: Source, entry: FileEntry, template: Callable[[str], Template]) -> File:
    if entry.text is not None:
        return File(entry.path, template(entry.text), b"", "", {})
    try:
        if entry.template is not None:
            text = read_text(source.beside(entry.template), _TEMPLATE_LIMIT_BYTES)
            return File(entry.path, template(text), b"", "", {})
        if entry.copy_ is not None:
            path = source.beside(entry.copy_)
            raw = read_bytes(path, _COPY_LIMIT_BYTES)
            return File(entry.path, None, raw, "", {}, os.access(path, os.X_OK))
        path = source.beside(str(entry.edit))
        text = read_text(path, _TEMPLATE_LIMIT_BYTES)
    except OSError as error:
        raise InvalidValueError(f"{error.filename} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InvalidValueError(f"it is not a text file in UTF-8: {error.reason}") from None
    kind = entry.format or FORMATS.get(path.suffix.lstrip(".").lower(), "")
    if not kind:
        raise InvalidValueError(
            f"the ending of {path.name} does not say its format: give format: json, yaml, ini "
            "or xml"
        )
    new = {
        place: template(value) if isinstance(value, str) else value
        for place, value in (entry.set or {}).items()
    }
    if kind in ("json", "yaml"):
        for place in new:
            steps_of(place)
    edited(text, kind, dict.fromkeys(new, 0))  # every path leads somewhere
    return File(entry.path, None, text.encode(), kind, new)


def file_sha256(path: Path) -> str:
    """Hash of a file's content.

    Raises:
        InvalidValueError: if it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InvalidValueError(f"{path} cannot be read: {error.strerror}") from None


def _typed(value: Any, values: Mapping[str, Any]) -> Any:
    """A value to set: an expression alone keeps the type of its value."""
    return value.value(values) if isinstance(value, Template) else value
