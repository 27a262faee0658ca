"""From folders to a study: one pass over the evaluations, and one over the designs to be shown."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from archgym.analysis.measures import measure
from archgym.analysis.rows import Rows, join, read_rows
from archgym.analysis.study import Chosen, Problem, Searcher, Study
from archgym.data import Dataset
from archgym.data.designs import design_columns, read_designs
from archgym.data.snapshot import Snapshot
from archgym.errors import DatasetError
from archgym.experiment.results.tables import agent_titles
from archgym.experiment.folder.trial_states import TrialEnd
from archgym.experiment.spec.expand import Trial
from archgym.problem.fidelity import FULL, Fidelity
from archgym.problem.metrics import Metric, metric_named
from archgym.problem.objective import Objective
from archgym.problem.scorer import Scorer
from archgym.report.names import problem_names
from archgym.report.source import Source, read_source

__all__ = ["Grouping", "read_study"]

Grouping = Literal["auto", "agent", "hyperparameters"]
_MOST_SEARCHERS = 10
"""Sets of hyperparameters up to which each is shown by itself, unless one says otherwise."""
_MOST_PICKED = 2500
_MOST_FRONT = 3000
_ROWS_A_DATASET = 1 << 40
_KEY = ("environment", "settings", "workload", "workload_sha256", "fixed", "objective")


class _Entry(NamedTuple):
    """A trial that has evaluations."""

    source: int
    dataset: int
    row: Mapping[str, Any]
    trial: Trial
    key: tuple[str, ...]
    name: str
    end: TrialEnd | None


def read_study(
    folders: Sequence[str | Path],
    names: Sequence[str] = (),
    by: Grouping = "auto",
    *,
    compare: bool = False,
) -> Study:
    """Reads all that a report needs.

    Args:
        folders: of runs or datasets.
        names: what to call each; by default as their experiments.
        by: what is put together under one name: the trials of an ``agent``, whatever its
            hyperparameters, or those with the same ``hyperparameters``; ``auto`` decides by how
            many there are.
        compare: keep the folders' trials apart, to compare the first with the second.

    Raises:
        ArchgymError: if a folder holds neither a run nor a dataset, or is damaged.
    """
    sources = [
        read_source(folder, name)
        for folder, name in zip(folders, names or [""] * len(folders), strict=True)
    ]
    labels = _distinct_names(sources)
    datasets = [dataset for source in sources for dataset, _ in source.datasets]
    entries = _entries(sources)
    if not entries:
        raise DatasetError(f"{sources[0].path} holds no trial that has evaluated anything")
    titles = agent_titles([trial for source in sources for trial in source.trials.values()])
    by = by if by != "auto" else ("hyperparameters" if len(titles) <= _MOST_SEARCHERS else "agent")
    searchers, searcher_of = _searchers(sources, labels, titles, by, compare)
    problems = _read_problems(entries, datasets, titles, searcher_of, labels if compare else None)
    _count_stillborn(problems, sources, entries, searcher_of)
    agent_of = {t.agent_label: t.agent for source in sources for t in source.trials.values()}
    began = {(entry.source, entry.trial.trial_id) for entry in entries}
    return Study(
        name=" and ".join(labels),
        folders=[source.path for source in sources],
        problems=problems,
        searchers=searchers,
        settings=list(titles.values()),
        setting_agent=[agent_of[label] for label in titles],
        failures={
            (f"{labels[i]}: {trial_id}" if compare else trial_id): (
                searcher_of(i, source.trials[trial_id]),
                end.error or "failed",
            )
            for i, source in enumerate(sources)
            for trial_id, end in source.ends.items()
            if end.state == "failed" and trial_id in source.trials
        },
        missing=sum(len(source.trials) for source in sources) - len(began),
        facts=[source.facts for source in sources],
        versions=_versions(entries),
        pooled=by == "agent" and len(titles) > len(searchers),
        compared=(labels[0], labels[1]) if compare else None,
    )


def _count_stillborn(
    problems: Sequence[Problem],
    sources: Sequence[Source],
    entries: Sequence[_Entry],
    searcher_of: Callable[[int, Trial], int],
) -> None:
    """Counts trials that failed before they had evaluated anything, with their setting's problem.

    Problems are in the order in which entries first have them.
    """
    number = {key: i for i, key in enumerate(dict.fromkeys(entry.key for entry in entries))}
    of_setting = {(e.source, e.trial.setting): problems[number[e.key]] for e in entries}
    began = {(e.source, e.trial.trial_id) for e in entries}
    for place, source in enumerate(sources):
        for trial_id, end in source.ends.items():
            if end.state == "failed" and (place, trial_id) not in began:
                trial = source.trials.get(trial_id)
                if trial is not None and (place, trial.setting) in of_setting:
                    mine = of_setting[place, trial.setting]
                    mine.stillborn[searcher_of(place, trial)] += 1


def _distinct_names(sources: Sequence[Source]) -> list[str]:
    names = [source.name for source in sources]
    if len(set(names)) < len(names):
        names = [source.path.resolve().name for source in sources]
    if len(set(names)) < len(names):
        names = [f"{name} #{i + 1}" for i, name in enumerate(names)]
    return names


def _entries(sources: Sequence[Source]) -> list[_Entry]:
    entries: list[_Entry] = []
    number = 0
    for place, source in enumerate(sources):
        order = {trial_id: i for i, trial_id in enumerate(source.trials)}
        mine: list[_Entry] = []
        for dataset, rows in source.datasets:
            about = (dataset.sidecar.simulator["name"], json.dumps(dataset.sidecar.space.to_json()))
            for row in rows:
                key = (*(str(row[name]) for name in _KEY), *about)
                trial = source.trials[row["trial_id"]]
                name = trial.setting if trial.setting in source.named else ""
                end = source.ends.get(trial.trial_id)
                mine.append(_Entry(place, number, row, trial, key, name, end))
            number += 1
        entries += sorted(mine, key=lambda entry: order[entry.trial.trial_id])
    return entries


def _searchers(
    sources: Sequence[Source],
    labels: Sequence[str],
    titles: Mapping[str, str],
    by: Grouping,
    compare: bool,
) -> tuple[list[Searcher], Callable[[int, Trial], int]]:
    """Names under which trials are put together, and which one is a trial's."""
    found: dict[tuple[int, str], Searcher] = {}

    def key(source: int, trial: Trial) -> tuple[int, str]:
        name = trial.agent_label if by == "hyperparameters" else trial.agent
        return (source if compare else 0), name

    for place, source in enumerate(sources):
        for trial in source.trials.values():
            if key(place, trial) not in found:
                plain = trial.agent.rpartition(":")[2]
                title = titles[trial.agent_label] if by == "hyperparameters" else plain
                name = f"{title} ({labels[place]})" if compare else title
                found[key(place, trial)] = Searcher(name, trial.agent, place, title)
    numbers = {known: number for number, known in enumerate(found)}
    searchers = _paired(list(found.values())) if compare else list(found.values())
    return searchers, lambda source, trial: numbers[key(source, trial)]


def _paired(searchers: Sequence[Searcher]) -> list[Searcher]:
    """Pairs an agent that both runs have with one set of hyperparameters, not the same one."""
    often = Counter((one.agent, one.source) for one in searchers)
    return [
        replace(one, twin=one.agent.rpartition(":")[2])
        if often[one.agent, 0] == often[one.agent, 1] == 1
        else one
        for one in searchers
    ]


def _read_problems(
    entries: Sequence[_Entry],
    datasets: Sequence[Dataset],
    titles: Mapping[str, str],
    searcher_of: Callable[[int, Trial], int],
    labels: Sequence[str] | None,
) -> list[Problem]:
    keys = list(dict.fromkeys(entry.key for entry in entries))
    number_of = {key: number for number, key in enumerate(keys)}
    members: list[list[int]] = [[] for _ in keys]
    for i, entry in enumerate(entries):
        members[number_of[entry.key]].append(i)
    firsts = [entries[some[0]] for some in members]
    scorers = [_scorer(entry, datasets[entry.dataset]) for entry in firsts]
    problem_of = np.array([number_of[entry.key] for entry in entries])
    setting_of = {label: number for number, label in enumerate(titles)}
    names = problem_names([_described(e, datasets[e.dataset]) for e in firsts])
    last = {number_of[entry.key]: entry.dataset for entry in sorted(entries, key=_dataset)}
    held: dict[int, list[Rows]] = {number: [] for number in range(len(keys))}
    problems: dict[int, Problem] = {}
    snapshots: list[Snapshot] = []
    for place, dataset in enumerate(datasets):
        snapshots.append(dataset.snapshot())
        mine = {e.row["trial_id"]: i for i, e in enumerate(entries) if e.dataset == place}
        here = {int(problem_of[i]) for i in mine.values()}
        wanted = {number: scorers[number] for number in here}
        first_row = place * _ROWS_A_DATASET
        found = read_rows(snapshots[-1], mine, problem_of, wanted, first_row)
        for number in sorted(here):
            held[number].append(found.pop(number))
            if last[number] == place:
                rows = join(held.pop(number), len(scorers[number].objective.goals))
                some = [entries[i] for i in members[number]]
                rows.trial = np.searchsorted(members[number], rows.trial).astype(np.int32)
                rows.reasons = type(rows.reasons)(
                    {
                        (int(np.searchsorted(members[number], trial)), reason): count
                        for (trial, reason), count in rows.reasons.items()
                    }
                )
                made = _problem(names[number], some, dataset, rows, scorers[number], labels)
                made.searcher = np.array([searcher_of(e.source, e.trial) for e in some])
                made.setting = np.array([setting_of[e.trial.agent_label] for e in some])
                problems[number] = made
    ordered = [problems[number] for number in range(len(keys))]
    _read_designs(ordered, snapshots)
    return ordered


def _dataset(entry: _Entry) -> int:
    return entry.dataset


def _described(entry: _Entry, dataset: Dataset) -> dict[str, Any]:
    return {
        "name": entry.name,
        "environment": entry.row["environment"],
        "workload": entry.row["workload"],
        "objective": Objective.parse(_json(entry.row["objective"])),
        "setting": entry.trial.setting,
        "simulator": dataset.sidecar.simulator["name"],
        "details": {
            **{k: v for k, v in _json(entry.row["settings"]).items() if "sha256" not in k},
            **_json(entry.row["fixed"]),
            **({"space": s} if isinstance(s := entry.trial.arguments.get("space"), str) else {}),
        },
    }


def _scorer(entry: _Entry, dataset: Dataset) -> Scorer:
    """Over the metrics that the objective names; the others need not be read."""
    objective = Objective.parse(_json(entry.row["objective"]))
    metrics = [
        metric_named(name, dataset.sidecar.metrics, "objective")
        for name in objective.metric_names()
    ]
    baseline = _json(entry.row["baseline"])
    return Scorer(objective, metrics, _vector(baseline, [m.name for m in metrics]))


def _problem(
    name: str,
    entries: Sequence[_Entry],
    dataset: Dataset,
    rows: Rows,
    scorer: Scorer,
    labels: Sequence[str] | None,
) -> Problem:
    row = entries[0].row
    objective = scorer.objective
    declared = [Fidelity(**one) for one in _json(row["fidelities"] or "[]")] or [FULL]
    weights = [goal.weight for goal in objective.goals]
    baseline = _json(row["baseline"])
    optimum = _json(row["optimum"] or "null")
    cost: float | None = None
    if optimum is not None and len(objective.goals) == 1:
        cost = float(scorer.costs(_vector(optimum, scorer.metric_names)[None])[0, 0])
    nobody = np.zeros(len(entries), dtype=np.int64)
    return Problem(
        name=name,
        environment=row["environment"],
        workload=row["workload"],
        objective=objective,
        scorer=scorer,
        metrics=dataset.sidecar.metrics,
        space=dataset.sidecar.space,
        fixed=_json(row["fixed"]),
        settings=_json(row["settings"]),
        simulator=dataset.sidecar.simulator,
        baseline=scorer.values(_vector(baseline, scorer.metric_names)[None])[0],
        baseline_metrics=baseline,
        baseline_breaks=_broken(objective, dataset.sidecar.metrics, baseline),
        optimum=cost,
        trials=[entry.trial for entry in entries],
        ids=[
            (f"{labels[e.source]}: " if labels is not None else "") + e.trial.trial_id
            for e in entries
        ],
        states=[_state(entry) for entry in entries],
        searcher=nobody,
        setting=nobody,
        measures=measure(rows, len(entries), declared, weights, _wall_s(entries)),
    )


def _state(entry: _Entry) -> str:
    """Of the dataset; that an error ended a trial, its log says."""
    state = str(entry.row["state"])
    failed = entry.end is not None and entry.end.state == "failed" and state != "finished"
    return "failed" if failed else state


def _wall_s(entries: Sequence[_Entry]) -> NDArray[np.float64]:
    """Seconds that each trial took in all, NaN where nothing says, shape (n_trials,)."""
    return np.array([(e.end.wall_s if e.end is not None else 0.0) or np.nan for e in entries])


def _broken(
    objective: Objective, metrics: Sequence[Metric], baseline: Mapping[str, float | None]
) -> list[str]:
    """Limits that the baseline design breaks, each with the value that it has."""
    units = {metric.name: metric.unit for metric in metrics}
    return [
        f"{limit} (it has {baseline[limit.metric]:,.5g} {units[limit.metric]}".rstrip() + ")"
        for limit in objective.limits
        if limit.broken_by(baseline.get(limit.metric))
    ]


def _read_designs(problems: Sequence[Problem], snapshots: Sequence[Snapshot]) -> None:
    """Reads the designs that will be shown: the best, the fronts, and some that stand for all."""
    wanted: dict[int, Problem] = {}
    for problem in problems:
        full = problem.measures.full_rows
        problem.picked = np.unique(
            np.linspace(0, max(0, len(full) - 1), min(len(full), _MOST_PICKED)).astype(np.int64)
        )
        shown = np.concatenate([full[problem.picked], *_shown_rows(problem)])
        wanted |= dict.fromkeys(np.unique(shown).tolist(), problem)
    rows = np.array(sorted(wanted), dtype=np.int64)
    for place, snapshot in enumerate(snapshots):
        first = place * _ROWS_A_DATASET
        mine = rows[(rows >= first) & (rows < first + _ROWS_A_DATASET)] - first
        if not len(mine):
            continue
        keep = np.zeros(len(snapshot), dtype=bool)
        keep[mine] = True
        sidecar = snapshot.sidecar
        metrics = [metric.name for metric in sidecar.metrics]
        columns = [*design_columns(sidecar.space), *(f"metric.{name}" for name in metrics)]
        for block in snapshot.blocks(columns, keep):
            designs = read_designs(sidecar.space, block.table)
            values = [block.table[f"metric.{name}"].to_pylist() for name in metrics]
            for i, row in enumerate((block.rows + first).tolist()):
                found = {name: column[i] for name, column in zip(metrics, values, strict=True)}
                wanted[row].chosen[row] = Chosen(designs.codes[i], found)


def _shown_rows(problem: Problem) -> list[NDArray[np.int64]]:
    """Rows of the best design of each searcher, and of the non-dominated ones."""
    measures = problem.measures
    shown = []
    for searcher in np.unique(problem.searcher).tolist():
        mine = problem.trials_of(searcher)
        row = measures.best_row[mine[int(measures.best_cost[mine].argmin())]]
        shown.append(np.array([row] if row >= 0 else [], dtype=np.int64))
    if problem.several:
        shown.append(problem.front[0][:_MOST_FRONT])
    return shown


def _versions(entries: Sequence[_Entry]) -> dict[str, str]:
    found: dict[str, dict[str, None]] = {}
    for versions in dict.fromkeys(str(entry.row["versions"] or "{}") for entry in entries):
        for name, version in _json(versions).items():
            found.setdefault(name, {})[str(version)] = None
    commits = dict.fromkeys(str(e.row["commit"] or "")[:12] for e in entries)
    found["commit"] = {commit: None for commit in commits if commit}
    return {name: ", ".join(some) for name, some in found.items() if some}


def _vector(values: Mapping[str, float | None], names: Sequence[str]) -> NDArray[np.float64]:
    return np.array([np.nan if (v := values.get(name)) is None else v for name in names])


@functools.lru_cache(maxsize=4096)
def _json(text: str) -> Any:
    return json.loads(text)
