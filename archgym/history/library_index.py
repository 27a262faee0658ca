"""The index of a library: which runs and datasets are in it, and what they hold.

A file of JSON lines, each with a checksum. The first one says where the library was made and by
whom, each other one is an entry; of several for one folder the last one holds. Processes append
under a lock, so that any number of runs may end at a time; a line that a kill cut off, or that was
changed, is passed over. Entries are data: they name folders, and what they say of them only decides
which are opened.
"""

from __future__ import annotations

import contextlib
import difflib
import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from archgym.data.journal import checksum_of, sync_folders, with_checksum
from archgym.errors import DatasetError
from archgym.reading.checked_json import checked_json

__all__ = ["INDEX", "Entry", "HeldProblem", "LibraryIndex"]

INDEX = "library.jsonl"
"""Name of the file in the folder of a library."""
_LOCK = ".library.lock"
_LIMIT_BYTES = 1 << 28
"""256 MiB: a hundred thousand runs."""


@dataclass(frozen=True)
class HeldProblem:
    """A problem of which a run or dataset holds evaluations.

    Attributes:
        environment: name of the environment.
        settings: its settings, as a JSON text.
        workload: name of the workload.
        workload_sha256: digest of the workload's content.
        simulator: name of the simulator.
        version: of the simulator.
        source_sha256: digest of the simulator's source; empty if it is installed.
        parameters: names of the parameters of the design space.
        metrics: unit of each metric by name.
        rows: number of evaluations.
    """

    environment: str
    settings: str
    workload: str
    workload_sha256: str
    simulator: str
    version: str
    source_sha256: str
    parameters: list[str]
    metrics: dict[str, str]
    rows: int


@dataclass(frozen=True)
class Entry:
    """A run or dataset in a library.

    Attributes:
        path: of its folder: absolute, or relative to the library if it lies inside.
        added: when it was added, in ISO form, UTC.
        problems: what it holds.
    """

    path: str
    added: str
    problems: list[HeldProblem]

    @property
    def rows(self) -> int:
        """Number of evaluations."""
        return sum(problem.rows for problem in self.problems)


@dataclass(frozen=True)
class _Head:
    """The first line: where a library was made, and the user's number."""

    library: int
    place: str
    owner: int


class LibraryIndex:
    """The index in a folder.

    Args:
        folder: of the library.

    Attributes:
        folder: absolute, without links.
        own: whether the user made it, in the place where it is; of any other library, only
            folders inside it are followed.
        entries: by path, in the order in which they were added last.
        damaged: number of lines that were passed over.

    Raises:
        DatasetError: if there is none, or it cannot be read.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser().resolve()
        self.entries: dict[str, Entry] = {}
        self.damaged = 0
        self.own = False
        self.read()

    @staticmethod
    def make(folder: str | Path) -> LibraryIndex:
        """The index in a folder, which is made if it is not there.

        Raises:
            DatasetError: if it cannot be made, or the folder holds a run or a dataset.
        """
        place = Path(folder).expanduser().resolve()
        if _holds_data(place):
            raise DatasetError(
                f"{folder} is a run or a dataset, not a library: choose another folder"
            )
        try:
            place.mkdir(parents=True, exist_ok=True)
            with _locked(place):
                if not (place / INDEX).exists():
                    _write(place, [asdict(_Head(1, str(place), os.geteuid()))])
        except OSError as error:
            raise DatasetError(f"cannot make a library in {folder}: {error.strerror}") from error
        return LibraryIndex(place)

    def read(self) -> None:
        """Reads the file as it is now.

        Raises:
            DatasetError: if it cannot be read.
        """
        self.entries, self.damaged = {}, 0
        try:
            owner, lines = _lines(self.folder / INDEX)
        except FileNotFoundError:
            raise DatasetError(
                f"there is no library in {self.folder}{_instead(self.folder)}"
            ) from None
        except OSError as error:
            raise DatasetError(f"cannot read the library {self.folder}: {error}") from error
        self.own = False
        for number, line in enumerate(lines):
            try:
                if checksum_of(line, 0) is None:
                    raise ValueError("its checksum is wrong")
                text = line.decode()
                if number == 0:
                    head = checked_json(text, _Head)
                    self.own = head.place == str(self.folder) and (
                        head.owner == owner == os.geteuid()
                    )
                    continue
                entry = checked_json(text, Entry)
            except ValueError:
                self.damaged += 1
                continue
            self.entries.pop(entry.path, None)  # the newest stands last
            self.entries[entry.path] = entry

    def append(self, entry: Entry) -> None:
        """Adds an entry; it is on disk afterwards.

        Raises:
            DatasetError: if it cannot be written.
        """
        line, _ = with_checksum(asdict(entry), 0)
        flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with _locked(self.folder):
                file = os.open(self.folder / INDEX, flags)
                try:
                    size = os.fstat(file).st_size
                    cut_off = size > 0 and os.pread(file, 1, size - 1) != b"\n"
                    os.write(file, b"\n" * cut_off + line)
                    os.fsync(file)
                finally:
                    os.close(file)
        except OSError as error:
            raise DatasetError(f"cannot write to the library {self.folder}: {error}") from error
        self.read()

    def remove(self, paths: Sequence[str]) -> None:
        """Removes entries, and what is damaged or stands there twice.

        Raises:
            DatasetError: if it cannot be written.
        """
        try:
            with _locked(self.folder):
                owner, lines = _lines(self.folder / INDEX)
                self.read()
                kept = [one for path, one in self.entries.items() if path not in set(paths)]
                head = next(iter(lines), b"")
                sound = checksum_of(head, 0) is not None and b'"library"' in head
                first: list[Any] = [head] if sound else []
                if not sound and owner == os.geteuid():
                    first = [asdict(_Head(1, str(self.folder), owner))]
                _write(self.folder, [*first, *map(asdict, kept)])
        except OSError as error:
            raise DatasetError(f"cannot write to the library {self.folder}: {error}") from error
        self.read()


def _holds_data(place: Path) -> bool:
    return any((place / name).exists() for name in ("dataset.json", "trials.json", "datasets"))


def _instead(place: Path) -> str:
    """What to do where a folder is no library, as the end of a sentence."""
    if _holds_data(place):
        return ", which is a run or a dataset: choose another folder"
    libraries: list[Path] = []
    for parent in dict.fromkeys((place.parent, Path.cwd())):
        with contextlib.suppress(OSError):
            libraries += [one for one in sorted(parent.iterdir()) if (one / INDEX).is_file()]
    near = difflib.get_close_matches(place.name, [one.name for one in libraries], n=1, cutoff=0.5)
    meant = next((f". Did you mean {str(one)!r}?" for one in libraries if one.name in near), "")
    return meant or f": make one by archgym history add --library {place}"


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keeps other processes from writing."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(folder / _LOCK, flags, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _lines(path: Path) -> tuple[int, list[bytes]]:
    """Owner of a file, and its lines; a link is not followed, a pipe not waited for."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(file, "rb") as source:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode) or about.st_size > _LIMIT_BYTES:
            raise OSError(f"{path} is no file, or larger than {_LIMIT_BYTES:,} bytes")
        return about.st_uid, source.read(_LIMIT_BYTES).splitlines(keepends=True)


def _write(folder: Path, lines: Sequence[bytes | dict[str, Any]]) -> None:
    """Writes the file by write and rename."""
    temporary = folder / f".tmp-{os.getpid()}-{INDEX}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    temporary.unlink(missing_ok=True)
    with open(os.open(temporary, flags, 0o644), "wb") as file:
        for line in lines:
            file.write(line if isinstance(line, bytes) else with_checksum(line, 0)[0])
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / INDEX)
    sync_folders(folder)
