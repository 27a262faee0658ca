"""From folders to a study: one pass over the evaluations, one over the designs to be shown."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from archgym.analysis.dataset_rows import (
    Rows,
    fidelities_of,
    join,
    metric_vector,
    objective_of,
    parsed,
    read_rows,
    scorer_of,
)
from archgym.analysis.measures import measure, thinned
from archgym.analysis.problem_names import problem_names
from archgym.analysis.study import Chosen, Problem, Searcher, StudiedTrial, Study
from archgym.data import Dataset
from archgym.data.designs import design_columns, read_designs
from archgym.data.records import recorded_history
from archgym.data.snapshot import Snapshot
from archgym.errors import DatasetError, UnknownNameError
from archgym.experiment.folder.run_folder import RunFolder
from archgym.experiment.folder.trial_states import TrialEnd
from archgym.experiment.results.texts import agent_titles
from archgym.experiment.spec.expand import Trial
from archgym.history.kept import read_accounts
from archgym.problem.metrics import metric_named
from archgym.problem.scoring import Scorer
from archgym.report.source import Source, read_source

Grouping = Literal["auto", "agent", "hyperparameters"]
_MAX_SEARCHERS = 10
"""Sets of hyperparameters up to which ``auto`` shows each of them by itself."""
_MAX_PICKED = 2500
_MAX_FRONT = 3000
_ROWS_A_DATASET = 1 << 40
_KEY = ("environment", "settings", "workload", "workload_sha256", "fixed", "objective")


class _Entry(NamedTuple):
    """A trial that has evaluations.

    Attributes:
        source: index of the folder.
        dataset: index of the dataset among those of all folders.
        row: of the dataset's table of trials.
        trial: as the experiment has it.
        end: how it ended, if the run says so.
        key: what was searched: trials of one problem have the same.
        searcher: index of the searcher.
        setting: index of the set of hyperparameters.
    """

    source: int
    dataset: int
    row: Mapping[str, Any]
    trial: Trial
    end: TrialEnd | None
    key: tuple[str, ...]
    searcher: int
    setting: int


def read_study(
    folders: Sequence[str | Path],
    names: Sequence[str] = (),
    by: Grouping = "auto",
    *,
    compare: bool = False,
    agents: Sequence[str] = (),
) -> Study:
    """Reads all that a report needs.

    Args:
        folders: of runs or datasets.
        names: name of each in the report; by default that of its experiment.
        by: which trials are shown under one name: those of an ``agent``, whatever its
            hyperparameters, or those with the same ``hyperparameters``; ``auto`` decides by the
            number of sets of hyperparameters.
        compare: keep the folders' trials apart, to compare the first with the second.
        agents: only trials of these agents; all by default.

    Raises:
        UnknownNameError: if there is no such agent.
        ArchgymError: if a folder holds neither a run nor a dataset, or is damaged.
    """
    sources = [
        read_source(folder, name)
        for folder, name in zip(folders, names or [""] * len(folders), strict=True)
    ]
    sources = _of_agents(sources, agents)
    labels = _distinct_names(sources)
    titles = agent_titles([trial for source in sources for trial in source.trials.values()])
    by = by if by != "auto" else ("hyperparameters" if len(titles) <= _MAX_SEARCHERS else "agent")
    searchers, searcher_of = _searchers(sources, labels, titles, by, compare)
    datasets = [dataset for source in sources for dataset, _ in source.datasets]
    entries = _entries(sources, list(titles), searcher_of, compare)
    if not entries:
        raise DatasetError(f"{sources[0].path} holds no trial that has evaluated anything")
    prefixes = [f"{label}: " if compare else "" for label in labels]
    groups: dict[tuple[str, ...], list[_Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.key, []).append(entry)
    problems = _read_problems(list(groups.values()), datasets, searchers, sources, prefixes)
    failures = {
        (place, trial_id): (searcher_of[place, trial_id], end.error or "failed")
        for place, source in enumerate(sources)
        for trial_id, end in source.ends.items()
        if end.state == "failed" and trial_id in source.trials
    }
    began = {(entry.source, entry.trial.trial_id) for entry in entries}
    some = zip(groups.values(), problems, strict=True)
    of_setting = {(e.source, e.trial.setting): one for group, one in some for e in group}
    for (place, trial_id), (searcher, _) in failures.items():
        problem = of_setting.get((place, sources[place].trials[trial_id].setting))
        if (place, trial_id) not in began and problem is not None:
            problem.stillborn[searcher] += 1
    agent_of = {t.agent_label: t.agent for source in sources for t in source.trials.values()}
    return Study(
        name=" and ".join(labels),
        folders=[source.path for source in sources],
        problems=problems,
        searchers=searchers,
        settings=list(titles.values()),
        setting_agent=[agent_of[label] for label in titles],
        failures={prefixes[place] + trial_id: why for (place, trial_id), why in failures.items()},
        missing=sum(len(source.trials) for source in sources) - len(began),
        facts=[source.facts for source in sources],
        versions=_versions(entries),
        pooled=by == "agent" and len(titles) > len(searchers),
        compared=(labels[0], labels[1]) if compare else None,
    )


def _of_agents(sources: Sequence[Source], agents: Sequence[str]) -> list[Source]:
    """The folders with the trials of some agents only; of all if none is named."""
    if not agents:
        return list(sources)
    names = {name: name.rpartition(":")[2] for one in sources for name in _agents(one)}
    for name in agents:
        if name not in {*names, *names.values()}:
            raise UnknownNameError("agent of the run", name, names.values(), "--agent")
    found = []
    for source in sources:
        kept = {n: t for n, t in source.trials.items() if {t.agent, names[t.agent]} & {*agents}}
        rows = [
            (one, [row for row in some if row["trial_id"] in kept]) for one, some in source.datasets
        ]
        found.append(replace(source, trials=kept, datasets=rows))
    return found


def _agents(source: Source) -> list[str]:
    return list(dict.fromkeys(trial.agent for trial in source.trials.values()))


def _entries(
    sources: Sequence[Source],
    labels: Sequence[str],
    searcher_of: Mapping[tuple[int, str], int],
    compare: bool,
) -> list[_Entry]:
    """The trials that have evaluations, in the order of their experiments.

    Args:
        sources: the folders.
        labels: of sets of hyperparameters, in their order.
        searcher_of: index of the searcher by the index of a folder and the name of a trial in it.
        compare: whether searches of one problem stay together that learned from other history.
    """
    entries: list[_Entry] = []
    settings = {label: number for number, label in enumerate(labels)}
    numbers = itertools.count()
    for place, source in enumerate(sources):
        order = {trial_id: i for i, trial_id in enumerate(source.trials)}
        mine = []
        for dataset, rows in source.datasets:
            number = next(numbers)
            about = (dataset.sidecar.simulator["name"], str(dataset.sidecar.space.to_json()))
            for row in rows:
                trial = source.trials[row["trial_id"]]
                end, key = source.ends.get(trial.trial_id), tuple(str(row[n]) for n in _KEY)
                if not compare and (history := recorded_history(row["history"])) is not None:
                    key += (history.sha256,)
                known = searcher_of[place, trial.trial_id], settings[trial.agent_label]
                mine.append(_Entry(place, number, row, trial, end, key + about, *known))
        entries += sorted(mine, key=lambda entry: order[entry.trial.trial_id])
    return entries


def _distinct_names(sources: Sequence[Source]) -> list[str]:
    names = [source.name for source in sources]
    if len(set(names)) < len(names):
        names = [source.path.resolve().name for source in sources]
    if len(set(names)) < len(names):
        names = [f"{name} #{i + 1}" for i, name in enumerate(names)]
    return names


def _searchers(
    sources: Sequence[Source],
    labels: Sequence[str],
    titles: Mapping[str, str],
    by: Grouping,
    compare: bool,
) -> tuple[list[Searcher], dict[tuple[int, str], int]]:
    """The searchers in the order of the trials, and the index of that of each trial.

    Trials are by the index of their folder and their name.
    """
    searchers: list[Searcher] = []
    numbers: dict[tuple[int, str], int] = {}
    index_of: dict[tuple[int, str], int] = {}
    for place, source in enumerate(sources):
        for trial in source.trials.values():
            key, title = trial.agent, trial.agent.rpartition(":")[2]
            if by == "hyperparameters":
                key, title = trial.agent_label, titles[trial.agent_label]
            number = numbers.setdefault((place if compare else 0, key), len(searchers))
            index_of[place, trial.trial_id] = number
            if number == len(searchers):
                name = f"{title} ({labels[place]})" if compare else title
                searchers.append(Searcher(name, trial.agent, place, title))
    often = Counter((one.agent, one.source) for one in searchers)
    for number, one in enumerate(searchers):
        # An agent that both runs have with a single set of hyperparameters, not the same one.
        if compare and often[one.agent, 0] == often[one.agent, 1] == 1:
            searchers[number] = replace(one, pair=one.agent.rpartition(":")[2])
    return searchers, index_of


def _read_problems(
    groups: Sequence[Sequence[_Entry]],
    datasets: Sequence[Dataset],
    searchers: Sequence[Searcher],
    sources: Sequence[Source],
    prefixes: Sequence[str],
) -> list[Problem]:
    """The problem of each group of trials; its rows are dropped once all of them are read."""
    scorers = [_scorer(group[0], datasets[group[0].dataset]) for group in groups]
    places: list[dict[str, tuple[int, int]]] = [{} for _ in datasets]
    for number, group in enumerate(groups):
        for i, entry in enumerate(group):
            places[entry.dataset][entry.row["trial_id"]] = number, i
    held: list[list[Rows]] = [[] for _ in groups]
    problems: dict[int, Problem] = {}
    snapshots = []
    for place, dataset in enumerate(datasets):
        snapshots.append(dataset.snapshot())
        here = sorted({number for number, _ in places[place].values()})
        wanted = {number: scorers[number] for number in here}
        found = read_rows(snapshots[-1], places[place], wanted, place * _ROWS_A_DATASET)
        for number in here:
            held[number].append(found.pop(number))
            group = groups[number]
            if max(entry.dataset for entry in group) == place:
                rows, held[number] = join(held[number]), []
                made = _problem(group, dataset, rows, scorers[number], searchers, prefixes)
                setting, source = group[0].trial.setting, sources[group[0].source]
                made.name = setting if setting in source.named else ""
                made.history_accounts = [
                    str(one) for one in read_accounts(RunFolder(source.path).history_file(setting))
                ]
                problems[number] = made
    ordered = [problems[number] for number in range(len(groups))]
    for problem, name in zip(ordered, problem_names(ordered), strict=True):
        problem.name = name
    _read_designs(ordered, snapshots)
    return ordered


def _scorer(entry: _Entry, dataset: Dataset) -> Scorer:
    """Over the metrics that the objective names; the others need not be read."""
    names, metrics = objective_of(entry.row).metric_names(), dataset.sidecar.metrics
    return scorer_of(entry.row, [metric_named(name, metrics, "objective") for name in names])


def _problem(
    entries: Sequence[_Entry],
    dataset: Dataset,
    rows: Rows,
    scorer: Scorer,
    searchers: Sequence[Searcher],
    prefixes: Sequence[str],
) -> Problem:
    row, objective, sidecar = entries[0].row, scorer.objective, dataset.sidecar
    baseline, optimum = parsed(row["baseline"]), parsed(row["optimum"])
    units = {metric.name: metric.unit for metric in sidecar.metrics}
    breaks = [
        f"{limit} (it has {baseline[limit.metric]:,.5g} {units[limit.metric]}".rstrip() + ")"
        for limit in objective.limits
        if limit.broken_by(baseline.get(limit.metric))
    ]
    cost: float | None = None
    if optimum is not None and len(objective.goals) == 1:
        cost = float(scorer.costs(metric_vector(optimum, scorer.metric_names)[None])[0, 0])
    wall_s = np.array([(e.end.wall_s if e.end is not None else 0.0) or np.nan for e in entries])
    weights = [goal.weight for goal in objective.goals]
    return Problem(
        name="",
        environment=row["environment"],
        workload=row["workload"],
        objective=objective,
        scorer=scorer,
        metrics=sidecar.metrics,
        space=sidecar.space,
        fixed=parsed(row["fixed"]),
        settings=parsed(row["settings"]),
        simulator=sidecar.simulator,
        baseline=scorer.values(metric_vector(baseline, scorer.metric_names)[None])[0],
        baseline_metrics=baseline,
        baseline_breaks=breaks,
        optimum=cost,
        searcher=np.array([entry.searcher for entry in entries]),
        setting=np.array([entry.setting for entry in entries]),
        measures=measure(rows, len(entries), fidelities_of(row), weights, wall_s),
        trials=[_studied(entry, prefixes[entry.source]) for entry in entries],
        searchers=searchers,
    )


def _studied(entry: _Entry, prefix: str) -> StudiedTrial:
    """The trial as reports show it; that an error ended it, only the log says."""
    copied = ("environment", "arguments", "agent", "hyperparameters", "seed")
    failed = entry.end is not None and entry.end.state == "failed"
    return StudiedTrial(
        id=prefix + entry.trial.trial_id,
        **{name: getattr(entry.trial, name) for name in copied},
        state="failed" if failed and entry.row["state"] != "finished" else entry.row["state"],
        held_out=entry.end.held_out if entry.end is not None else None,
        history=recorded_history(entry.row["history"]),
    )


def _read_designs(problems: Sequence[Problem], snapshots: Sequence[Snapshot]) -> None:
    """Reads the designs to be shown: the best, the fronts, and some that represent all."""
    wanted: dict[int, Problem] = {}
    for problem in problems:
        full = problem.measures.full_rows
        problem.picked = thinned(len(full), _MAX_PICKED)
        best = [row for _, row in problem.best_trials if row >= 0]
        shown = np.concatenate([full[problem.picked], best, problem.front[0][:_MAX_FRONT]])
        wanted |= dict.fromkeys(np.unique(shown.astype(np.int64)).tolist(), problem)
    rows = np.array(sorted(wanted), dtype=np.int64)
    for place, snapshot in enumerate(snapshots):
        first = place * _ROWS_A_DATASET
        keep = np.zeros(len(snapshot), dtype=bool)
        keep[rows[(rows >= first) & (rows < first + _ROWS_A_DATASET)] - first] = True
        sidecar = snapshot.sidecar
        metrics = [metric.name for metric in sidecar.metrics]
        columns = [*design_columns(sidecar.space), *(f"metric.{name}" for name in metrics)]
        for block in snapshot.blocks(columns, keep):
            codes = read_designs(sidecar.space, block.table).codes
            values = zip(*(block.table[f"metric.{n}"].to_pylist() for n in metrics), strict=True)
            for row, mine, some in zip((block.rows + first).tolist(), codes, values, strict=True):
                wanted[row].chosen[row] = Chosen(mine, dict(zip(metrics, some, strict=True)))


def _versions(entries: Sequence[_Entry]) -> dict[str, str]:
    found: dict[str, dict[str, None]] = {}
    for versions in dict.fromkeys(entry.row["versions"] for entry in entries):
        for name, version in (parsed(versions) or {}).items():
            found.setdefault(name, {})[str(version)] = None
    commits = dict.fromkeys(str(e.row["commit"] or "")[:12] for e in entries)
    found["commit"] = {commit: None for commit in commits if commit}
    return {name: ", ".join(some) for name, some in found.items() if some}
