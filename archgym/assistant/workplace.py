"""The folder that an assistant works in, what it may use, and the budget that it spends."""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow.compute as pc

from archgym.data import Dataset, find_datasets
from archgym.environment.environment import Environment
from archgym.errors import (
    BudgetExhausted,
    ExperimentError,
    InvalidValueError,
    UnknownNameError,
    check_received,
)
from archgym.registry import environment_class, environment_names, is_declaration

__all__ = ["Limits", "Workplace"]

EVALUATIONS: Final = "evaluations"
RUNS: Final = "runs"
EXPERIMENTS: Final = "experiments"
_LOCK: Final = "assistant.lock"
_MAX_RUNNING: Final = 4
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Limits:
    """What the person who starts the server allows.

    Attributes:
        budget: distinct legal designs that may be simulated in the folder, those of earlier
            sessions included; one that is simulated in part counts by its relative cost.
        environments: those besides the registered ones: paths of YAML files, ``module:Class``.
        programs: whether simulators may be chosen that are programs of this machine.
        run_minutes: after which an experiment is ended, and one simulation by a program or a class
            that is not archgym's own.
    """

    budget: int
    environments: Sequence[str] = ()
    programs: bool = False
    run_minutes: float = 30.0


class Workplace:
    """A folder with the evaluations and runs of an assistant. Nothing else is read or written.

    Args:
        folder: made if it is not there.
        limits: of the session.

    Raises:
        ArchgymError: if the folder or an environment cannot be used, or another server uses it.
    """

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder, self.limits = folder.absolute(), limits
        self.folder.mkdir(parents=True, exist_ok=True)
        self.check()
        self._lock_file = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock_file)
            raise ExperimentError(f"another archgym mcp works in {folder}") from None
        self._named = {_short(spec): _absolute(spec) for spec in limits.environments}
        for spec in self._named.values():
            environment_class(spec)
        self._budget_lock = threading.Lock()
        self._running: set[str] = set()
        self._spent = sum(self._simulated(path) for path in self._folders())

    def check(self) -> None:
        """Refuses a folder in which something leads out of it.

        Raises:
            ExperimentError: with what it is.
        """
        self._check_places()
        for name in (EVALUATIONS, RUNS, EXPERIMENTS, _LOCK):
            check_received(self.folder / name, ExperimentError)

    def _check_places(self) -> None:
        for name in (EVALUATIONS, RUNS, EXPERIMENTS, _LOCK):
            place = self.folder / name
            if place.is_symlink():
                raise ExperimentError(f"{place} is a symbolic link: it may lead out of the folder")

    def close(self) -> None:
        """Lets go of the folder."""
        os.close(self._lock_file)

    # -- environments ----------------------------------------------------------------------------

    @property
    def environments(self) -> dict[str, str]:
        """What may be used, by the name that an assistant gives."""
        return {**{name: name for name in environment_names()}, **self._named}

    def environment(self, name: str) -> tuple[str, type[Environment]]:
        """The environment of a name, as registered name, file or ``module:Class``, and its class.

        Raises:
            UnknownNameError: if it is not among those that are allowed.
        """
        allowed = self.environments
        if name not in allowed:
            raise UnknownNameError("environment", name[:200], allowed)
        return allowed[name], environment_class(allowed[name])

    # -- the budget ------------------------------------------------------------------------------

    @property
    def spent(self) -> int:
        """Designs simulated, those that runs have reserved included."""
        return self._spent

    @property
    def left(self) -> int:
        """Designs that may still be simulated."""
        return max(0, self.limits.budget - self._spent)

    @contextlib.contextmanager
    def reserved(self, designs: int) -> Iterator[list[int]]:
        """Takes designs from the budget, for a block.

        Gives a list with one number: how many were used, all of them unless the block says else.

        Raises:
            BudgetExhausted: if fewer are left.
        """
        with self._budget_lock:
            if designs > self.left:
                raise BudgetExhausted(
                    f"this may simulate {designs:,} designs, and {self.left:,} of the budget of "
                    f"{self.limits.budget:,} are left"
                )
            self._spent += designs
        used = [designs]
        try:
            yield used
        finally:
            with self._budget_lock:
                self._spent += used[0] - designs

    @contextlib.contextmanager
    def running(self, name: str) -> Iterator[None]:
        """Keeps the folder of a run to one process, for a block.

        Raises:
            ExperimentError: if a run of this name is going on, or as many as are allowed.
        """
        with self._budget_lock:
            if name in self._running:
                raise ExperimentError(
                    f"the run {name!r} is going on: run_status shows how far it is; choose another "
                    "name for another run"
                )
            if len(self._running) >= _MAX_RUNNING:
                raise ExperimentError(
                    f"{len(self._running)} runs are going on, at most {_MAX_RUNNING} are allowed "
                    "at a time: wait until one of them has ended"
                )
            self._running.add(name)
        try:
            yield
        finally:
            with self._budget_lock:
                self._running.discard(name)

    # -- folders ---------------------------------------------------------------------------------

    def results(self) -> dict[str, Path]:
        """Folders of runs and of evaluations, by name."""
        return {path.name: path for path in self._folders()}

    def result(self, name: str) -> Path:
        """The folder of a name.

        Raises:
            UnknownNameError: if there is none.
        """
        found = self.results()
        if name not in found:
            raise UnknownNameError("result", name[:200], found)
        check_received(found[name], ExperimentError)
        return found[name]

    def run_folder(self, name: str) -> Path:
        """The folder for a run of a name.

        Raises:
            InvalidValueError: if that cannot be the name of a folder, or is taken.
        """
        if not _NAME.fullmatch(name):
            raise InvalidValueError(
                f"name cannot be {name[:80]!r}: allowed are 1 to 64 letters, digits, '.', '_' and "
                "'-', a letter or digit first"
            )
        if (self.folder / EVALUATIONS / name).exists():
            raise InvalidValueError(f"name {name!r} is taken by evaluations")
        return self.folder / RUNS / name

    def simulated(self, folder: Path) -> int:
        """How much of the budget the datasets of a folder cost."""
        return self._simulated(folder)

    def _folders(self) -> list[Path]:
        self._check_places()
        found = [*(self.folder / EVALUATIONS).glob("*"), *(self.folder / RUNS).glob("*")]
        return sorted(path for path in found if path.is_dir() and not path.is_symlink())

    def _simulated(self, folder: Path) -> int:
        check_received(folder, ExperimentError)
        if (folder / "dataset.json").is_file():
            datasets = [Dataset(folder)]
        elif any(folder.glob("datasets/*/dataset.json")):
            datasets = find_datasets(folder)
        else:
            return 0
        return math.ceil(sum(_cost(dataset) for dataset in datasets) - 1e-9)


def _cost(dataset: Dataset) -> float:
    """What was simulated for a dataset, in full simulations; others count by their relative cost.

    That is the unit of the budgets of searches, which spend it on parts of simulations, too.
    """
    costs = {1.0: 1.0}
    for text in dataset.trials()["fidelities"].to_pylist():
        costs |= {float(one["value"]): float(one["cost"]) for one in json.loads(text or "[]")}
    spent = 0.0
    for _, table in dataset.snapshot().blocks(["status", "cached", "fidelity"]):
        counted = pc.and_(pc.invert(table["cached"]), pc.not_equal(table["status"], "illegal"))
        for row in pc.value_counts(table["fidelity"].filter(counted)).to_pylist():
            spent += row["counts"] * costs.get(row["values"], 1.0)
    return spent


def _short(spec: str) -> str:
    return Path(spec).name if is_declaration(spec) else spec


def _absolute(spec: str) -> str:
    return str(Path(spec).absolute()) if is_declaration(spec) else spec
