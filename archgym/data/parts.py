"""The files of evaluations of a dataset are listed in its table of trials, each with its checksum.

So a file that was deleted, changed or added is noticed. A file of an earlier version lists nothing,
and its parts are listed when the dataset is next sealed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from archgym.data.schema import FLIGHT_COLUMNS, TRIAL_SCHEMA
from archgym.errors import DatasetError
from archgym.reading.checked_json import checked_json
from archgym.reading.files import opened

_KEY = b"archgym.parts"
_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Part:
    """A file of evaluations.

    Attributes:
        rows: number of evaluations.
        sha256: of the file.
        journals: names of the journals that it was made from.
    """

    rows: int
    sha256: str
    journals: list[str]


def part_of(path: Path, journals: list[str]) -> Part:
    """The description of a file of evaluations that has just been written."""
    return Part(pq.read_metadata(path).num_rows, _sha256(path), journals)


def with_parts(schema: pa.Schema, parts: Mapping[str, Part]) -> pa.Schema:
    """The schema of a table of trials that lists files, by name."""
    text = json.dumps({name: asdict(part) for name, part in sorted(parts.items())})
    return schema.with_metadata({_KEY: text.encode()})


def listed_parts(directory: Path) -> dict[str, Part] | None:
    """The files that the table of trials lists, by name; ``None`` if it lists none.

    Raises:
        DatasetError: if the list is damaged.
    """
    found: dict[str, Part] | None = None
    for path in sorted((directory / "trials").glob("*.parquet")):
        try:
            text = (pq.read_schema(path).metadata or {}).get(_KEY)
            if text is not None:
                found = {**(found or {}), **checked_json(text.decode(), dict[str, Part])}
        except FileNotFoundError:
            continue
        except (pa.ArrowException, OSError, ValueError) as error:
            raise DatasetError(f"cannot read {path}: {error}") from error
    return found


def kept_parts(directory: Path) -> dict[str, Part]:
    """The files that the next table of trials lists too: those that are there.

    Raises:
        DatasetError: as :func:`check_there`.
    """
    check_there(directory)
    there = sorted((directory / "evaluations").glob("*.parquet"))
    listed = listed_parts(directory)
    if listed is None:
        return {path.name: part_of(path, []) for path in there}
    return {path.name: listed[path.name] for path in there if path.name in listed}


def check_there(directory: Path) -> None:
    """Makes sure that no file is missing; looks at names only.

    Raises:
        DatasetError: for the first one that is.
    """
    for problem in missing_parts(directory):
        raise DatasetError(f"{directory} is damaged: {problem}")


def problems_of_parts(directory: Path) -> list[str]:
    """Everything that is wrong with the files of a dataset; reads all of them.

    Raises:
        DatasetError: if the list of files is damaged.
    """
    found = missing_parts(directory)
    listed = listed_parts(directory)
    for path in sorted((directory / "evaluations").glob("*.parquet")) if listed is not None else ():
        part = (listed or {}).get(path.name)
        if part is None:
            found.append(f"evaluations/{path.name} is not in the list of files")
        elif _sha256(path) != part.sha256:
            found.append(f"evaluations/{path.name} was changed: its checksum is another one")
    return found


def problems_of_columns(directory: Path, evaluations: pa.Schema) -> list[str]:
    """Columns of the files of a dataset that are missing, unknown or of another type.

    Args:
        directory: of the dataset.
        evaluations: columns of the table of evaluations.
    """
    found = []
    for folder, schema in (
        ("evaluations", evaluations),
        ("trials", TRIAL_SCHEMA),
        ("attempts", TRIAL_SCHEMA),
    ):
        for path in sorted((directory / folder).glob("*.parquet")):
            try:
                held = pq.read_schema(path)
            except (OSError, pa.ArrowException) as error:
                found.append(f"{path.name} cannot be read: {error}")
                continue
            for expected in schema:
                if expected.name not in held.names:
                    # trials may be of an older version
                    if folder == "evaluations" and expected.name not in FLIGHT_COLUMNS:
                        found.append(f"{folder}/{path.name} lacks column {expected.name}")
                elif held.field(expected.name).type != expected.type:
                    kind = held.field(expected.name).type
                    found.append(
                        f"{folder}/{path.name}: {expected.name} is {kind}, not {expected.type}"
                    )
            unknown = [name for name in held.names if name not in schema.names]
            found += [f"{folder}/{path.name} has an unknown column {name}" for name in unknown]
    return found


def sound_parts(directory: Path) -> list[Path]:
    """The files that are as they were listed; all, where none is listed."""
    try:
        listed = listed_parts(directory)
    except DatasetError:
        listed = {}
    return [
        path
        for path in sorted((directory / "evaluations").glob("*.parquet"))
        if listed is None or (path.name in listed and _sha256(path) == listed[path.name].sha256)
    ]


def missing_parts(directory: Path) -> list[str]:
    """What is not there; looks at names only."""
    parts = sorted((directory / "evaluations").glob("*.parquet"))
    if parts and not any((directory / "trials").glob("*.parquet")):
        return ["the table of trials, trials/*.parquet, is missing"]
    there, found = {path.name for path in parts}, []
    for name, part in (listed_parts(directory) or {}).items():
        # One that was about to be made when its process was killed: its journals are there.
        about_to_be = part.journals and all(
            (directory / "journal" / journal).is_file() for journal in part.journals
        )
        if name not in there and not about_to_be:
            found.append(f"evaluations/{name} with {part.rows:,} rows is missing")
    return found


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with opened(path) as file:
            while block := file.read(_AT_ONCE):
                digest.update(block)
    except OSError as error:
        raise DatasetError(f"cannot read {path}: {error}") from error
    return digest.hexdigest()
