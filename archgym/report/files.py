"""The data of a report as Parquet: in full what the page shows thinned."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from archgym.analysis.measures import COUNTS
from archgym.analysis.study import Study
from archgym.data.parts import write_parquet
from archgym.errors import check_received


def write_data(study: Study, page: Path) -> list[dict[str, str]]:
    """Writes the trials and all their improvements beside a page.

    Args:
        study: what is reported.
        page: the HTML file; the data are in a folder with its name.

    Returns:
        A link to each file, relative to the page: ``href``, ``text`` and ``what``.

    Raises:
        DatasetError: if a file cannot be written.
    """
    folder = page.with_name(f"{page.stem}_data")
    check_received(folder)
    links = []
    steps = "every step at which a trial got better: the curves in full"
    for name, tables, what in (
        ("trials", _trials(study), "the result of each trial"),
        ("improvements", _steps(study), steps),
    ):
        table, path = pa.concat_tables(tables), folder / f"{name}.parquet"
        write_parquet(path, table.schema, [table])
        links.append(_link(path, page, f"{table.num_rows:,} rows, {what}"))
    what = "the run or dataset itself, with every evaluation as Parquet"
    return [*links, *(_link(source, page, what) for source in study.folders)]


def _link(path: Path, page: Path, what: str) -> dict[str, str]:
    relative = os.path.relpath(path.resolve(), page.resolve().parent)
    return {
        "href": quote(Path(relative).as_posix()),
        "text": "its folder" if relative == "." else relative,
        "what": what,
    }


def _trials(study: Study) -> Iterator[pa.Table]:
    for problem in study.problems:
        measures, trials = problem.measures, problem.trials
        regret = problem.regret(measures.best_cost)
        yield pa.table(
            {
                "problem": [problem.name] * len(trials),
                "trial_id": problem.ids,
                "agent": [trial.agent for trial in trials],
                "shown_as": [study.searchers[i].name for i in problem.searcher.tolist()],
                "hyperparameters": [json.dumps(trial.hyperparameters) for trial in trials],
                "seed": [trial.seed for trial in trials],
                "state": [trial.state for trial in trials],
                **{f"{name}_count": measures.counts[:, i] for i, name in enumerate(COUNTS)},
                "spent": measures.spent,
                "simulation_s": measures.simulation_s,
                "agent_s": measures.agent_s,
                "framework_s": measures.framework_s,
                "best_at": measures.best_at,
                "score_name": [problem.score_name] * len(trials),
                "score": _known(problem.natural_scores(problem.score)),
                "regret": _known(np.full(len(trials), np.inf) if problem.several else regret),
                "optimum_known": [problem.exact] * len(trials),
            }
        )


def _known(values: NDArray[np.float64]) -> pa.Array:
    """Numbers with null for those that are not finite."""
    return pa.array(values, pa.float64(), mask=~np.isfinite(values))


def _steps(study: Study) -> Iterator[pa.Table]:
    for problem in study.problems:
        measures = problem.measures
        n = len(measures.event_trial)
        for i, goal in enumerate(problem.objective.goals):
            yield pa.table(
                {
                    "problem": pa.array([problem.name] * n, pa.string()),
                    "trial_id": pa.array(problem.ids, pa.string()).take(measures.event_trial),
                    "goal": pa.array([goal.name] * n, pa.string()),
                    "spent": measures.event_spent,
                    "seconds": measures.event_s,
                    "best": problem.natural(i, measures.event_values[:, i]),
                }
            )
