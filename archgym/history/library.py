"""A library: a folder that lists runs and datasets, in which searches find history by themselves.

Nothing is copied. The library holds the places of folders and what they hold, so that those of use
to a search are found without opening all. Only what the user, or a run that was told to, put into
it is read. A found folder is opened as any dataset is: as data, with all checks, never executed.

An entry that lies outside the library is followed only if the user made the library, in the place
where it is. Of a library that somebody else made, or that was moved, only folders inside it are.
"""

from __future__ import annotations

import contextlib
import datetime
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from archgym.data import Dataset, find_datasets
from archgym.data.journal import is_locked
from archgym.environment.environment import Environment
from archgym.errors import ArchgymError, DatasetError, InvalidValueError
from archgym.history.library_index import Entry, HeldProblem, LibraryIndex
from archgym.history.reading import check_history

__all__ = ["MAX_FOUND", "Library"]

MAX_FOUND = 20
"""Most folders that a search learns from, the best ones."""


class Library:
    """A library in a folder.

    >>> import archgym, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     before = archgym.make("Conformance-v0", record=f"{folder}/run")
    ...     _ = before.evaluate_batch([before.baseline, {**before.baseline, "ways": 2}])
    ...     before.close()
    ...     library = Library.make(f"{folder}/library")
    ...     entry = library.add(f"{folder}/run")
    ...     env = archgym.make("Conformance-v0", objective="minimize energy_pj")
    ...     found = library.find(env)
    >>> entry.rows, [path.name for path in found]
    (2, ['run'])

    Args:
        folder: of the library.

    Raises:
        DatasetError: if there is none.
    """

    def __init__(self, folder: str | Path) -> None:
        self._index = LibraryIndex(folder)

    @staticmethod
    def make(folder: str | Path) -> Library:
        """The library in a folder, which is made if there is none.

        Raises:
            DatasetError: if it cannot be made.
        """
        return Library(LibraryIndex.make(folder).folder)

    @property
    def folder(self) -> Path:
        """Of the library, absolute."""
        return self._index.folder

    @property
    def entries(self) -> list[Entry]:
        """All entries, the newest first."""
        return list(self._index.entries.values())[::-1]

    @property
    def damaged(self) -> int:
        """Number of lines of the index that were passed over."""
        return self._index.damaged

    def path(self, entry: Entry) -> Path:
        """The folder of an entry."""
        return self.folder / entry.path  # an absolute path stays as it is

    def add(self, folder: str | Path) -> Entry:
        """Adds a run or a dataset, or what it holds by now.

        Raises:
            DatasetError: if it holds no data or damaged data, if a process writes to it, or if it
                lies outside a library that somebody else made or that was moved.
        """
        place = Path(folder).expanduser().resolve()
        inside = place.is_relative_to(self.folder)
        if not (inside or self._index.own):
            raise DatasetError(f"{folder} cannot be added: {self.restriction}")
        problems = _problems(find_datasets(place))
        if not any(problem.rows for problem in problems):
            raise DatasetError(f"{folder} cannot be added: it has no evaluations")
        if why := _in_progress(place):
            raise DatasetError(f"{folder} cannot be added yet: {why}")
        entry = Entry(
            str(place.relative_to(self.folder) if inside else place),
            datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            problems,
        )
        self._index.append(entry)
        return entry

    def follows(self, entry: Entry) -> bool:
        """Whether the folder of an entry is read: it lies inside, or the user made the library."""
        inside = self.path(entry).resolve().is_relative_to(self.folder)
        return inside or (self._index.own and Path(entry.path).is_absolute())

    def problem_of(self, entry: Entry) -> str:
        """Why nothing of an entry can be read now; empty if it can. Reads no rows."""
        place = self.path(entry)
        if not self.follows(entry):
            return "it is not followed, because it lies outside the library"
        if not place.is_dir():
            return "it is not there any more"
        try:
            for dataset in find_datasets(place):
                dataset.trials()
        except (ArchgymError, OSError) as error:
            return f"it is damaged: {error}"
        return _in_progress(place)

    def misfit(self, entry: Entry, environment: Environment) -> str:
        """Why an entry is no history for a search in an environment; empty if it is.

        Args:
            entry: of this library.
            environment: in which is searched.
        """
        names = dict.fromkeys(problem.environment for problem in entry.problems)
        if environment.name not in names:
            return f"it is of {', '.join(names) or 'no environment'}"
        if why := self.problem_of(entry):
            return why
        try:
            check_history(self.path(entry), environment)
        except (ArchgymError, OSError) as error:
            return str(error)
        return ""

    def find(
        self, environment: Environment, limit: int = MAX_FOUND, without: Iterable[Path] = ()
    ) -> list[Path]:
        """Folders that a search in an environment may learn from.

        First those that hold evaluations of the same problem, whatever its objective and limits,
        then others of the same environment; of each the newest first.

        Args:
            environment: in which is searched.
            limit: maximum number of folders.
            without: folders that are left out, such as that of the run itself.

        Raises:
            InvalidValueError: if ``limit`` is below 1.
        """
        if limit < 1:
            raise InvalidValueError(f"limit is {limit}: at least 1 is needed")
        left_out = {path.resolve() for path in without}
        ranked = sorted(self.entries, key=lambda entry: not _same(entry, environment))
        found: list[Path] = []
        for entry in ranked:
            if len(found) == limit:
                break
            place = self.path(entry)
            if place.resolve() not in left_out and not self.misfit(entry, environment):
                found.append(place)
        return found

    def prunable(
        self, *, days: float | None = None, environment: Environment | None = None
    ) -> Iterator[tuple[Entry, str]]:
        """Entries to remove, and why: their folder is gone or damaged, and more if it is asked for.

        Args:
            days: those that were added longer ago, in days.
            environment: those of this environment that an edited simulator, or one of another
                version, has recorded.
        """
        now = datetime.datetime.now(datetime.UTC)
        for entry in self.entries:
            why = self.problem_of(entry)
            if why.startswith("it is not there") or why.startswith("it is damaged"):
                yield entry, why
            elif days is not None and _age_days(entry, now) > days:
                yield entry, f"it was added {_age_days(entry, now):,.0f} days ago"
            elif environment is not None and (why := _edited(entry, environment)):
                yield entry, why

    def remove(self, entries: Iterable[Entry]) -> None:
        """Removes entries, not what they stand for.

        Raises:
            DatasetError: if the index cannot be written.
        """
        self._index.remove([entry.path for entry in entries])

    @property
    def restriction(self) -> str:
        """Why only folders inside the library are followed; empty if all are."""
        if self._index.own:
            return ""
        return (
            f"the library {self.folder} was made by somebody else or in another place, so only "
            "folders inside it count; make one by archgym history add --library DIR"
        )


def _problems(datasets: Iterable[Dataset]) -> list[HeldProblem]:
    """What datasets hold, a problem each, in the order of their names."""
    found: dict[str, HeldProblem] = {}
    for dataset in datasets:
        rows: Counter[str] = Counter()
        for _, block in dataset.snapshot().blocks(["trial_id"]):
            counts = block["trial_id"].cast(pa.string()).value_counts().to_pylist()
            rows.update({one["values"]: one["counts"] for one in counts})
        sidecar = dataset.sidecar
        for trial in dataset.trials().to_pylist():
            held = HeldProblem(
                environment=trial["environment"],
                settings=trial["settings"],
                workload=trial["workload"],
                workload_sha256=trial["workload_sha256"] or "",
                simulator=sidecar.simulator["name"],
                version=sidecar.simulator["version"],
                source_sha256=sidecar.source_sha256,
                parameters=list(sidecar.space.names),
                metrics={metric.name: metric.unit for metric in sidecar.metrics},
                rows=0,
            )
            key = json.dumps(asdict(held))
            before = found[key].rows if key in found else 0
            found[key] = replace(held, rows=before + rows[trial["trial_id"]])
    return list(found.values())


def _in_progress(place: Path) -> str:
    """Whether a process writes to a run or a dataset; empty if none does."""
    for journal in [*place.glob("journal/*.jsonl"), *place.glob("datasets/*/journal/*.jsonl")]:
        with contextlib.suppress(OSError):  # sealed meanwhile
            if is_locked(journal):
                return "a process still writes to it"
    return ""


def _same(entry: Entry, environment: Environment) -> bool:
    """Whether an entry holds evaluations of the very problem, as far as its index says."""
    now = environment.description
    settings = json.loads(json.dumps(dict(now.settings), default=repr))
    return any(
        problem.environment == now.environment
        and _settings(problem) == settings
        and problem.workload_sha256 == now.workload_sha256
        and problem.workload == now.workload_name
        and not _edited(Entry(entry.path, entry.added, [problem]), environment)
        for problem in entry.problems
    )


def _settings(problem: HeldProblem) -> Any:
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(problem.settings)
    return None


def _edited(entry: Entry, environment: Environment) -> str:
    """What changed since an entry of an environment was recorded; empty if nothing did."""
    now = environment.description
    reasons = []
    for problem in entry.problems:
        if problem.environment != now.environment or problem.simulator != now.simulator["name"]:
            return ""
        if problem.version != now.simulator["version"]:
            reasons.append(
                f"the simulator is of version {now.simulator['version']} now, and was of "
                f"{problem.version}"
            )
        elif problem.source_sha256 != now.source_sha256:
            reasons.append("the source of the simulator has changed since")
        else:
            return ""
    return reasons[0] if reasons else ""


def _age_days(entry: Entry, now: datetime.datetime) -> float:
    try:
        added = datetime.datetime.fromisoformat(entry.added)
        return (now - added).total_seconds() / 86_400
    except (TypeError, ValueError, OverflowError):  # no time, or one without a time zone
        return float("inf")
