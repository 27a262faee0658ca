"""Reading a declaration: the YAML, its form, and messages that name the line."""

from __future__ import annotations

import contextlib
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pydantic
import yaml

from archgym.declared.schema import Declaration
from archgym.declared.yaml_messages import not_utf8, not_yaml
from archgym.errors import ArchgymError, InvalidValueError, UnknownNameError
from archgym.reading.files import meant_file, read_text
from archgym.reading.plain_yaml import YAML_LIMIT_BYTES
from archgym.reading.pydantic_messages import allowed_text
from archgym.reading.written_yaml import Path as Place
from archgym.reading.written_yaml import line_of, parse_with_lines

__all__ = ["Source", "load_declaration"]


@dataclass(frozen=True)
class Source:
    """A declaration with the file that it stands in.

    Attributes:
        path: absolute path of the file.
        declaration: what it says.
        lines: the line of each part.
    """

    path: Path
    declaration: Declaration
    lines: dict[Place, int] = field(repr=False)

    @property
    def folder(self) -> Path:
        """The folder that the file's paths begin in."""
        return self.path.parent

    @contextlib.contextmanager
    def at(self, *place: str | int) -> Iterator[None]:
        """Puts file, line and place before the message of any archgym error."""
        with _at(self.path, self.lines, place):
            yield

    def beside(self, name: str) -> Path:
        """The file of a name that the declaration gives.

        Raises:
            InvalidValueError: if there is none.
        """
        path = self.folder / name
        if not path.is_file():
            raise InvalidValueError(f"there is no file {path}{meant_file(path)}")
        return path

    def all_beside(self, pattern: str) -> list[Path]:
        """The files of a name in which ``*`` stands for a part; sorted, at least one.

        Raises:
            InvalidValueError: if there is none.
        """
        if "*" not in pattern:
            return [self.beside(pattern)]
        try:
            found = sorted(path for path in self.folder.glob(pattern) if path.is_file())
        except (ValueError, NotImplementedError) as error:
            raise InvalidValueError(f"{pattern!r} is no pattern of paths: {error}") from None
        if not found:
            install = self.declaration.install.rstrip(". ")
            advice = f". To install: {install}." if install else ""
            raise InvalidValueError(f"no file in {self.folder} is called {pattern!r}{advice}")
        return found


def load_declaration(path: str | Path) -> Source:
    """The declaration in a file.

    Raises:
        InvalidValueError, UnknownNameError: if the file cannot be read, is not YAML or has
            another form; the message names the file and the line.
    """
    path = Path(path)
    try:
        text = read_text(path, YAML_LIMIT_BYTES)
    except OSError as error:
        near = "" if path.exists() else meant_file(path)
        raise InvalidValueError(f"cannot read {path}: {error.strerror}{near}") from None
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    try:
        data, lines = parse_with_lines(text)
    except yaml.YAMLError as error:
        raise not_yaml(path, text, error) from None
    if not isinstance(data, Mapping):
        keys = ", ".join(Declaration.model_fields)
        raise InvalidValueError(f"{path}: a declaration is a mapping with the keys {keys}")
    try:
        return Source(path.absolute(), Declaration.model_validate(dict(data)), lines)
    except pydantic.ValidationError as error:
        # Misspelt keys first: a missing key is often the misspelt one.
        problems = sorted(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
        location = tuple(part for part in problems[0]["loc"] if part != "[key]")
        with _at(path, lines, location):
            raise _explained(problems[0], location) from None


@contextlib.contextmanager
def _at(path: Path, lines: dict[Place, int], place: Place) -> Iterator[None]:
    try:
        yield
    except ArchgymError as error:
        dotted = ".".join(str(part) for part in place)
        where = f"{path.name}, line {line_of(lines, place)}"
        error.args = (f"{where}: {dotted}: {error}" if dotted else f"{where}: {error}",)
        raise


def _explained(problem: Any, place: Place) -> ArchgymError:
    """One sentence of ours for one problem that pydantic found."""
    kind, given = problem["type"], problem["input"]
    if kind == "extra_forbidden":
        return UnknownNameError("key", place[-1], _keys(_model_at(place[:-1])))
    if kind == "missing":
        name = str(place[-1])
        fields = _model_at(place[:-1]).model_fields
        doc = next(
            (f.description for n, f in fields.items() if name in (n, f.alias) and f.description), ""
        )
        return InvalidValueError(f"this is missing{f' ({doc})' if doc else ''}")
    if kind == "string_pattern_mismatch":
        return InvalidValueError(
            f"a name is made of letters, digits and '_', a letter first, not {given!r:.80}"
        )
    if kind in ("model_type", "model_attributes_type"):
        keys = ", ".join(_keys(_model_at(place)))
        found = "empty" if given is None else f"{given!r:.80}"
        return InvalidValueError(f"it is {found}, allowed is a mapping with the keys {keys}")
    quoted = _in_quotes(given) if kind == "string_type" else ""
    return InvalidValueError(f"it cannot be {given!r:.80}: {allowed_text(problem)}{quoted}")


def _in_quotes(given: Any) -> str:
    """Advice where YAML made something else of a word."""
    if isinstance(given, bool):
        words = "yes, on or true" if given else "no, off or false"
        return f"; YAML reads {words} as {given}, so put the word in quotes"
    if isinstance(given, int | float):
        return f", as '{given}' in quotes"
    return "; YAML reads nothing, ~ and null as None: '' is an empty text" if given is None else ""


def _keys(model: type[pydantic.BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_at(place: Place) -> type[pydantic.BaseModel]:
    """The model of a part of the file."""
    found: Any = Declaration
    for part in place:
        if isinstance(found, type) and issubclass(found, pydantic.BaseModel):
            fields = found.model_fields
            name = next((n for n, f in fields.items() if part in (n, f.alias)), None)
            if name is None:
                break
            found = _inner(fields[name].annotation)
        elif typing.get_origin(found) in (list, dict):
            found = _inner(typing.get_args(found)[-1])
    while typing.get_origin(found) in (list, dict):
        found = _inner(typing.get_args(found)[-1])
    return (
        found if isinstance(found, type) and issubclass(found, pydantic.BaseModel) else Declaration
    )


def _inner(annotation: Any) -> Any:
    """The type behind Annotated and Optional."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _inner(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        return _inner(next(a for a in typing.get_args(annotation) if a is not type(None)))
    return annotation
