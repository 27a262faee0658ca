"""Finds the engine and the image of a container that a declaration asks for."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import pydantic

from archgym.declared.places.container import Container, ask
from archgym.declared.places.entry import Engine, WhereEntry
from archgym.declared.places.place import HOST, Place
from archgym.errors import InvalidValueError, MissingDependencyError, UnknownNameError, check_choice
from archgym.reading.pydantic_messages import allowed_text
from archgym.simulators.external import last_lines

__all__ = ["ENGINES", "places_of"]

ENGINES: Final[tuple[Engine, ...]] = ("docker", "podman", "apptainer")
"""Programs that run containers, in the order in which they are looked for."""
_SCHEME: Final = "docker://"


def _container(entry: WhereEntry, here: Path, engine: str = "") -> Container:
    """The container that a declaration asks for.

    Args:
        entry: what it says.
        here: folder that its paths begin in.
        engine: that is used whatever the declaration says; empty for what it says.

    Raises:
        MissingDependencyError: if no engine is installed, or the image is not there.
        InvalidValueError: if a path is not there.
    """
    wanted = engine or entry.with_ or ""
    if wanted:
        check_choice("engine", wanted, ENGINES)
    mounts = []
    for text in entry.mounts:
        path = Path(os.path.normpath(here / text))
        if not path.exists():
            raise InvalidValueError(f"mounts: there is no {path}")
        mounts.append(path)
    name, path = entry.container, here / entry.container
    is_file = path.exists() or name.endswith(".sif")
    if is_file and not path.exists():
        raise MissingDependencyError(f"there is no image {path}")
    if is_file and wanted not in ("", "apptainer"):
        raise InvalidValueError(f"{name} is an image of apptainer, not of {wanted}")
    some = [one for one in ENGINES if one == wanted or not wanted]
    some = ["apptainer"] if is_file else some
    installed = [one for one in some if shutil.which(one)]
    if not installed:
        raise MissingDependencyError(
            f"{' or '.join(some)} is not on PATH, and the commands run in the container {name}. "
            "Install it, or run them on this machine: where: host"
        )
    refused = []
    for one in installed:
        try:
            image, identity = _found(one, name, path if is_file else None)
        except MissingDependencyError as error:
            refused.append(str(error))
            continue
        own = "0:0" if _rootless(one) else f"{os.getuid()}:{os.getgid()}"
        return Container(
            one,
            image,
            identity,
            entry.network,
            tuple(mounts),
            tuple(entry.options.get(one, ())),
            own,
        )
    raise MissingDependencyError("; ".join(refused))


def places_of(
    whole: WhereEntry | None,
    stages: Mapping[str, WhereEntry | None],
    folder: Path,
    where: str | Mapping[str, Any] | None,
    at: Callable[..., AbstractContextManager[None]],
) -> dict[str, Place]:
    """Where each stage of a declaration runs; under the empty name, where other commands run.

    Args:
        whole: what the declaration says for all its commands.
        stages: what it says for each stage.
        folder: that its paths begin in.
        where: ``host`` for this machine whatever the declaration says, the name of an engine, or
            what stands in the declaration's place; ``None`` for what it says.
        at: puts the place in the declaration before the message of an error.

    Raises:
        InvalidValueError, UnknownNameError: if it is not possible.
        MissingDependencyError: if no engine is installed, or an image is not there.
    """
    engine = ""
    if isinstance(where, str) and where != "host":
        check_choice("where", where, ("host", *ENGINES))
        engine = where
    elif isinstance(where, Mapping):
        whole = _entry(where)
    parts = {"": whole, **{name: own or whole for name, own in stages.items()}}
    if where == "host":
        return dict.fromkeys(parts, HOST)
    named = {n: one for n, one in parts.items() if one is not None and one.container}
    if engine and not named:
        raise InvalidValueError(
            f"where is {engine!r}, but the file names no container: give "
            f"{{container: IMAGE, with: {engine}}}"
        )
    found: dict[str, Place] = dict.fromkeys(parts, HOST)
    for name, entry in named.items():
        with at(*(("stages", name, "where") if stages.get(name) else ("where",))):
            found[name] = _container(entry, folder, engine)
    return found


def _entry(where: Mapping[str, Any]) -> WhereEntry:
    try:
        return WhereEntry.model_validate(dict(where))
    except pydantic.ValidationError as error:
        problem = error.errors()[0]
        if problem["type"] == "extra_forbidden":
            keys = [field.alias or name for name, field in WhereEntry.model_fields.items()]
            raise UnknownNameError("key of where", str(problem["loc"][0]), keys) from None
        place = ".".join(("where", *map(str, problem["loc"])))
        raise InvalidValueError(f"{place}: {allowed_text(problem)}") from None


def _found(engine: str, name: str, path: Path | None) -> tuple[str, str]:
    """What an engine calls an image, and the image with its digest."""
    if path is not None:
        image = os.path.normpath(path)
        state = path.stat()
        return image, "" if path.is_dir() else _sha256(image, state.st_size, state.st_mtime_ns)
    bare = name.removeprefix(_SCHEME)
    if engine == "apptainer":
        return (name if "://" in name else f"{_SCHEME}{name}"), bare
    output = ask(engine, "image", "inspect", "--format={{.Id}}", bare)
    if output.exit_code:
        said = last_lines(output.stderr, 1)
        get = "" if "connect" in said else f". To get it: {engine} pull {bare}"
        raise MissingDependencyError(f"{engine} does not give the image {bare}: {said}{get}")
    return bare, bare if "@sha256:" in bare else output.stdout.strip().removeprefix("sha256:")


@functools.cache
def _sha256(path: str, *state: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@functools.cache
def _rootless(engine: str) -> bool:
    """Whether the user is root inside, as Docker's mode without root has it."""
    if engine != "docker":
        return False
    return "name=rootless" in ask(engine, "info", "--format={{json .SecurityOptions}}").stdout
