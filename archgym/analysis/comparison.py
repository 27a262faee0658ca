"""Comparison of a run's agents: luck with hyperparameters and seeds, and significance.

==================  =============================================================================
``lottery``         a row a setting and agent: spread over hyperparameters and seeds, chance of
                    reaching the optimum
``efficiency``      a row a setting, agent and number of evaluations
``significance``    a row a setting and pair of agents; setting ``""`` is over all settings
==================  =============================================================================

The score of a trial, less is better, is its regret where the optimum is known, else the value of
its goal, minimised, and with several goals the hypervolume, negated. A trial that found nothing
feasible scores infinity.

The unit of independence is the seed: the trials of an agent with one seed and several sets of
hyperparameters share their luck. Mann-Whitney tests compare the mean ranks of seeds, and the
interval of the chance to reach the optimum counts what varies between seeds; both hold for these
sets of hyperparameters and not for others. ``a12`` is of trials. The unit of the tests over all
settings is the setting.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from archgym.analysis.measures import WITHIN
from archgym.analysis.statistics import compare, holm, mann_whitney, quantiles, share_interval
from archgym.data.parts import write_parquet
from archgym.data.schema import columns

_POINTS = 40
_COLUMNS = ("trial_id", "setting", "agent", "agent_label", "seed", "budget", "state", "goals")
_MEASURED = ("best", "regret", "hypervolume", "hit_at")
_Trials = list[dict[str, Any]]
"""Rows of ``trials.parquet``, each with its score, the measure of it, whether it is a hit, and the
sign that makes values of its first goal smaller-is-better."""
_Groups = dict[str, dict[str, _Trials]]
_Curves = dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]
"""The trials of each agent, by setting."""

_LOTTERY = columns(
    (pa.string(), "setting agent measure"),
    (pa.int64(), "trials labels seeds"),
    (pa.float64(), "best q25 median q75 worst"),
    (pa.string(), "best_label"),
    (pa.float64(), "best_label_median"),
    (pa.string(), "worst_label"),
    (pa.float64(), "worst_label_median"),
    (pa.list_(pa.float64()), "label_medians"),
    (pa.float64(), "hyperparameter_share p_optimum p_optimum_low p_optimum_high"),
    (pa.float64(), "best_label_p_optimum worst_label_p_optimum evaluations_median"),
)
_EFFICIENCY = columns(
    (pa.string(), "setting agent"),
    (pa.int64(), "evaluations"),
    (pa.float64(), "q25 median q75 p_optimum"),
)
_SIGNIFICANCE = columns(
    (pa.string(), "setting agent_a agent_b test"),
    (pa.int64(), "n_a n_b units_a units_b"),
    (pa.float64(), "median_a median_b a12 p_value p_holm"),
)


def write_comparisons(folder: Path) -> None:
    """Writes the three tables beside ``trials.parquet`` and ``curves.parquet``.

    Trials that did not finish are left out. Nothing is written for a run of one agent.

    Args:
        folder: of the tables.
    """
    trials = _scored(folder)
    if len({trial["agent"] for trial in trials}) < 2:
        return
    groups: _Groups = {}
    for trial in trials:
        groups.setdefault(trial["setting"], {}).setdefault(trial["agent"], []).append(trial)
    rows = [
        _lottery_row(s, a, found) for s, agents in groups.items() for a, found in agents.items()
    ]
    tests = [row for setting, agents in groups.items() for row in _pairs(setting, agents)]
    for name, schema, table in (
        ("lottery", _LOTTERY, rows),
        ("efficiency", _EFFICIENCY, list(_efficiency(folder, groups))),
        ("significance", _SIGNIFICANCE, tests + _over_settings(groups)),
    ):
        write_parquet(folder / f"{name}.parquet", schema, [pa.Table.from_pylist(table, schema)])


def variance_share(scores: NDArray[np.float64], labels: Sequence[str]) -> float | None:
    """Share of the variance of ranks that the labels explain; the rest is luck with seeds.

    ``None`` with fewer than two labels, or no variance.
    """
    from scipy.stats import rankdata

    ranks, names = rankdata(scores), np.array(labels)
    total = float(((ranks - ranks.mean()) ** 2).sum())
    kinds = [ranks[names == kind] for kind in np.unique(names)]
    if len(kinds) < 2 or total == 0:
        return None
    return sum(len(some) * float(some.mean() - ranks.mean()) ** 2 for some in kinds) / total


def _scored(folder: Path) -> _Trials:
    """Finished trials with a score, its measure and whether they reached the optimum."""
    settings: dict[str, Any] = json.loads((folder / "summary.json").read_text("utf-8"))["settings"]
    trials = pq.read_table(folder / "trials.parquet", columns=[*_COLUMNS, *_MEASURED]).to_pylist()
    found = []
    for trial in trials:
        if trial["state"] != "finished" or not trial["goals"]:
            continue
        largest = settings[trial["setting"]]["goals"][0]["direction"] == "maximize"
        sign = -1.0 if largest else 1.0
        if len(trial["goals"]) > 1:
            score, measure = -(trial["hypervolume"] or 0.0), "hypervolume"
        elif trial["regret"] is not None:
            score, measure = trial["regret"], "regret"
        else:
            value, measure = trial["best"][0], trial["goals"][0]
            score = math.inf if value is None else sign * value
        hit = trial["regret"] is not None and trial["regret"] <= WITHIN
        found.append({**trial, "score": score, "measure": measure, "hit": hit, "sign": sign})
    return found


def _lottery_row(setting: str, agent: str, trials: _Trials) -> dict[str, Any]:
    scores = _scores(trials)
    by_label: dict[str, _Trials] = {}
    for trial in trials:
        by_label.setdefault(trial["agent_label"], []).append(trial)
    medians = {label: _median(_scores(some)) for label, some in by_label.items()}
    best, worst = (choose(medians, key=lambda k: medians[k]) for choose in (min, max))
    shares = [sum(t["hit"] for t in some) / len(some) for some in by_label.values()]
    known = trials[0]["measure"] == "regret"
    share = share_interval(np.array([trial["hit"] for trial in trials]), _seeds(trials))
    middle = _median([math.inf if t["hit_at"] is None else t["hit_at"] for t in trials])
    return {
        "setting": setting,
        "agent": agent,
        "measure": trials[0]["measure"],
        "trials": len(trials),
        "labels": len(by_label),
        "seeds": len(np.unique(_seeds(trials))),
        "best": float(scores.min()),
        **_quartiles(scores),
        "worst": float(scores.max()),
        "best_label": best,
        "best_label_median": medians[best],
        "worst_label": worst,
        "worst_label_median": medians[worst],
        "label_medians": list(medians.values()),
        "hyperparameter_share": variance_share(scores, [t["agent_label"] for t in trials]),
        "p_optimum": share.value if known else None,
        "p_optimum_low": share.low if known else None,
        "p_optimum_high": share.high if known else None,
        "best_label_p_optimum": max(shares) if known else None,
        "worst_label_p_optimum": min(shares) if known else None,
        "evaluations_median": middle if known and middle < math.inf else None,
    }


def _last(curves: _Curves, trial: Mapping[str, Any]) -> float:
    """Where the curve of a trial ends, which had hours as its budget."""
    return float(curves[trial["trial_id"]][0][-1]) if trial["trial_id"] in curves else 1.0


def _efficiency(folder: Path, groups: _Groups) -> Iterator[dict[str, Any]]:
    """Scores after some numbers of evaluations; none with several goals."""
    names = {t["trial_id"] for agents in groups.values() for ts in agents.values() for t in ts}
    curves: _Curves = {}
    columns = ["trial_id", "goal", "spent", "value", "regret"]
    with pq.ParquetFile(folder / "curves.parquet") as file:
        for batch in file.iter_batches(columns=columns):
            for row in batch.to_pylist():
                if row["trial_id"] in names and row["goal"] == 0:
                    values = row["regret"] if row["regret"] is not None else row["value"]
                    curves[row["trial_id"]] = (np.array(row["spent"]), np.array(values))
    for setting, agents in groups.items():
        for agent, trials in agents.items():
            if trials[0]["measure"] == "hypervolume":
                continue
            known = trials[0]["measure"] == "regret"
            sign = 1.0 if known else trials[0]["sign"]
            budget = max(trial["budget"] or _last(curves, trial) for trial in trials)
            grid = np.unique(np.geomspace(1, budget, _POINTS).round().astype(int))
            table = np.full((len(trials), len(grid)), np.inf)
            for row, trial in zip(table, trials, strict=True):
                if trial["trial_id"] in curves:
                    spent, values = curves[trial["trial_id"]]
                    at = np.searchsorted(spent, grid, side="right") - 1
                    row[at >= 0] = sign * values[at[at >= 0]]
            for column, evaluations in zip(table.T, grid.tolist(), strict=True):
                yield {
                    "setting": setting,
                    "agent": agent,
                    "evaluations": evaluations,
                    **_quartiles(column),
                    "p_optimum": float((column <= WITHIN).mean()) if known else None,
                }


def _pairs(setting: str, agents: dict[str, _Trials]) -> list[dict[str, Any]]:
    """Every pair of agents on one setting."""
    rows = []
    for a, b in itertools.combinations(agents, 2):
        one, two = _scores(agents[a]), _scores(agents[b])
        units = _seeds(agents[a]), _seeds(agents[b])
        tested = "Mann-Whitney U", *compare(one, two, units)
        sizes = [len(np.unique(some)) for some in units]
        row = _test(setting, (a, b), tested, [len(one), len(two)], sizes)
        rows.append({**row, "median_a": _median(one), "median_b": _median(two)})
    return _adjusted(rows)


def _over_settings(groups: _Groups) -> list[dict[str, Any]]:
    """Every pair of agents over the settings that both searched, by their chances to be better.

    Scores of different settings have different scales, so ranks within each are compared, and
    there are no medians.
    """
    from scipy.stats import wilcoxon

    agents = list(dict.fromkeys(agent for found in groups.values() for agent in found))
    rows = []
    for a, b in itertools.combinations(agents, 2):
        both = [(_scores(g[a]), _scores(g[b])) for g in groups.values() if a in g and b in g]
        if len(both) < 3:
            continue
        chances = np.array([mann_whitney(one, two)[1] for one, two in both])
        p_value = 1.0 if (chances == 0.5).all() else float(wilcoxon(chances - 0.5).pvalue)
        tested = "Wilcoxon signed-rank", p_value, float(chances.mean())
        rows.append(_test("", (a, b), tested, [len(both)] * 2, [len(both)] * 2))
    return _adjusted(rows)


def _test(
    setting: str,
    agents: tuple[str, str],
    tested: tuple[str, float, float],
    sizes: Sequence[int],
    units: Sequence[int],
) -> dict[str, Any]:
    """A row of ``significance`` without medians; ``tested`` is the test, its p and A."""
    row: dict[str, Any] = dict(zip(("test", "p_value", "a12"), tested, strict=True))
    for side, agent, size, number in zip("ab", agents, sizes, units, strict=True):
        own = {"agent": agent, "n": size, "units": number}
        row |= {f"{name}_{side}": value for name, value in own.items()}
    return {"setting": setting, **row}


def _adjusted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for row, p_value in zip(rows, holm([row["p_value"] for row in rows]), strict=True):
        row["p_holm"] = p_value
    return rows


def _quartiles(scores: NDArray[np.float64]) -> dict[str, float]:
    found = quantiles(scores, (0.25, 0.5, 0.75)).tolist()
    return dict(zip(("q25", "median", "q75"), found, strict=True))


def _scores(trials: _Trials) -> NDArray[np.float64]:
    return np.array([trial["score"] for trial in trials], dtype=np.float64)


def _seeds(trials: _Trials) -> NDArray[np.int64]:
    return np.array([trial["seed"] for trial in trials], dtype=np.int64)


def _median(values: Sequence[float] | NDArray[np.float64]) -> float:
    return float(quantiles(values, [0.5])[0])
