"""The files of evaluations of a dataset are listed in its table of trials, each with its checksum.

So a file that was deleted, changed or added is noticed. Tables of trials and of attempts hold a
checksum of themselves: the SHA-256 of the file with zeros in the place of the checksum. A file of
an earlier version lists nothing, and its parts are listed when the dataset is next sealed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from archgym.data.journal import sync_folders
from archgym.data.schema import FLIGHT_COLUMNS, TRIAL_SCHEMA
from archgym.errors import DatasetError
from archgym.reading.checked_json import checked_json
from archgym.reading.files import opened

TRIALS_FILE = "trials.parquet"
"""The table of trials of a dataset that was recorded."""
JOURNALS_KEY = b"archgym.journals"
"""Metadata of a file of evaluations: the names of the journals that it was made from."""
PENDING = ".pending"
"""The end of the name of a file of evaluations that is not listed yet."""
_TEMPORARY = ".tmp"  # the end of the name of a file that is not whole yet
_KEY = b"archgym.parts"
_ATTEMPTS = b"archgym.attempts"
_DIGEST, _NO_DIGEST = b"archgym.sha256", b"0" * 64


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
    return Part(pq.read_metadata(path.absolute()).num_rows, _sha256(path), journals)


def with_parts(
    schema: pa.Schema, parts: Mapping[str, Part], attempts: Sequence[Path] = ()
) -> pa.Schema:
    """The schema of a table of trials that lists files: of evaluations by name, and of attempts."""
    digests = {path.name: _sha256(path) for path in sorted(attempts)}
    text = json.dumps({name: asdict(part) for name, part in sorted(parts.items())})
    listed = {_KEY: text.encode(), _ATTEMPTS: json.dumps(digests).encode()}
    return schema.with_metadata(listed)


def listed_parts(directory: Path) -> dict[str, Part] | None:
    """The files that the table of trials lists, by name; ``None`` if it lists none.

    Raises:
        DatasetError: if the list is damaged.
    """
    found: dict[str, Part] | None = None
    for path in sorted((directory / "trials").glob("*.parquet")):
        try:
            text = (pq.read_schema(path.absolute()).metadata or {}).get(_KEY)
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
    return [
        *missing_parts(directory),
        *changed_files(directory),
        *_problems_of_names(directory),
    ]


def changed_files(directory: Path) -> list[str]:
    """Files of a dataset that are not what was written; reads all of them, also while one seals.

    Raises:
        DatasetError: if the list of files is damaged, or a file cannot be read.
    """
    there = sorted((directory / "evaluations").glob("*.parquet"))
    listed = listed_parts(directory)  # after the names, as a file is listed before it is there
    found = []
    for path in there if listed is not None else ():
        part = (listed or {}).get(path.name)
        if part is None:
            found.append(f"evaluations/{path.name} is not in the list of files")
        elif _sha256(path) != part.sha256:
            found.append(f"evaluations/{path.name} was changed: its checksum is another one")
    folders = [directory / name for name in ("trials", "attempts")]
    tables = sorted(path for folder in folders for path in folder.glob("*.parquet"))
    return found + [
        f"{path.parent.name}/{path.name} was changed: its checksum is another one"
        for path in tables
        if not is_as_written(path)
    ]


def is_as_written(path: Path) -> bool:
    """Whether a table of trials or attempts is what was written; true without a checksum."""
    try:
        content = path.read_bytes()  # once, as another process may write the file anew
        known = pq.read_metadata(pa.BufferReader(content)).metadata or {}
        given = known.get(_DIGEST)
        if given is None:  # of an earlier version, which had no other keys
            return known.keys() <= {b"ARROW:schema", _KEY}
    except (pa.ArrowException, OSError):
        return False
    return content.count(given) == 1 and _digest_of(content.replace(given, _NO_DIGEST)) == given


def problems_of_columns(directory: Path, evaluations: pa.Schema) -> list[str]:
    """Columns of the files of a dataset that are missing, unknown, repeated or of another type.

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
                held = pq.read_schema(path.absolute())
            except (OSError, pa.ArrowException) as error:
                found.append(f"{path.name} cannot be read: {error}")
                continue
            for expected in schema:
                if expected.name not in held.names:
                    # trials may be of an older version
                    if folder == "evaluations" and expected.name not in FLIGHT_COLUMNS:
                        found.append(f"{folder}/{path.name} lacks column {expected.name}")
                elif held.names.count(expected.name) > 1:
                    found.append(f"{folder}/{path.name} has several columns {expected.name}")
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
        # Or has been made since the names were read.
        made = name in there or (directory / "evaluations" / name).is_file()
        if not made and not about_to_be:
            found.append(f"evaluations/{name} with {part.rows:,} rows is missing")
    return found


def remove_unfinished(directory: Path) -> None:
    """Removes what a process left that was killed while it turned journals into Parquet."""
    for folder in ("attempts", "evaluations", "trials"):
        for end in (_TEMPORARY, PENDING):
            for path in (directory / folder).glob(f".*{end}"):
                path.unlink(missing_ok=True)
    listed = _listed_attempts(directory)
    if listed is not None:
        for path in (directory / "attempts").glob("*.parquet"):
            if path.name not in listed:
                path.unlink(missing_ok=True)


def sealed_journals(path: Path) -> list[str]:
    """Names of the journals that a file of evaluations was made from.

    Raises:
        DatasetError: if it cannot be read.
    """
    try:
        state = path.stat()
        return list(_read_sealed_journals(path, state.st_ino, state.st_mtime_ns, state.st_size))
    except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
        raise DatasetError(f"cannot read {path}: {error}") from error


def write_parquet(
    path: Path, schema: pa.Schema, tables: Iterable[pa.Table], *, digest: bool = False
) -> int:
    """Writes a file by write and rename; the tables are taken one after the other.

    Args:
        path: of the file.
        schema: its columns.
        tables: its rows.
        digest: whether it is to hold a checksum of all of itself.

    Returns:
        Number of rows.

    Raises:
        DatasetError: if it cannot be written.
    """
    # Hidden, as readers that take all files of a folder leave those out: the process may be killed.
    temporary, written = path.with_name(f".{path.name}.{os.getpid()}{_TEMPORARY}"), 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A file and not its name, which PyArrow may take for an address, as in proxy:x/rows.
        with (
            temporary.open("wb") as sink,
            pq.ParquetWriter(sink, schema, compression="zstd", write_page_checksum=True) as writer,
        ):
            for table in tables:
                writer.write_table(table.cast(schema))
                written += table.num_rows
            if digest:
                writer.add_key_value_metadata({_DIGEST: _NO_DIGEST})
        if digest:
            _fill_in_digest(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync_folders(path.parent)  # before the journals that it was made from are deleted
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise DatasetError(f"cannot write {path}: {error.strerror}") from error
    return written


@functools.lru_cache(maxsize=1 << 13)
def _read_sealed_journals(path: Path, inode: int, changed_ns: int, size: int) -> tuple[str, ...]:
    """As :func:`sealed_journals`, once for each state of a file: each sealing asks for all."""
    meta = pq.read_schema(path.absolute()).metadata or {}
    return tuple(_journal_names(json.loads(meta.get(JOURNALS_KEY, b"[]"))))


def _journal_names(names: Any) -> list[str]:
    """Names of journals as a Parquet file gives them; sealed ones are deleted, so no paths."""
    listed = names if isinstance(names, list) else []
    found = [name for name in listed if isinstance(name, str) and name.endswith(".jsonl")]
    if found != names or any(Path(name).name != name for name in found):
        raise ValueError(f"{JOURNALS_KEY.decode()} lists something else than names of journals")
    return found


def _problems_of_names(directory: Path) -> list[str]:
    """Tables of trials and attempts that are missing, or there twice."""
    listed = _listed_attempts(directory)
    while listed is not None:
        found, before = _problems_of_attempts(directory, listed), listed
        listed = _listed_attempts(directory)
        if listed == before:
            return found
        # Another process has sealed journals meanwhile: look again.
    return []


def _problems_of_attempts(directory: Path, listed: Mapping[str, str]) -> list[str]:
    """Tables that are not what the table of trials lists."""
    tables = {path.name for path in (directory / "trials").glob("*.parquet")}
    there = {path.name for path in (directory / "attempts").glob("*.parquet")}
    found = [f"attempts/{name} is missing" for name in sorted(listed.keys() - there)]
    found += [
        f"attempts/{name} is another one than was listed"
        for name in sorted(listed.keys() & there)
        if _sha256(directory / "attempts" / name) != listed[name]
    ]
    if TRIALS_FILE not in tables:
        found.append(f"trials/{TRIALS_FILE} has another name")
    found += [f"trials/{name} is one table too many" for name in sorted(tables - {TRIALS_FILE})]
    if not any((directory / "journal").glob("*.jsonl")):  # else a process was killed sealing them
        found += [
            f"attempts/{name} is not in the list of files" for name in sorted(there - listed.keys())
        ]
    return found


def _listed_attempts(directory: Path) -> dict[str, str] | None:
    """Digests of the tables of attempts that the table of trials lists, by name, if it does."""
    found: dict[str, str] | None = None
    for path in sorted((directory / "trials").glob("*.parquet")):
        try:
            text = (pq.read_schema(path.absolute()).metadata or {}).get(_ATTEMPTS)
            if text is not None:
                found = {**(found or {}), **checked_json(text.decode(), dict[str, str])}
        except FileNotFoundError:
            continue
        except (pa.ArrowException, OSError, ValueError) as error:
            raise DatasetError(f"cannot read {path}: {error}") from error
    return found


def _fill_in_digest(path: Path) -> None:
    """Writes the checksum of a file into the place that it has for it."""
    content = path.read_bytes()
    place = content.index(_NO_DIGEST, content.index(_DIGEST))
    with path.open("r+b") as file:
        file.seek(place)
        file.write(_digest_of(content))


def _digest_of(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _sha256(path: Path) -> str:
    try:
        with opened(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DatasetError(f"cannot read {path}: {error}") from error
