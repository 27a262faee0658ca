"""Whether a dataset is what it says: schema, ranges, rules, steps, duplicates, rewards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from archgym.data.dataset import Dataset
from archgym.data.designs import (
    NO_LEVEL,
    column_fingerprints,
    design_codes,
    design_fingerprints,
    mixed,
)
from archgym.data.files import provenance
from archgym.data.schema import TRIAL_FIELDS
from archgym.data.selection import Selection
from archgym.errors import ArchgymError
from archgym.problem.objective import Objective
from archgym.problem.scorer import Scorer
from archgym.problem.status import STATUS_OF, Status
from archgym.space import Designs, DesignSpace

__all__ = ["EXAMPLES", "Check", "validate"]

EXAMPLES = 10
"""Most problems of a check that are told one by one."""
_REWARD_TOLERANCE = 1e-9  # a machine's own exp and log


@dataclass
class Check:
    """One property of a dataset.

    Attributes:
        name: short name.
        what: what was looked at.
        wrong: how many problems there are.
        examples: the first of them, each with its trial and step.
    """

    name: str
    what: str
    wrong: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether there is no problem."""
        return not self.wrong

    def add(self, problem: str, times: int = 1) -> None:
        """Notes a problem."""
        self.wrong += times
        if len(self.examples) < EXAMPLES:
            self.examples.append(problem)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "name": self.name,
            "what": self.what,
            "passed": self.passed,
            "wrong": self.wrong,
            "examples": self.examples,
        }


def validate(dataset: Dataset) -> list[Check]:
    """Checks a dataset; reads it a block at a time, and keeps some 40 bytes a row.

    Raises:
        DatasetError: if it cannot be read at all.
    """
    files = Check("files", "Parquet files have the columns that the sidecar asks for")
    _check_files(dataset, files)
    if not files.passed:
        return [files]
    trials = _Trials(dataset)
    rows = _Rows(dataset, trials)
    for block in dataset.snapshot().blocks():
        rows.look(block.table)
    rows.finish(provenance(dataset)["whole_trials"])
    return [files, trials.check, *rows.checks]


def _check_files(dataset: Dataset, check: Check) -> None:
    for folder, schema in (
        ("evaluations", dataset.schema),
        ("trials", pa.schema(list(TRIAL_FIELDS.items()))),
    ):
        for path in sorted((dataset.directory / folder).glob("*.parquet")):
            try:
                found = pq.read_schema(path)
            except (OSError, pa.ArrowException) as error:
                check.add(f"{path.name} cannot be read: {error}")
                continue
            for expected in schema:
                if expected.name not in found.names:
                    if folder == "evaluations":  # trials may be of an older version
                        check.add(f"{folder}/{path.name} lacks column {expected.name}")
                elif found.field(expected.name).type != expected.type:
                    kind = found.field(expected.name).type
                    check.add(
                        f"{folder}/{path.name}: {expected.name} is {kind}, not {expected.type}"
                    )
            for name in found.names:
                if name not in schema.names:
                    check.add(f"{folder}/{path.name} has an unknown column {name}")


class _Trials:
    """The table of trials, read."""

    def __init__(self, dataset: Dataset) -> None:
        self.check = Check("trials", "each trial can be read, and each evaluation has one")
        self.rows = {row["trial_id"]: row for row in dataset.trials().to_pylist()}
        self.scorers: dict[str, Scorer] = {}
        self.fixed: dict[str, dict[str, int]] = {}
        space, metrics = dataset.sidecar.space, dataset.sidecar.metrics
        for trial_id, row in self.rows.items():
            try:
                for name in ("settings", "hyperparameters", "versions"):
                    json.loads(row[name])
                baseline = json.loads(row["baseline"])
                values = [baseline.get(metric.name) for metric in metrics]
                self.scorers[trial_id] = Scorer(
                    Objective.parse(json.loads(row["objective"])),
                    metrics,
                    np.array([np.nan if value is None else value for value in values]),
                )
                fixed = json.loads(row["fixed"])
                self.fixed[trial_id] = {n: space[n].code(v) for n, v in fixed.items()}
            except (ArchgymError, ValueError, TypeError, AttributeError) as error:
                self.check.add(f"trial {trial_id}: {error}")


class _Rows:
    """Looks at all rows, a block at a time."""

    def __init__(self, dataset: Dataset, trials: _Trials) -> None:
        self._dataset, self._trials = dataset, trials
        self._space: DesignSpace = dataset.sidecar.space
        self._metrics = dataset.sidecar.metrics
        made = {
            "designs": "every value is a level of its parameter, active exactly when it acts",
            "rules": "designs keep the rules and fixed values, unless their status is illegal",
            "metrics": "finite, not below zero unless signed, and there exactly for status ok",
            "outcomes": "status, feasible, reason and reward go together",
            "rewards": "follow from metrics, objective and baseline",
            "steps": "of each trial are 0, 1, 2, ..., each once and in order",
            "duplicates": "a design evaluated again by a trial is marked as cached, and only then",
            "agreement": "the same design under the same conditions has the same metrics",
        }
        self._by_name = {name: Check(name, what) for name, what in made.items()}
        self._numbers: dict[str, int] = {}
        self._kept: dict[str, list[NDArray[Any]]] = {
            name: [] for name in ("trial", "step", "design", "result", "status", "cached")
        }

    @property
    def checks(self) -> list[Check]:
        return list(self._by_name.values())

    def look(self, table: pa.Table) -> None:
        """Checks rows by themselves, and keeps what is needed to compare them."""
        ids = table["trial_id"].combine_chunks()
        names = ids.dictionary.to_pylist()
        for name in sorted({names[i] for i in np.unique(ids.indices.to_numpy())}):
            if name not in self._trials.rows and name not in self._numbers:
                self._trials.check.add(f"trial {name} has evaluations, but is not in the table")
            self._numbers.setdefault(name, len(self._numbers))
        trial = np.array([self._numbers.get(name, -1) for name in names], np.int32)[
            ids.indices.to_numpy()
        ]
        statuses = table["status"].combine_chunks()
        known = [STATUS_OF.get(s, -1) for s in statuses.dictionary.to_pylist()]
        status = np.array(known, dtype=np.int8)[statuses.indices.to_numpy()]
        steps = table["step"].to_numpy()
        where = _Where(table)
        self._look_at_designs(table, trial, status, where)
        values = np.column_stack([table[f"metric.{m.name}"].to_numpy() for m in self._metrics])
        self._look_at_metrics(table, values.astype(np.float64), status, where)
        self._look_at_outcomes(table, status, where)
        self._look_at_rewards(table, values.astype(np.float64), status, trial, where)
        results = column_fingerprints(
            table.select([*(f"metric.{m.name}" for m in self._metrics), "status"])
        )
        design = mixed(
            design_fingerprints(self._space, table)
            ^ column_fingerprints(table.select(["fidelity"]))
        )
        cached = table["cached"].to_numpy().astype(bool)
        parts = (trial, steps.astype(np.int64), design, results, status, cached)
        for kept, part in zip(self._kept.values(), parts, strict=True):
            kept.append(part)

    def _look_at_designs(
        self, table: pa.Table, trial: NDArray[Any], status: NDArray[Any], where: _Where
    ) -> None:
        space, check = self._space, self._by_name["designs"]
        codes = design_codes(space, table, no_level=True)
        wrong = codes == NO_LEVEL
        for position, name in enumerate(space.names):
            for row, times in _first(wrong[:, position]):
                value = table[f"param.{name}"][row].as_py()
                check.add(f"{where(row)}: {name} cannot be {value!r}: {space[name].range}", times)
        sound = ~wrong.any(axis=1)
        codes[~sound] = 0
        canonical = space.canonicalise(np.maximum(codes, 0)).codes
        for position, name in enumerate(space.names):
            active, there = canonical[:, position] >= 0, codes[:, position] >= 0
            for row, times in _first(sound & there & ~active):
                check.add(f"{where(row)}: {name} has a value, but does not act", times)
            for row, times in _first(sound & ~there & active):
                check.add(f"{where(row)}: {name} acts, but has no value", times)
        whole = sound & ((codes >= 0) == (canonical >= 0)).all(axis=1)
        check = self._by_name["rules"]
        broken = space.first_broken_rule(Designs(space, canonical))
        for row, times in _first(whole & (broken >= 0) & (status != Status.ILLEGAL)):
            rule = space.rules[int(broken[row])]
            check.add(f"{where(row)}: breaks rule {rule.name!r}, but is not illegal", times)
        for trial_id, fixed in self._trials.fixed.items():
            if fixed and trial_id in self._numbers:
                mine = whole & (trial == self._numbers[trial_id]) & (status != Status.ILLEGAL)
                for name, code in fixed.items():
                    column = codes[:, space.index(name)]
                    for row, times in _first(mine & (column >= 0) & (column != code)):
                        held = space[name].value(code)
                        check.add(f"{where(row)}: {name} is not {held!r}, as fixed", times)

    def _look_at_metrics(
        self, table: pa.Table, values: NDArray[np.float64], status: NDArray[Any], where: _Where
    ) -> None:
        check, ok = self._by_name["metrics"], status == Status.OK
        nothing = np.ones(len(ok), dtype=bool)
        for number, metric in enumerate(self._metrics):
            column = values[:, number]
            there = table[f"metric.{metric.name}"].is_valid().to_numpy().astype(bool)
            nothing &= ~there
            for row, times in _first(there & ~np.isfinite(column)):
                check.add(f"{where(row)}: {metric.name} is {column[row]}", times)
            if not metric.signed:
                for row, times in _first(there & (column < 0)):
                    check.add(f"{where(row)}: {metric.name} is {column[row]:g}, below zero", times)
            for row, times in _first(there & ~ok):
                name = Status(status[row]).label if status[row] >= 0 else "unknown"
                check.add(f"{where(row)}: has {metric.name}, with status {name}", times)
        for row, times in _first(ok & nothing):
            check.add(f"{where(row)}: status ok, but no metric at all", times)

    def _look_at_outcomes(self, table: pa.Table, status: NDArray[Any], where: _Where) -> None:
        check = self._by_name["outcomes"]
        reward = table["reward"].to_numpy().astype(np.float64)
        feasible = table["feasible"].to_numpy().astype(bool)
        reasons = table["reason"].combine_chunks()
        empty = np.array([not text for text in [*reasons.dictionary.to_pylist(), None]])
        silent = empty[reasons.indices.fill_null(len(empty) - 1).to_numpy()]
        for wrong, text in (
            (status < 0, "an unknown status"),
            (~((reward >= -1) & (reward <= 1)), "a reward outside [-1, 1]"),
            (feasible & (status != Status.OK), "feasible, though its status is not ok"),
            ((status != Status.OK) & (reward != -1), "a reward other than -1, though not ok"),
            (feasible & (reward < 0), "feasible, with a reward below 0"),
            (~feasible & silent, "not feasible, without a reason"),
            (feasible & ~silent, "feasible, with a reason against it"),
        ):
            for row, times in _first(wrong):
                check.add(f"{where(row)}: {text}", times)

    def _look_at_rewards(
        self,
        table: pa.Table,
        values: NDArray[np.float64],
        status: NDArray[Any],
        trial: NDArray[Any],
        where: _Where,
    ) -> None:
        check, rewards = self._by_name["rewards"], table["reward"].to_numpy()
        for trial_id in sorted({where.trial(int(i)) for i in _one_of_each(trial)}):
            scorer = self._trials.scorers.get(trial_id)
            mine = np.flatnonzero((trial == self._numbers[trial_id]) & (status == Status.OK))
            if scorer is None or not len(mine):
                continue
            part = values[mine]
            names = [metric.name for metric in self._metrics]
            asked = [names.index(name) for name in scorer.objective.metric_names()]
            legible = np.isfinite(part[:, asked]).all(axis=1)
            mine, part = mine[legible], part[legible]
            expected = scorer.rewards(scorer.costs(part), scorer.violations(part))
            off = ~np.isclose(rewards[mine], expected, rtol=_REWARD_TOLERANCE, atol=1e-15)
            for i, times in _first(off):
                row = int(mine[i])
                text = f"reward is {float(rewards[row])!r}, but follows as {float(expected[i])!r}"
                check.add(f"{where(row)}: {text}", times)

    def finish(self, whole_trials: bool) -> None:
        """Compares rows with each other."""
        kept = {name: np.concatenate(parts) for name, parts in self._kept.items() if parts}
        self._kept.clear()
        if not kept:
            return
        names = list(self._numbers)
        self._compare_steps(kept["trial"], kept["step"], names, whole_trials)
        order = np.lexsort((kept["step"], kept["design"], kept["trial"]))
        ordered = {name: column[order] for name, column in kept.items()}
        self._compare_repeats(ordered, names, whole_trials)
        del order, ordered
        self._compare_results(kept, names)

    def _compare_steps(
        self, trial: NDArray[Any], step: NDArray[Any], names: Sequence[str], whole: bool
    ) -> None:
        check = self._by_name["steps"]
        order = np.lexsort((np.arange(len(step)), step, trial))
        t, s = trial[order], step[order]
        follows = t[1:] == t[:-1]
        for row, times in _first(follows & (s[1:] == s[:-1])):
            check.add(f"trial {names[t[row]]}, step {s[row]} is there twice", times)
        # In the order in which they are stored; a trial's rows need not be side by side.
        by_trial = np.argsort(trial, kind="stable")
        t2, s2 = trial[by_trial], step[by_trial]
        back = (t2[1:] == t2[:-1]) & (s2[1:] < s2[:-1])
        for row, times in _first(back):
            text = f"step {s2[row + 1]} is stored after step {s2[row]}"
            check.add(f"trial {names[t2[row]]}: {text}", times)
        for row, times in _first(s < 0):
            check.add(f"trial {names[t[row]]}: step {s[row]} is below 0", times)
        if not whole:
            check.what = "of each trial are each once and in order (rows were left out)"
            return
        first = np.concatenate([[True], ~follows])
        for row, times in _first(first & (s > 0)):
            check.add(f"trial {names[t[row]]} begins with step {s[row]}, not 0", times)
        for row, times in _first(follows & (s[1:] > s[:-1] + 1)):
            check.add(f"trial {names[t[row]]}: after step {s[row]} comes {s[row + 1]}", times)

    def _compare_repeats(
        self, rows: dict[str, NDArray[Any]], names: Sequence[str], whole: bool
    ) -> None:
        check = self._by_name["duplicates"]
        t, d, s, c = rows["trial"], rows["design"], rows["step"], rows["cached"]
        known = rows["status"] != Status.ILLEGAL  # a design that breaks a rule is refused each time
        again = np.concatenate([[False], (t[1:] == t[:-1]) & (d[1:] == d[:-1])])
        for row, times in _first(again & known & ~c):
            text = f"step {s[row]} repeats the design of step {s[row - 1]}, but is not cached"
            check.add(f"trial {names[t[row]]}: {text}", times)
        if whole:
            # A forked process goes on with a trial of its own, and knows what its parent knew.
            parents = [name.rpartition("-")[0] for name in names]
            own = np.array([parent not in self._numbers for parent in parents], dtype=bool)
            for row, times in _first(~again & c & own[t]):
                text = f"step {s[row]} is cached, but no earlier step has its design"
                check.add(f"trial {names[t[row]]}: {text}", times)

    def _compare_results(self, rows: dict[str, NDArray[Any]], names: Sequence[str]) -> None:
        check = self._by_name["agreement"]
        conditions = Selection(self._dataset).conditions_of_trials
        of_trial = np.array([conditions.get(name, np.uint64(0)) for name in names], np.uint64)
        with np.errstate(over="ignore"):
            keys = mixed(rows["design"] ^ mixed(of_trial[rows["trial"]]))
        # A failure may be the machine's, and what is illegal depends on what is fixed.
        keys = np.where(rows["status"] == Status.OK, keys, np.uint64(0))
        order = np.lexsort((rows["result"], keys))
        k, r = keys[order], rows["result"][order]
        differs = (k[1:] == k[:-1]) & (r[1:] != r[:-1]) & (k[1:] != 0)
        for row, times in _first(differs):
            pair = [
                f"trial {names[rows['trial'][i]]}, step {rows['step'][i]}"
                for i in order[row : row + 2]
            ]
            check.add(f"{' and '.join(pair)} have the same design, but other metrics", times)


class _Where:
    """Says of a row which one it is."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def trial(self, row: int) -> str:
        return str(self._table["trial_id"][row].as_py())

    def __call__(self, row: int) -> str:
        return f"trial {self.trial(row)}, step {self._table['step'][row].as_py()}"


def _first(wrong: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """The first rows that are wrong; the last one stands for the rest."""
    rows = np.flatnonzero(wrong)
    for number, row in enumerate(rows[:EXAMPLES].tolist()):
        last = number == EXAMPLES - 1
        yield row, len(rows) - EXAMPLES + 1 if last else 1


def _one_of_each(numbers: NDArray[Any]) -> NDArray[Any]:
    return np.unique(numbers, return_index=True)[1]
