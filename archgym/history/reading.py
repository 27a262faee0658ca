"""Reads what was recorded for earlier problems, as it concerns the problem that is searched now.

Each earlier problem becomes a source: environment, settings, workload, simulator and values that
were held, whatever the objective was. Its metrics are scored anew, its designs are translated to
the space that is searched now, and of each source at most :data:`~archgym.history.pool.MAX_BEST`
designs are kept because they are good, and
:data:`~archgym.history.pool.MAX_OTHERS` others.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.data import Dataset, find_datasets
from archgym.data.designs import looked_up
from archgym.data.parts import changed_files
from archgym.environment.environment import Environment
from archgym.errors import DatasetError, InvalidValueError
from archgym.history.account import SourceAccount
from archgym.history.earlier import Earlier, scored
from archgym.history.history import History, HistoryPaths
from archgym.history.problem import (
    baseline_metrics,
    differences,
    problem_key,
    problem_name,
    refusal,
)
from archgym.history.shipped import place_of
from archgym.history.source_reader import SourceReader, hand_out
from archgym.history.translation import Translation

__all__ = ["check_history", "history_datasets", "read_earlier", "read_history"]

_MAX_REASONS = 3


def read_history(paths: HistoryPaths, environment: Environment) -> History:
    """The history in datasets or folders of runs, for a search in an environment.

    The rows of one earlier problem become one source: of each design the first row that was
    simulated in full and gave the metrics that the objective needs. The baseline design is
    simulated, if its metrics are not known yet.

    >>> import archgym, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     before = archgym.make("Conformance-v0", record=folder)
    ...     _ = before.evaluate_batch([before.baseline, {**before.baseline, "ways": 2}])
    ...     before.close()
    ...     env = archgym.make("Conformance-v0", objective="minimize energy_pj")
    ...     history = read_history(folder, env)
    >>> [(source.name, len(source), source.same) for source in history]
    [('Conformance-v0', 2, True)]

    Args:
        paths: of one folder, or of several.
        environment: in which is searched.

    Raises:
        DatasetError: if a folder holds no dataset, or a damaged one, or nothing that can be used.
        SimulationError: if the baseline design cannot be simulated.
    """
    return scored(read_earlier(paths, environment, environment.baseline_metrics), environment)


def check_history(paths: HistoryPaths, environment: Environment) -> None:
    """Makes sure that each folder has an earlier problem that may be used; reads no rows.

    Raises:
        DatasetError: if one has none, or a file that is not what was written.
    """
    for path in _listed(paths):
        reasons = {}
        for dataset in find_datasets(path):
            _check_unchanged(dataset)
            translation = _translation(dataset, environment)
            trials = dataset.trials().to_pylist()
            first = {problem_key(trial, dataset.sidecar): trial for trial in trials}
            for trial in first.values():
                why = refusal(dataset, trial, environment, translation)
                reasons[problem_name(trial, dataset.sidecar, environment)] = why
        if all(reasons.values()):
            raise _nothing(path, environment, reasons)


def history_datasets(paths: HistoryPaths) -> list[tuple[str, list[Dataset]]]:
    """Each folder with its datasets, none of them twice.

    Raises:
        DatasetError: if a folder has none, or a damaged one.
        InvalidValueError: if a path is none.
    """
    seen: set[Path] = set()
    found = []
    for path in _listed(paths):
        _check_folder(path)
        datasets = {one.directory.resolve(): one for one in find_datasets(path)}
        found.append((str(path), [one for at, one in datasets.items() if at not in seen]))
        seen |= datasets.keys()
    return found


def read_earlier(
    paths: HistoryPaths,
    environment: Environment,
    now: NDArray[np.float64] | None,
    optional: HistoryPaths = (),
) -> tuple[list[Earlier], tuple[SourceAccount, ...]]:
    """The earlier problems in some folders, as plain arrays, and what became of all rows.

    Args:
        paths: of one folder, or of several.
        environment: in which is searched.
        now: metrics of its baseline design, shape (n_metrics,); ``None`` if they are not known
            yet, so that the best designs are chosen as if they were those of each earlier problem.
        optional: of further folders, which may hold nothing that can be used.

    Raises:
        DatasetError: as :func:`read_history`.
    """
    readers: dict[tuple[Any, ...], SourceReader] = {}
    names: Counter[str] = Counter()
    needed = {str(path) for path in _listed(paths)}
    for path, datasets in history_datasets([*_listed(paths), *_listed(optional)]):
        there: dict[tuple[Any, ...], SourceReader] = {}
        for dataset in datasets:
            mine = _readers_of(dataset, environment, now, readers, names)
            _read(dataset, environment, mine)
            there |= {reader.key: reader for reader in mine.values()}
        usable = any(not r.refused and r.pool.distinct for r in there.values())
        if datasets and not usable and path in needed:
            raise _nothing(path, environment, {r.name: r.why_not for r in there.values()})
    made = [reader.finish() for reader in readers.values()]
    return [one for one, _ in made if one is not None], tuple(account for _, account in made)


# -- inner workings ------------------------------------------------------------------------------


def _check_unchanged(dataset: Dataset) -> None:
    """Refuses rows that nobody recorded: a search would follow them."""
    for problem in changed_files(dataset.directory):
        raise DatasetError(
            f"{dataset.directory} is damaged: {problem}; archgym dataset repair "
            f"{dataset.directory} keeps what is sound"
        )


def _listed(paths: HistoryPaths) -> list[Path]:
    given: Any = paths
    several = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    listed: list[Any] = list(given) if several else [given]
    for path in listed:
        if not isinstance(path, str | os.PathLike) or not str(path):
            raise InvalidValueError(
                f"{path!r} is no path: allowed as history is the folder of a run or a dataset, or "
                "a list of them"
            )
    return [place_of(os.fspath(path)) for path in listed]


def _check_folder(path: Path) -> None:
    """Refuses a file, in particular that of a proxy, with what to do instead."""
    if path.suffix == ".npz" and path.is_file():
        raise DatasetError(
            f"{path} is a file: for that of a proxy of many workloads, "
            "archgym.proxy.zero_shot.proxy_source gives a source of history"
        )


def _nothing(
    path: str | Path, environment: Environment, reasons: Mapping[str, str]
) -> DatasetError:
    """The error for a folder without anything that can be used."""
    shown = [f"{name}: {reason}" for name, reason in list(reasons.items())[:_MAX_REASONS]]
    more = [f"and {len(reasons) - _MAX_REASONS} more"] if len(reasons) > _MAX_REASONS else []
    why = "; ".join([*shown, *more]) or "it has no trials"
    return DatasetError(f"nothing in {path} can be history of {environment.name}: {why}")


def _translation(dataset: Dataset, environment: Environment) -> Translation:
    space, baseline = environment.design_space, environment.baseline_design
    return Translation(dataset.sidecar.space, space, baseline)


def _readers_of(
    dataset: Dataset,
    environment: Environment,
    now: NDArray[np.float64] | None,
    readers: dict[tuple[Any, ...], SourceReader],
    names: Counter[str],
) -> dict[str, SourceReader]:
    """The reader for the problem of each trial of a dataset, by the trial's id."""
    translation, found = _translation(dataset, environment), {}
    for trial in dataset.trials().to_pylist():
        key = problem_key(trial, dataset.sidecar)
        if key not in readers:
            name = problem_name(trial, dataset.sidecar, environment)
            names[name] += 1
            differs = differences(trial, dataset.sidecar, environment)
            why = refusal(dataset, trial, environment, translation)
            baseline = baseline_metrics(trial, environment.metrics)
            if not differs and now is not None:
                baseline = now  # what holds now is not scaled
            name += f" #{names[name]}" if names[name] > 1 else ""
            readers[key] = SourceReader(
                key, name, environment, baseline, baseline if now is None else now, differs, why
            )
        reader = found[trial["trial_id"]] = readers[key]
        reader.differences += tuple(
            text for text in _of_space(translation) if text not in reader.differences
        )
        if str(dataset.directory) not in reader.folders:
            reader.folders.append(str(dataset.directory))
    return found


def _of_space(translation: Translation) -> Iterator[str]:
    for text, names in (("without", translation.filled), ("also with", translation.dropped)):
        if names:
            shown = ", ".join(names[:_MAX_REASONS])
            yield f"{text} {shown}{', ...' if len(names) > _MAX_REASONS else ''}"


def _read(dataset: Dataset, environment: Environment, readers: Mapping[str, SourceReader]) -> None:
    """Hands the rows of a dataset to the readers of its trials' problems."""
    _check_unchanged(dataset)
    distinct = list({reader.key: reader for reader in readers.values()}.values())
    numbers = {reader.key: number for number, reader in enumerate(distinct)}
    number_of = {trial_id: numbers[reader.key] for trial_id, reader in readers.items()}
    translation = _translation(dataset, environment)
    there = {metric.name for metric in dataset.sidecar.metrics}
    metrics = [f"metric.{m.name}" for m in environment.metrics if m.name in there]
    usable = np.array([not reader.refused for reader in distinct], dtype=np.bool_)
    columns = ["trial_id"]
    if usable.any():
        columns += ["status", "fidelity", *translation.columns, *metrics]
    for _, table in dataset.snapshot().blocks(columns):
        of = looked_up(table["trial_id"], lambda name: number_of.get(name, -1), np.int64)
        if (of < 0).any():
            unknown = table["trial_id"][int(np.argmin(of))].as_py()
            raise DatasetError(
                f"{dataset.directory}: trial {unknown!r} has evaluations, but is not in the "
                "table of trials; archgym dataset validate lists what is wrong"
            )
        counts = np.bincount(of, minlength=len(distinct)).tolist()
        for reader, rows in zip(distinct, counts, strict=True):
            reader.rows += rows
        if usable[of].any():
            hand_out(table, of, distinct, usable, translation, environment)
