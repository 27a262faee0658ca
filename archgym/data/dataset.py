"""Reading a dataset of trajectories, and turning journals into Parquet.

A dataset is a folder::

    dataset.json            design space, metrics with units, simulator (what all rows share)
    evaluations/*.parquet   one row an evaluation
    trials/*.parquet        one row a trial
    attempts/*.parquet      one row each time that a process began or resumed a trial
    journal/*.jsonl         rows that are not in Parquet yet
    finished/               results that are not rows yet, while workers simulate for a script

Reading sees everything, also while other processes write.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from archgym.data.designs import design_codes, design_columns, design_fingerprints
from archgym.data.journal import close_journals, is_locked, read_journal
from archgym.data.parts import (
    JOURNALS_KEY,
    PENDING,
    TRIALS_FILE,
    check_there,
    kept_parts,
    part_of,
    remove_unfinished,
    sealed_journals,
    with_parts,
    write_parquet,
)
from archgym.data.records import check_line, check_trial
from archgym.data.schema import TRIAL_FIELDS, TRIAL_SCHEMA, Sidecar, evaluation_schema
from archgym.data.snapshot import Snapshot, counts_of
from archgym.errors import DatasetError, check_received
from archgym.evaluation.early_stopping import predicted_metrics
from archgym.evaluation.resumed_log import ResumedLog
from archgym.problem.status import STATUS_OF, Status
from archgym.reading.files import lines_of, opened
from archgym.reading.parquet import read_rows

TIMING_COLUMNS = ("simulation_s", "agent_s", "timestamp", "cached", "worker", "started")
"""Columns in which equal trajectories may differ."""


class Dataset:
    """A dataset of trajectories on disk.

    Args:
        directory: its folder.

    Attributes:
        sidecar: what all trajectories share.

    Raises:
        DatasetError: if the folder holds no dataset, or a damaged one.
    """

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        check_received(self.directory)
        self.sidecar = Sidecar.load(self.directory)

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table of evaluations."""
        return evaluation_schema(self.sidecar.space, self.sidecar.metrics)

    def trials(self) -> pa.Table:
        """One row a trial, ordered by id; ``state`` is ``running`` where no end was recorded.

        Raises:
            DatasetError: if the table of trials, or a row of it, is damaged.
        """
        table, problems = self.trials_with_problems()
        for trial_id, problem in problems.items():
            raise DatasetError(f"{self.directory} is damaged: trial {trial_id}: {problem}")
        return table

    def trials_with_problems(self) -> tuple[pa.Table, dict[str, str]]:
        """The table of trials, and what is wrong with some of its rows, by id.

        Raises:
            DatasetError: if it cannot be read at all.
        """
        check_there(self.directory)
        while True:
            parts = sorted(self.directory.glob("*/*.parquet"))
            found: dict[str, dict[str, Any]] = {}
            with contextlib.suppress(FileNotFoundError):  # sealed meanwhile: read again
                for path in sorted((self.directory / "trials").glob("*.parquet")):
                    for row in parquet_trials(path):
                        _merge_trial(found, row)
                for path in self.unsealed_journals():
                    for row in _trials_of(path):
                        _merge_trial(found, row)
                if sorted(self.directory.glob("*/*.parquet")) == parts:
                    return self._table_of(found)

    def evaluations(
        self, columns: Sequence[str] | None = None, trial_id: str | None = None
    ) -> pa.Table:
        """One row an evaluation, ordered by trial and step.

        Args:
            columns: the ones to read; all by default.
            trial_id: only of this trial.
        """
        names = list(columns) if columns is not None else self.schema.names
        for name in names:
            if name not in self.schema.names:
                raise DatasetError(f"no column {name!r}; there are {', '.join(self.schema.names)}")
        needed = list(dict.fromkeys([*names, "trial_id", "step"]))
        wanted = pc.scalar(True) if trial_id is None else pc.field("trial_id") == trial_id
        tables = [pa.schema([self.schema.field(name) for name in needed]).empty_table()]
        tables += [table.filter(wanted) for _, table in self.snapshot().blocks(needed)]
        table = pa.concat_tables(tables).unify_dictionaries()
        order = pa.table({"t": table["trial_id"].cast(pa.string()), "s": table["step"]})
        rows = pc.sort_indices(order, [("t", "ascending"), ("s", "ascending")])
        return table.take(rows).select(names)

    def snapshot(self) -> Snapshot:
        """The evaluations as they are now, to read them a block at a time."""
        check_there(self.directory)
        while True:
            parts = sorted((self.directory / "evaluations").glob("*.parquet"))
            with contextlib.suppress(FileNotFoundError):  # sealed meanwhile: look again
                found = Snapshot(self.sidecar, parts, self.unsealed_journals())
                if sorted((self.directory / "evaluations").glob("*.parquet")) == parts:
                    return found

    def logged_trial(self, trial_id: str) -> ResumedLog:
        """The evaluations of one trial, for resuming it."""
        table = self.evaluations(trial_id=trial_id)
        steps = table["step"].to_numpy()
        if (np.diff(steps, prepend=-1) <= 0).any():
            raise DatasetError(
                f"{self.directory}: trial {trial_id!r} has a step twice: two processes wrote it"
            )
        metrics = [table[f"metric.{m.name}"].to_numpy() for m in self.sidecar.metrics]
        status = [STATUS_OF.get(text, -1) for text in table["status"].to_pylist()]
        if -1 in status:
            wrong = table["status"][status.index(-1)].as_py()
            raise DatasetError(f"{self.directory}: trial {trial_id!r} has status {wrong!r}")
        values = np.column_stack(metrics).astype(np.float64).reshape(len(table), len(metrics))
        partial = table["partial"].to_pylist()
        for row in np.flatnonzero(np.array(status, dtype=np.int8) == Status.STOPPED).tolist():
            names = [metric.name for metric in self.sidecar.metrics]
            values[row] = predicted_metrics(partial[row], names)
        return ResumedLog(
            steps.astype(np.int64),
            design_codes(self.sidecar.space, table),
            values,
            np.array(status, dtype=np.int8),
            table["reason"].to_pylist(),
            table["fidelity"].to_numpy(),
            table["simulation_s"].to_numpy(),
            proposal=table["proposal"].fill_null(-1).to_numpy(),
            proposed=table["proposed"].fill_null(-1).to_numpy(),
            ended=table["timestamp"].to_numpy().astype("datetime64[us]").astype(np.int64) / 1e6,
            partial=partial,
        )

    def info(self) -> dict[str, Any]:
        """Counts and contents, as plain values; reads a block at a time."""
        space, trials = self.sidecar.space, self.trials()
        statuses: Counter[str] = Counter()
        fidelities: Counter[float] = Counter()
        evaluations = simulated = feasible = 0
        designs: list[NDArray[np.uint64]] = []
        columns = ["status", "cached", "feasible", "fidelity", *design_columns(space)]
        for _, table in self.snapshot().blocks(columns):
            statuses += counts_of(table["status"])
            fidelities += counts_of(table["fidelity"])
            evaluations += table.num_rows
            counted = pc.and_(pc.invert(table["cached"]), pc.not_equal(table["status"], "illegal"))
            simulated += pc.sum(counted).as_py()
            feasible += pc.sum(table["feasible"]).as_py()
            designs.append(design_fingerprints(space, table))
        return {
            "directory": str(self.directory),
            "environments": sorted(set(trials["environment"].to_pylist())),
            "simulator": self.sidecar.simulator,
            "workloads": sorted(set(trials["workload"].to_pylist())),
            "agents": sorted(set(trials["agent"].to_pylist())),
            "labels": sorted(set(trials["label"].drop_null().to_pylist())),
            "trials": trials.num_rows,
            "evaluations": evaluations,
            "simulated": simulated,
            "distinct_designs": len(np.unique(np.concatenate(designs))) if designs else 0,
            "feasible": feasible,
            "status": {status: n for status, n in sorted(statuses.items()) if n},
            "fidelity": {f"{value:.12g}": n for value, n in sorted(fidelities.items())},
            "parameters": [f"{p.name} [{p.unit}]" if p.unit else p.name for p in space.parameters],
            "metrics": [f"{m.name} [{m.unit}]" if m.unit else m.name for m in self.sidecar.metrics],
            "bytes": sum(p.stat().st_size for p in self.directory.rglob("*") if p.is_file()),
        }

    def seal(self) -> None:
        """Turns the journals of ended processes and of this one into Parquet."""
        close_journals(self.directory)
        self.seal_ended()

    def seal_ended(self, *, wait: bool = True) -> None:
        """Turns the journals that no process holds open into Parquet, by write and rename.

        Args:
            wait: whether to wait for a process that seals the dataset now; else it is left to it.
        """
        with _locked(self.directory, wait) as locked:
            ready = [path for path in self.unsealed_journals() if not is_locked(path)]
            if ready and locked:
                self._write_parts(ready)
                trials = self.trials().select(["workload", "workload_sha256"]).to_pylist()
                hashes = {row["workload"]: row["workload_sha256"] for row in trials}
                self.sidecar = replace(self.sidecar, workloads=hashes)
                self.sidecar.save(self.directory, replace=True)
            for path in self._sealed_journals() if locked else ():
                path.unlink(missing_ok=True)

    def unsealed_journals(self) -> list[Path]:
        """Journals whose rows are not in Parquet yet, the oldest first.

        Raises:
            DatasetError: if one is a folder.
        """
        sealed = set(self._sealed_journals())
        paths = sorted((self.directory / "journal").glob("*.jsonl"))
        for path in paths:
            if path.is_dir():
                raise DatasetError(f"{path} is damaged: it is a folder, not a file")
        return [path for path in paths if path not in sealed]

    # -- inner workings --------------------------------------------------------------------------

    def _table_of(self, found: dict[str, dict[str, Any]]) -> tuple[pa.Table, dict[str, str]]:
        space, metrics = self.sidecar.space, self.sidecar.metrics
        checked = {name: check_trial(row, space, metrics) for name, row in found.items()}
        try:
            rows = [found[name] for name in sorted(found)]
            table = pa.Table.from_pylist(rows, schema=TRIAL_SCHEMA)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            wrong = next((f"trial {n}: {text}" for n, text in checked.items() if text), error)
            raise DatasetError(f"{self.directory} is damaged: {wrong}") from error
        return table, {name: text for name, text in checked.items() if text}

    def _sealed_journals(self) -> list[Path]:
        """Journals whose rows are in Parquet, whether or not the file is gone yet."""
        names: list[str] = []
        for path in sorted((self.directory / "evaluations").glob("*.parquet")):
            names += sealed_journals(path)
        return [self.directory / "journal" / name for name in names]

    def _write_parts(self, journals: list[Path]) -> None:
        """Turns journals into files; whenever it is interrupted, all of it is read as before.

        The table of trials is one file with one row a trial, so that whoever joins it with the
        evaluations has each of them once; what each process did is in the table of attempts.
        """
        names = [path.name for path in journals]
        part = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
        file = f"{names[0][:16]}-{part}.parquet"
        attempts = [row for path in journals for row in _trials_of(path)]
        table = pa.Table.from_pylist(attempts, schema=TRIAL_SCHEMA)
        remove_unfinished(self.directory)
        write_parquet(self.directory / "attempts" / file, table.schema, [table], digest=True)
        schema = self.schema.with_metadata({JOURNALS_KEY: json.dumps(names).encode()})
        blocks = Snapshot(self.sidecar, (), journals).blocks()
        pending = self.directory / "evaluations" / f".{file}{PENDING}"
        write_parquet(pending, schema, (block.table for block in blocks))
        parts = {**kept_parts(self.directory), file: part_of(pending, names)}
        trials = self.trials()  # those in the journals too, as they are not sealed yet
        earlier = sorted((self.directory / "trials").glob("*.parquet"))
        done = list((self.directory / "attempts").glob("*.parquet"))
        listed = with_parts(trials.schema, parts, done)
        write_parquet(self.directory / "trials" / TRIALS_FILE, listed, [trials], digest=True)
        for path in earlier:
            if path.name != TRIALS_FILE:
                path.unlink(missing_ok=True)
        os.replace(pending, self.directory / "evaluations" / file)


def equal_trajectories(left: pa.Table, right: pa.Table) -> bool:
    """Whether two tables of evaluations are equal in all but :data:`TIMING_COLUMNS`."""
    if left.schema.names != right.schema.names or left.num_rows != right.num_rows:
        return False
    names = [name for name in left.schema.names if name not in TIMING_COLUMNS]
    return all(left[name].to_pylist() == right[name].to_pylist() for name in names)


@contextlib.contextmanager
def _locked(directory: Path, wait: bool) -> Iterator[bool]:
    """Keeps other processes from sealing the dataset; false if one does and is not waited for."""
    handle, locked = os.open(directory, os.O_RDONLY), True
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            locked = False
        yield locked
    finally:
        os.close(handle)


def parquet_trials(path: Path) -> list[dict[str, Any]]:
    """Rows of a file of trials; columns that an older version did not write are null."""
    try:
        rows = read_rows(path)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise DatasetError(f"cannot read {path}: {error}") from error
    if not all(isinstance(row.get("trial_id"), str) for row in rows):
        raise DatasetError(f"{path} is damaged: a trial has no trial_id")
    return [{name: row.get(name) for name in TRIAL_FIELDS} for row in rows]


def _trials_of(path: Path) -> list[dict[str, Any]]:
    rows: dict[int, dict[str, Any]] = {}
    with opened(path) as file:
        numbered = enumerate(_whole(file, path), 1)
        lines = (
            (number, line) for number, line in numbered if line[:1] != b"["
        )  # rows are passed over
        for number, _, line in read_journal(path, lines):
            check_line(path, number, line)
            if "trial" in line:
                rows[line["n"]] = begun_trial(line)
            elif line["end"] not in rows:
                raise DatasetError(
                    f"{path}, line {number} is damaged: it ends trial {line['end']}, which has not "
                    "begun"
                )
            else:
                ended = int(line["timestamp"] * 1e6)
                rows[line["end"]].update(state=line["state"], ended=ended)
    return list(rows.values())


def _whole(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """The lines of a journal.

    Raises:
        DatasetError: if a line is too long, or cannot be read.
    """
    try:
        yield from lines_of(file, path)
    except OSError as error:
        raise DatasetError(f"{path} is damaged: {error.strerror or error}") from error


def begun_trial(line: Mapping[str, Any]) -> dict[str, Any]:
    """The row of the table of trials for the line of a journal in which a trial begins."""
    known = {name: line["trial"].get(name) for name in TRIAL_FIELDS}
    started = int(line["trial"]["started"] * 1e6)
    return {**known, "started": started, "state": "running", "ended": None}


def _merge_trial(found: dict[str, dict[str, Any]], row: dict[str, Any]) -> None:
    """A trial that was resumed has several entries: the last one counts, the first began it.

    One that was given more budget is what its largest budget made of it.
    """
    known = found.get(row["trial_id"])
    if known is not None:
        spent, had = _budget(row), _budget(known)
        if spent < had or (spent == had and known["state"] == "finished"):
            return
        row = {**row, "started": known["started"]}
    found[row["trial_id"]] = row


def _budget(row: dict[str, Any]) -> tuple[float, float]:
    """Designs and hours; a row is checked only later, and may hold anything."""
    values = (row["budget"], row["hours"])
    designs, hours = (value if isinstance(value, int | float) else 0 for value in values)
    return designs, hours
