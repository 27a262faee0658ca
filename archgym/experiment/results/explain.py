"""``archgym explain``: why the best design of each problem of a run is the best.

What the run has simulated is taken from its datasets; the rest is simulated, within a budget. The
result is kept in the run's folder, where reports find it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.analysis.dataset_rows import metric_vector, scorer_of
from archgym.analysis.explanation import Explanation, Ladder, Step
from archgym.analysis.trials import TrialSummary, read_trials
from archgym.data import Dataset, find_datasets
from archgym.data.designs import design_columns, read_designs
from archgym.environment.environment import Environment
from archgym.errors import DatasetError, DesignError, UnknownNameError
from archgym.experiment.folder.run_folder import RunFolder
from archgym.experiment.results.best_design import best_of
from archgym.problem.goals import goal_label
from archgym.problem.scoring import Scorer
from archgym.reading.checked_json import read_checked_json
from archgym.simulators.tabular.simulator import PREFIX, shipped_tables
from archgym.space import Designs, DesignSpace
from archgym.validation.recorded import make_recorded

FILE = "explanation.json"
"""Name of the file in the folder of a run, or of a dataset."""
_LIMIT_BYTES = 1 << 24
_SAID_EVERY_S = 5.0
"""How often slow simulations are counted for whoever waits."""
_ALIKE = ("environment", "settings", "workload", "workload_sha256")
"""Columns of trials whose rows have equal metrics for equal designs."""

Codes = tuple[int, ...]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class _Kept:
    """The form of :data:`FILE`."""

    explanations: list[Explanation] = field(default_factory=list)


def explain_run(
    folder: str | Path,
    budget: int,
    *,
    environment: str = "",
    simulator: str = "",
    read_files: bool = False,
    progress: Progress = lambda text: None,
) -> list[Explanation]:
    """Explains the best design of each problem of a run or a dataset, and keeps that in it.

    Where the folder cannot be written to, nothing is kept, and ``progress`` is told so. A
    ``KeyboardInterrupt`` while it simulates ends it early: what was simulated by then is kept,
    and the next call goes on from there.

    Args:
        folder: of the run or dataset.
        budget: designs that may be simulated for each problem, beside those that the run has.
        environment: name in place of the recorded one; needed for one that is not registered.
        simulator: name in place of the recorded one; needed for ``tabular:PATH``, ``proxy:PATH``.
        read_files: whether files that were recorded by name are read, such as a trace.
        progress: called with what is done next.

    Raises:
        ArchgymError: if the folder is neither or is damaged, or an environment cannot be made.
        KeyboardInterrupt: after what was simulated is kept.
    """
    found: list[Explanation] = []
    interrupted = False
    names = {trial.trial_id: trial.arguments for trial in RunFolder(folder).trials()}
    earlier: list[Explanation] = []
    with contextlib.suppress(DatasetError):  # a damaged one is made again
        earlier = kept_explanations(folder)
    for dataset in find_datasets(folder):
        problems: dict[tuple[str, ...], list[TrialSummary]] = {}
        for summary in read_trials(dataset):
            problems.setdefault(summary.problem, []).append(summary)
        rows = {row["trial_id"]: row for row in dataset.trials().to_pylist()}
        for summaries in problems.values():
            best = best_of(summaries)
            if best is None or best.best is None or interrupted:
                continue
            table = str(names.get(best.trial_id, {}).get("simulator", ""))
            shipped = table.removeprefix(PREFIX) in shipped_tables()
            one = _Problem(dataset, best, rows, progress, earlier)
            chosen = simulator or (table if table.startswith(PREFIX) and shipped else "")
            found.append(one.explain(budget, environment, chosen, read_files))
            interrupted = one.interrupted
    if not found:
        raise DatasetError(f"{folder} holds no design that was simulated fully: nothing to explain")
    if interrupted:
        explained = {one.trial_id for one in found}
        found += [one for one in earlier if one.trial_id not in explained]
    try:
        _keep(Path(folder) / FILE, found)
    except DatasetError as error:  # what was simulated is not lost for that
        progress(f"reports will not show it: {error}")
    if interrupted:
        raise KeyboardInterrupt
    return found


def kept_explanations(folder: str | Path) -> list[Explanation]:
    """What :func:`explain_run` kept in a folder; nothing if it was not called.

    Raises:
        DatasetError: if the file is damaged.
    """
    path = Path(folder) / FILE
    try:
        return read_checked_json(path, _Kept, _LIMIT_BYTES).explanations
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise DatasetError(f"cannot read {path}: {error}") from error


def _keep(path: Path, found: Sequence[Explanation]) -> None:
    text = json.dumps({"explanations": [one.to_json() for one in found]}, indent=1)
    temporary = path.with_name(f".tmp-{os.getpid()}-{path.name}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        raise DatasetError(f"cannot write {path}: {error.strerror}") from error


def _steps(one: Explanation) -> Iterable[Step]:
    """The designs that were simulated for an explanation."""
    for difference in one.differences:
        yield from (s for s in (difference.back, difference.alone) if s.status == "ok")
    if one.simpler is not None:
        yield one.simpler


class _Problem:
    """One problem of a dataset, and its best design.

    Attributes:
        interrupted: whether its explanation ended before all that it needs was simulated.
    """

    def __init__(
        self,
        dataset: Dataset,
        best: TrialSummary,
        rows: Mapping[str, Mapping[str, Any]],
        progress: Progress,
        earlier: Sequence[Explanation],
    ) -> None:
        self.interrupted = False
        self._dataset, self._summary, self._progress = dataset, best, progress
        self._sidecar = dataset.sidecar
        self._row = rows[best.trial_id]
        alike = [self._row[name] for name in _ALIKE]
        self._trials = {n for n, row in rows.items() if [row[c] for c in _ALIKE] == alike}
        self._space: DesignSpace = self._sidecar.space.fix(best.fixed)
        self._scorer: Scorer = scorer_of(self._row, self._sidecar.metrics)
        self._earlier = [one for one in earlier if one.trial_id in self._trials]

    def explain(
        self, budget: int, environment: str, simulator: str, read_files: bool
    ) -> Explanation:
        """Explains it; see :func:`explain_run`."""
        summary, metrics = self._summary, self._sidecar.metrics
        assert summary.best is not None
        if not summary.baseline_design:
            raise DatasetError(
                f"{self._dataset.directory} does not say which the baseline design was"
            )
        ends = summary.baseline_design, summary.best.design
        ladder = Ladder(self._space, self._scorer, metrics, *ends)
        known, without = self._recorded(ladder)
        missing = sum(codes not in known for codes in ladder.wanted)
        made: list[Environment] = []
        if missing and budget:  # before anything is said of simulations
            made.append(self._environment(environment, simulator, read_files))
        on = f" on {summary.workload}" if summary.workload else ""
        self._progress(
            f"{summary.environment}{on}: {len(ladder.wanted)} designs, of which the run has "
            f"{len(ladder.wanted) - missing}; simulating {min(missing, budget)}"
        )

        def simulate(designs: Designs) -> Iterable[tuple[str, str, NDArray[np.float64]]]:
            if not made:
                made.append(self._environment(environment, simulator, read_files))
            names, said = self._scorer.metric_names, time.monotonic()
            for number, design in enumerate(designs, 1):
                try:
                    outcome = made[0].evaluate(design)
                except KeyboardInterrupt:
                    self.interrupted = True
                    return
                yield outcome.status, outcome.reason, metric_vector(outcome.metrics, names)
                if time.monotonic() - said >= _SAID_EVERY_S:
                    said = time.monotonic()
                    self._progress(f"{number} of {len(designs)} designs simulated")

        return Explanation(
            environment=summary.environment,
            workload=summary.workload,
            objective=summary.objective.to_json(),
            trial_id=summary.trial_id,
            agent=summary.agent,
            seed=summary.seed,
            goals=[goal_label(goal, metrics) for goal in summary.objective.goals],
            **ladder.explain(known, without, simulate, budget),
        )

    def _environment(self, environment: str, simulator: str, read_files: bool) -> Environment:
        row = self._row
        spec = row["workload_spec"]
        env = make_recorded(
            *(str(row["environment"]), json.loads(row["settings"])),
            *(json.loads(spec) if spec is not None else None, row["workload"]),
            self._sidecar.simulator,
            chosen=environment,
            simulator=simulator,
            read_files=read_files,
            objective=json.loads(row["objective"]),
            space=self._sidecar.space,
            fixed=json.loads(row["fixed"]),
        )
        if row["workload_sha256"] not in ("", None, env.workload_sha256):
            raise DatasetError(
                f"the workload {row['workload']!r} has changed since the run: what is simulated "
                "now cannot be compared with it"
            )
        env.baseline_metrics = self._scorer.baseline
        return env

    def _recorded(
        self, ladder: Ladder
    ) -> tuple[dict[Codes, NDArray[np.float64]], list[tuple[Codes, NDArray[np.float64]] | None]]:
        """Metrics of the designs that the run has, and what each limit keeps it from."""
        scorer, space = self._scorer, self._sidecar.space
        wanted = set(ladder.wanted)
        known: dict[Codes, NDArray[np.float64]] = {ladder.ends[0]: np.array(scorer.baseline)}
        for step in itertools.chain.from_iterable(_steps(one) for one in self._earlier):
            with contextlib.suppress(DesignError, UnknownNameError):  # of another design space
                key = self._space.codes(step.design)
                known[key] = metric_vector(step.metrics, scorer.metric_names)
        assert self._summary.best is not None
        best = metric_vector(self._summary.best.metrics, scorer.metric_names)
        weights = np.array([goal.weight for goal in scorer.objective.goals])
        least = [float(scorer.costs(best[None])[0] @ weights)] * len(scorer.objective.limits)
        without: list[tuple[Codes, NDArray[np.float64]] | None] = [None] * len(least)
        metrics = [f"metric.{name}" for name in scorer.metric_names]
        columns = [*design_columns(space), *metrics, "trial_id", "status", "fidelity"]
        for block in self._dataset.snapshot().blocks(columns):
            table = block.table
            here = np.array([name in self._trials for name in table["trial_id"].to_pylist()])
            here &= np.array(table["status"].to_pylist()) == "ok"
            here &= table["fidelity"].to_numpy() == 1
            rows = np.flatnonzero(here)
            if not len(rows):
                continue
            table = table.take(rows)
            codes = read_designs(space, table).codes
            values = np.column_stack([table[name].to_numpy() for name in metrics])
            values = values.astype(np.float64)
            for row, mine in enumerate(map(tuple, codes.tolist())):
                if mine in wanted:
                    known[mine] = values[row]
            with np.errstate(all="ignore"):
                costs = scorer.costs(values) @ weights
                broken = scorer.violations(values) > 0
            legal = self._space.legal(Designs(self._space, codes))
            for number in range(len(least)):
                only = legal & broken[:, number] & (broken.sum(axis=1) == 1) & np.isfinite(costs)
                some = np.where(only, costs, np.inf)
                if len(some) and some.min() < least[number]:
                    row = int(some.argmin())
                    least[number] = float(some[row])
                    without[number] = (tuple(codes[row].tolist()), values[row])
        return known, without
