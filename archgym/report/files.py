"""The data of a report as Parquet: everything that the page shows thinned, in full."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from archgym.analysis.measures import COUNTS
from archgym.analysis.study import Study
from archgym.data.dataset import write_parquet
from archgym.problem.goals import natural

__all__ = ["write_data"]


def write_data(study: Study, page: Path) -> list[dict[str, str]]:
    """Writes the trials and all their improvements beside a page.

    Args:
        study: what is reported.
        page: the HTML file; the data go into a folder that is called after it.

    Returns:
        A link to each file, relative to the page: ``href``, ``text`` and ``what``.

    Raises:
        DatasetError: if a file cannot be written.
    """
    folder = page.with_name(f"{page.stem}_data")
    trials, steps = _trials(study), _steps(study)
    write_parquet(folder / "trials.parquet", trials.schema, [trials])
    write_parquet(folder / "improvements.parquet", steps.schema, [steps])
    links = [
        _link(
            folder / "trials.parquet", page, f"{trials.num_rows:,} rows, what each trial came to"
        ),
        _link(
            folder / "improvements.parquet",
            page,
            f"{steps.num_rows:,} rows, every step at which a trial got better: the curves in full",
        ),
    ]
    for source in study.folders:
        what = "the run or dataset itself, with every evaluation as Parquet"
        links.append(_link(source, page, what))
    return links


def _link(path: Path, page: Path, what: str) -> dict[str, str]:
    relative = os.path.relpath(path.resolve(), page.resolve().parent)
    return {
        "href": quote(Path(relative).as_posix()),
        "text": "its folder" if relative == "." else relative,
        "what": what,
    }


def _trials(study: Study) -> pa.Table:
    columns: dict[str, list[Any]] = {}

    def add(name: str, values: Any) -> None:
        columns.setdefault(name, []).extend(values)

    for problem in study.problems:
        measures, n = problem.measures, len(problem.ids)
        add("problem", [problem.name] * n)
        add("trial_id", problem.ids)
        add("agent", [trial.agent for trial in problem.trials])
        add("shown_as", [study.searchers[i].name for i in problem.searcher.tolist()])
        add("hyperparameters", [json.dumps(trial.hyperparameters) for trial in problem.trials])
        add("seed", [trial.seed for trial in problem.trials])
        add("state", problem.states)
        for i, name in enumerate(COUNTS):
            add(f"{name}_count", measures.counts[:, i].tolist())
        add("spent", measures.spent.tolist())
        for name in ("simulation_s", "agent_s", "framework_s", "best_at"):
            add(name, getattr(measures, name).tolist())
        natural = [problem.natural_score(v) for v in problem.score.tolist()]
        add("score_name", [problem.score_name] * n)
        add("score", [v if np.isfinite(v) else None for v in natural])
        regret = problem.regret(measures.best_cost)
        known = np.isfinite(regret) & (not problem.several)
        add("regret", [v if k else None for v, k in zip(regret.tolist(), known, strict=True)])
        add("optimum_known", [problem.exact] * n)
    return pa.table(columns)


def _steps(study: Study) -> pa.Table:
    tables = []
    for problem in study.problems:
        measures = problem.measures
        for i, goal in enumerate(problem.objective.goals):
            names = pa.array(problem.ids)
            tables.append(
                pa.table(
                    {
                        "problem": pa.array(
                            [problem.name] * len(measures.event_trial), pa.string()
                        ),
                        "trial_id": names.take(pa.array(measures.event_trial)).cast(pa.string()),
                        "goal": pa.array([goal.name] * len(measures.event_trial), pa.string()),
                        "spent": measures.event_spent,
                        "seconds": measures.event_s,
                        "best": natural(goal, problem.metrics, measures.event_values[:, i]),
                    }
                )
            )
    return pa.concat_tables(tables)
