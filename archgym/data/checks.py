"""Checks of a dataset: its files, designs, rules, steps, duplicates and rewards."""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from archgym.data.dataset import Dataset
from archgym.data.designs import (
    NO_LEVEL,
    column_fingerprints,
    design_codes,
    design_fingerprints,
    looked_up,
    mixed,
)
from archgym.data.files import provenance
from archgym.data.journal import ends_oddly
from archgym.data.parts import missing_parts, problems_of_columns, problems_of_parts
from archgym.data.problems import scorer_of
from archgym.data.rows import condition_of
from archgym.errors import ArchgymError
from archgym.problem.scoring import Scorer
from archgym.problem.status import LABELS, STATUS_OF, Status
from archgym.space import Designs, DesignSpace

EXAMPLES = 10
"""Maximum number of problems that a check describes; the others are only counted."""
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

    def add(self, problem: str) -> None:
        """Notes a problem."""
        self.note(np.ones(1, dtype=bool), lambda _: problem)

    def note(self, wrong: NDArray[np.bool_], describe: Callable[[int], str]) -> None:
        """Counts the rows that are marked, and describes the first of them.

        Args:
            wrong: whether each row has the problem, shape (n,).
            describe: the problem of a row.
        """
        rows = np.flatnonzero(wrong)
        self.wrong += len(rows)
        self.examples += [describe(int(row)) for row in rows[: EXAMPLES - len(self.examples)]]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "passed": self.passed}


def validate(dataset: Dataset) -> list[Check]:
    """Checks a dataset; reads it a block at a time, and keeps some 40 bytes a row.

    Raises:
        DatasetError: if it cannot be read at all.
    """
    odd = problems_of_columns(dataset.directory, dataset.schema)
    what = "Parquet files have the columns that the sidecar asks for"
    files = Check("files", what, len(odd), odd[:EXAMPLES])
    lost = [*problems_of_parts(dataset.directory), *_odd_ends(dataset)]
    what = "no file is missing, or was changed"
    checksums = Check("checksums", what, len(lost), lost[:EXAMPLES])
    if not files.passed or missing_parts(dataset.directory):
        return [files, checksums]
    trials = _Trials(dataset)
    rows = _Rows(dataset, trials)
    for block in dataset.snapshot().blocks():
        rows.look(block.table)
    rows.finish(provenance(dataset)["whole_trials"])
    return [files, checksums, trials.check, *rows.checks]


def _odd_ends(dataset: Dataset) -> Iterator[str]:
    for path in sorted((dataset.directory / "journal").glob("*.jsonl")):
        if ends_oddly(path):
            yield f"journal/{path.name} ends in what is not the beginning of a line"


class _Trials:
    """The table of trials, read."""

    def __init__(self, dataset: Dataset) -> None:
        self.check = Check("trials", "each trial can be read, and each evaluation has one")
        self._dataset, self._read_again = dataset, False
        self.rows: dict[str, dict[str, Any]] = {}
        self.scorers: dict[str, Scorer] = {}
        self.fixed: dict[str, dict[str, int]] = {}
        self._add()

    def add_begun(self) -> None:
        """Adds trials that began after the table was read, which rows read later may be of."""
        if not self._read_again:
            self._read_again = True
            self._add(state="running")

    def _add(self, **known: str) -> None:
        """Adds the trials that are there now and were not before, with what is known of them."""
        table, problems = self._dataset.trials_with_problems()
        space, metrics = self._dataset.sidecar.space, self._dataset.sidecar.metrics
        new = (row for row in table.to_pylist() if row["trial_id"] not in self.rows)
        for row in new:
            trial_id = row["trial_id"]
            self.rows[trial_id] = {**row, **known}
            if trial_id in problems:
                self.check.add(f"trial {trial_id}: {problems[trial_id]}")
                continue
            try:
                self.scorers[trial_id] = scorer_of(row, metrics)
            except (ArchgymError, ValueError) as error:
                self.check.add(f"trial {trial_id}: {error}")
            fixed = json.loads(row["fixed"])
            self.fixed[trial_id] = {n: space[n].code(v) for n, v in fixed.items()}


@dataclass
class _Block:
    """Some rows of the table of evaluations, and columns of them as arrays, each (n,).

    Attributes:
        table: the rows.
        trial: number of each row's trial.
        status: index of each row's status, -1 for an unknown one.
        values: metrics, NaN where there are none, shape (n, n_metrics).
    """

    table: pa.Table
    trial: NDArray[np.int32]
    status: NDArray[np.int8]
    values: NDArray[np.float64]

    def trial_id(self, row: int) -> str:
        return str(self.table["trial_id"][row].as_py())

    def at(self, row: int) -> str:
        """The trial and step of a row."""
        return f"trial {self.trial_id(row)}, step {self.table['step'][row].as_py()}"

    def note(
        self, check: Check, wrong: NDArray[np.bool_], problem: str, *columns: NDArray[Any]
    ) -> None:
        """Notes a problem of the rows that are marked.

        Args:
            check: what is checked.
            wrong: whether each row has the problem, shape (n,).
            problem: what is wrong; its fields in braces take a row's values of the columns.
            columns: these columns, each (n,).
        """

        def describe(row: int) -> str:
            text = problem.format(*(column[row] for column in columns)) if columns else problem
            return f"{self.at(row)}: {text}"

        check.note(wrong, describe)


class _Rows:
    """Looks at all rows, a block at a time."""

    def __init__(self, dataset: Dataset, trials: _Trials) -> None:
        self._dataset, self._trials = dataset, trials
        self._space: DesignSpace = dataset.sidecar.space
        self._metrics = dataset.sidecar.metrics
        self._columns = [f"metric.{metric.name}" for metric in self._metrics]
        made = {
            "designs": "every value is a level of its parameter, active exactly when it acts",
            "rules": "designs keep the rules and fixed values, unless their status is illegal",
            "metrics": "finite, not below zero unless signed, and there exactly for status ok",
            "outcomes": "status, feasible, reason and reward go together",
            "rewards": "follow from metrics, objective and baseline",
            "steps": "of each trial are 0, 1, 2, ..., each once",
            "duplicates": "a design evaluated again by a trial is marked as cached, and only then",
            "agreement": "the same design under the same conditions has the same metrics",
        }
        self.checks = [Check(name, what) for name, what in made.items()]
        self._by_name = {check.name: check for check in self.checks}
        self._numbers: dict[str, int] = {}
        self._kept: list[dict[str, NDArray[Any]]] = []

    def look(self, table: pa.Table) -> None:
        """Checks rows by themselves, and keeps what is needed to compare them."""
        names = sorted(table["trial_id"].unique().to_pylist())
        if any(name not in self._trials.rows for name in names):
            self._trials.add_begun()
        for name in names:
            if name not in self._trials.rows and name not in self._numbers:
                self._trials.check.add(f"trial {name} has evaluations, but is not in the table")
            self._numbers.setdefault(name, len(self._numbers))
        block = _Block(
            table,
            looked_up(table["trial_id"], lambda name: self._numbers.get(name, -1), np.int32),
            looked_up(table["status"], lambda label: STATUS_OF.get(label, -1), np.int8),
            np.column_stack([table[name].to_numpy() for name in self._columns]).astype(np.float64),
        )
        self._look_at_designs(block)
        self._look_at_metrics(block)
        self._look_at_outcomes(block)
        self._look_at_rewards(block)
        conditions = column_fingerprints(table.select(["fidelity"]))
        self._kept.append(
            {
                "trial": block.trial,
                "step": table["step"].to_numpy().astype(np.int64),
                "design": mixed(design_fingerprints(self._space, table) ^ conditions),
                "result": column_fingerprints(table.select([*self._columns, "status"])),
                "status": block.status,
                "cached": table["cached"].to_numpy().astype(bool),
            }
        )

    def _look_at_designs(self, block: _Block) -> None:
        space, check, rules = self._space, self._by_name["designs"], self._by_name["rules"]
        codes = design_codes(space, block.table, no_level=True)
        wrong = codes == NO_LEVEL
        for position, name in enumerate(space.names):

            def describe(row: int, name: str = name) -> str:
                value = block.table[f"param.{name}"][row].as_py()
                return f"{block.at(row)}: {name} cannot be {value!r}: {space[name].range}"

            check.note(wrong[:, position], describe)
        sound = ~wrong.any(axis=1)
        codes[~sound] = 0
        canonical = space.canonicalise(np.maximum(codes, 0)).codes
        active, there = canonical >= 0, codes >= 0
        for position, name in enumerate(space.names):
            acts, given = active[:, position], there[:, position]
            block.note(check, sound & given & ~acts, f"{name} has a value, but does not act")
            block.note(check, sound & ~given & acts, f"{name} acts, but has no value")
        whole, legal = sound & (there == active).all(axis=1), block.status != Status.ILLEGAL
        broken = space.first_broken_rule(Designs(space, canonical))
        for number, rule in enumerate(space.rules):
            text = f"breaks rule {rule.name!r}, but is not illegal"
            block.note(rules, whole & (broken == number) & legal, text)
        for number, row in zip(*np.unique(block.trial, return_index=True), strict=True):
            for name, code in self._trials.fixed.get(block.trial_id(row), {}).items():
                mine = whole & (block.trial == number) & legal
                column = codes[:, space.index(name)]
                text = f"{name} is not {space[name].value(code)!r}, as fixed"
                block.note(rules, mine & (column >= 0) & (column != code), text)

    def _look_at_metrics(self, block: _Block) -> None:
        check, ok = self._by_name["metrics"], block.status == Status.OK
        nothing = np.ones(len(ok), dtype=bool)
        labels = np.array([*LABELS, "unknown"])[block.status]  # -1 is an unknown one
        for metric, column in zip(self._metrics, block.values.T, strict=True):
            there = block.table[f"metric.{metric.name}"].is_valid().to_numpy().astype(bool)
            nothing &= ~there
            name = metric.name
            block.note(check, there & ~np.isfinite(column), name + " is {}", column)
            below = there & (column < 0) & (not metric.signed)
            block.note(check, below, name + " is {:g}, below zero", column)
            block.note(check, there & ~ok, f"has {name}, with status {{}}", labels)
        block.note(check, ok & nothing, "status ok, but no metric at all")

    def _look_at_outcomes(self, block: _Block) -> None:
        check, table, status = self._by_name["outcomes"], block.table, block.status
        reward = table["reward"].to_numpy().astype(np.float64)
        feasible = table["feasible"].to_numpy().astype(bool)
        silent = looked_up(table["reason"], operator.not_, np.bool_)
        for wrong, text in (
            (status < 0, "an unknown status"),
            (~((reward >= -1) & (reward <= 1)), "a reward outside [-1, 1]"),
            (feasible & (status != Status.OK), "feasible, though its status is not ok"),
            (
                (status != Status.OK) & (status != Status.STOPPED) & (reward != -1),
                "a reward other than -1, though not ok",
            ),
            (feasible & (reward < 0), "feasible, with a reward below 0"),
            (~feasible & silent, "not feasible, without a reason"),
            (feasible & ~silent, "feasible, with a reason against it"),
        ):
            block.note(check, wrong, text)

    def _look_at_rewards(self, block: _Block) -> None:
        rewards, expected = block.table["reward"].to_numpy(), np.full(len(block.trial), np.nan)
        names = [metric.name for metric in self._metrics]
        first = np.unique(block.trial, return_index=True)[1].tolist()
        for trial_id in sorted({block.trial_id(row) for row in first}):
            scorer = self._trials.scorers.get(trial_id)
            if scorer is None:
                continue
            asked = [names.index(name) for name in scorer.objective.metric_names()]
            legible = np.isfinite(block.values[:, asked]).all(axis=1) & (block.status == Status.OK)
            mine = np.flatnonzero((block.trial == self._numbers[trial_id]) & legible)
            part = block.values[mine]
            expected[mine] = scorer.rewards(scorer.costs(part), scorer.violations(part))
        off = ~np.isclose(rewards, expected, rtol=_REWARD_TOLERANCE, atol=1e-15)
        text, wrong = "reward is {}, but follows as {}", off & ~np.isnan(expected)
        block.note(self._by_name["rewards"], wrong, text, rewards, expected)

    def finish(self, whole_trials: bool) -> None:
        """Compares rows with each other.

        Args:
            whole_trials: whether no row was left out of the trials.
        """
        if not self._kept:
            return
        kept = {name: np.concatenate([one[name] for one in self._kept]) for name in self._kept[0]}
        self._kept.clear()
        self._compare_steps(kept["trial"], kept["step"], whole_trials)
        order = np.lexsort((kept["step"], kept["design"], kept["trial"]))
        ordered = {name: column[order] for name, column in kept.items()}
        self._compare_repeats(ordered, whole_trials)
        del order, ordered
        self._compare_results(kept)

    def _note(
        self, check: str, wrong: NDArray[Any], trial: NDArray[Any], problem: str, *parts: Any
    ) -> None:
        """Notes a problem of rows; fields in braces in its text take a row's value of the parts."""
        names, text = list(self._numbers), ("trial {}" + problem).format
        self._by_name[check].note(
            wrong, lambda row: text(names[trial[row]], *(part[row] for part in parts))
        )

    def _compare_steps(self, trial: NDArray[Any], step: NDArray[Any], whole: bool) -> None:
        note = functools.partial(self._note, "steps")
        order = np.lexsort((np.arange(len(step)), step, trial))
        t, s = trial[order], step[order]
        follows = t[1:] == t[:-1]
        note(follows & (s[1:] == s[:-1]), t, ", step {} is there twice", s)
        note(s < 0, t, ": step {} is below 0", s)
        if not whole:
            what = "of each trial are each once (rows were left out)"
            self._by_name["steps"].what = what
            return
        # A batch whose simulations end in any order has gaps until all have ended.
        states = [self._trials.rows.get(name, {}).get("state") for name in self._numbers]
        over = np.array([state == "finished" for state in states], dtype=bool)[t]
        first = np.concatenate([[True], ~follows])
        note(first & over & (s > 0), t, " begins with step {}, not 0", s)
        gap = follows & (s[1:] > s[:-1] + 1)
        note(gap & over[1:], t, ": after step {} comes {}", s, s[1:])

    def _compare_repeats(self, rows: dict[str, NDArray[Any]], whole: bool) -> None:
        note = functools.partial(self._note, "duplicates")
        t, d, s, c = rows["trial"], rows["design"], rows["step"], rows["cached"]
        known = rows["status"] != Status.ILLEGAL  # a design that breaks a rule is refused each time
        again = np.concatenate([[False], (t[1:] == t[:-1]) & (d[1:] == d[:-1])])
        text = ": step {} repeats the design of step {}, but is not cached"
        note(again & known & ~c, t, text, s, np.roll(s, 1))
        if whole:
            # A forked process continues as a new trial, with the cache of its parent.
            parents = [name.rpartition("-")[0] for name in self._numbers]
            own = np.array([parent not in self._numbers for parent in parents], dtype=bool)
            text = ": step {} is cached, but no earlier step has its design"
            note(~again & c & own[t], t, text, s)

    def _compare_results(self, rows: dict[str, NDArray[Any]]) -> None:
        names = list(self._numbers)
        conditions = {name: condition_of(row) for name, row in self._trials.rows.items()}
        of_trial = np.array([conditions.get(name, np.uint64(0)) for name in names], np.uint64)
        with np.errstate(over="ignore"):
            keys = mixed(rows["design"] ^ mixed(of_trial[rows["trial"]]))
        # A failure may be the machine's, and what is illegal depends on what is fixed.
        keys = np.where(rows["status"] == Status.OK, keys, np.uint64(0))
        order = np.lexsort((rows["result"], keys))
        k, r = keys[order], rows["result"][order]
        differs = (k[1:] == k[:-1]) & (r[1:] != r[:-1]) & (k[1:] != 0)

        def describe(row: int) -> str:
            one, other = (
                f"trial {names[rows['trial'][i]]}, step {rows['step'][i]}"
                for i in order[row : row + 2]
            )
            return f"{one} and {other} have the same design, but other metrics"

        self._by_name["agreement"].note(differs, describe)
