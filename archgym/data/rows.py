"""The rows of a dataset that somebody chose, below the facade :class:`~archgym.data.Selection`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from archgym.data.condition import Column, known_values, parse_condition, to_arrow
from archgym.data.dataset import Dataset
from archgym.data.designs import (
    column_fingerprints,
    design_columns,
    design_fingerprints,
    fingerprint,
    looked_up,
    mixed,
    shuffled,
)
from archgym.data.files import provenance
from archgym.data.schema import TRIAL_FIELDS, recorded_as_text
from archgym.errors import DatasetError, InvalidValueError, check_choice
from archgym.problem.status import LABELS
from archgym.space import Parameter
from archgym.space.expression import param

if TYPE_CHECKING:
    import pandas as pd

OF_THE_TRIAL = ("environment", "workload", "agent", "hyperparameters", "seed", "label")
"""Columns that each row takes over from its trial."""
Numbered = tuple[NDArray[np.int64], NDArray[Any]]
"""Numbers of rows, and a value for each of them, both (n,)."""


class Rows:
    """Some rows of a dataset, all of them at first; it never changes.

    It keeps one bit for each row of the dataset, and reads rows when asked, a block at a time.

    Attributes:
        dataset: where the rows are.
        operations: how they were chosen, as plain values, the first step first.
        whole_trials: whether no row was left out of the trials that are in it.
    """

    def __init__(self, dataset: Dataset) -> None:
        made = provenance(dataset)
        self.dataset = dataset
        self.operations: tuple[dict[str, Any], ...] = tuple(made["operations"])
        self.whole_trials: bool = made["whole_trials"]
        self._snapshot = dataset.snapshot()
        self._keep: NDArray[np.bool_] | None = None
        self._count = len(self._snapshot)
        self._trials = {row["trial_id"]: row for row in dataset.trials().to_pylist()}

    def __len__(self) -> int:
        """Number of rows."""
        return self._count

    @property
    def columns(self) -> list[str]:
        """Names of the columns of :meth:`blocks`, those of the trial last."""
        return [*self._snapshot.schema.names, *OF_THE_TRIAL]

    @property
    def trials(self) -> list[dict[str, Any]]:
        """The table of trials of the dataset, as mappings, by id."""
        return list(self._trials.values())

    # -- choosing --------------------------------------------------------------------------------

    def where(
        self,
        conditions: str | Sequence[str] = (),
        *,
        agents: str | Sequence[str] = (),
        workloads: str | Sequence[str] = (),
    ) -> Self:
        """The rows that meet all conditions.

        Args:
            conditions: one, or several; see :mod:`archgym.data.condition`.
            agents: only rows of these.
            workloads: only rows of these.

        Raises:
            InvalidValueError: if a condition cannot be read.
            UnknownNameError: if a column, agent, workload or value does not exist.
        """
        texts = _texts(conditions)
        expressions = [parse_condition(text, self._condition_columns) for text in texts]
        for name, wanted in (("agent", _texts(agents)), ("workload", _texts(workloads))):
            if wanted:
                column = self._condition_columns[name]
                values = [column.value(name, "in", text) for text in wanted]
                expressions.append(param(name).isin(values))
        if not expressions:
            return self
        whole = functools.reduce(operator.and_, expressions)
        meets, keep = to_arrow(whole), np.zeros(len(self._snapshot), dtype=bool)
        for rows, table in self.numbered(whole.names):
            place = pa.array(rows)
            keep[table.append_column("#", place).filter(meets)["#"].to_numpy()] = True
        step = {"operation": "filter", "where": [str(expression) for expression in expressions]}
        of_trials = set(whole.names) <= {*TRIAL_FIELDS}
        return self.narrowed(keep, step, whole_trials=of_trials)

    def of_trials(self, trial_ids: Iterable[str]) -> Self:
        """The rows of some trials."""
        wanted, keep = set(trial_ids), np.zeros(len(self._snapshot), dtype=bool)
        mine = np.array([trial_id in wanted for trial_id in self._trials], dtype=bool)
        for rows, table in self.numbered(["trial_id"]):
            keep[rows] = mine[self._trial_of(table)]
        step = {"operation": "filter", "trials": sorted(wanted)}
        return self.narrowed(keep, step, whole_trials=True)

    def distinct(self) -> Self:
        """The first row of each design under the same conditions (see :meth:`fingerprints`)."""
        rows, keys = gathered(self.fingerprints(of="example"))
        _, first = np.unique(keys, return_index=True)
        return self.narrowed(rows[first], {"operation": "distinct"})

    def sample(self, rows: int, seed: int) -> Self:
        """Rows drawn at random; a larger sample with the same seed contains a smaller one.

        Args:
            rows: how many.
            seed: the only source of randomness. Which rows are drawn does not depend on how
                the dataset is spread over files.

        Raises:
            InvalidValueError: if there are not that many.
        """
        _check_number("rows", rows, len(self), "rows")
        numbers, keys = gathered(self.fingerprints(of="row"))
        chosen = np.lexsort((numbers, shuffled(keys, seed)))[:rows]
        step = {"operation": "sample", "rows": rows, "seed": seed}
        return self.narrowed(numbers[chosen], step)

    def sample_designs(self, designs: int, seed: int) -> Self:
        """All rows of distinct designs drawn at random; a larger sample contains a smaller one.

        Args:
            designs: how many.
            seed: the only source of randomness.

        Raises:
            InvalidValueError: if there are not that many.
        """
        numbers, keys = gathered(self.fingerprints(of="design"))
        order = shuffled(keys, seed)
        drawn = np.unique(order)
        _check_number("designs", designs, len(drawn), "distinct designs")
        step = {"operation": "sample", "designs": designs, "seed": seed}
        return self.narrowed(numbers[order <= drawn[designs - 1]], step)

    def narrowed(
        self, rows: NDArray[Any], step: Mapping[str, Any], *, whole_trials: bool = False
    ) -> Self:
        """Only some of the rows.

        Args:
            rows: their numbers in the snapshot, or whether each of its rows is wanted.
            step: how they were chosen, as plain values.
            whole_trials: whether a trial's rows are all among them, or none.
        """
        keep = rows
        if keep.dtype != np.bool_:
            keep = np.zeros(len(self._snapshot), dtype=bool)
            keep[rows] = True
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._keep = keep if self._keep is None else keep & self._keep
        made._count = int(np.count_nonzero(made._keep))
        made.operations = (*self.operations, dict(step))
        made.whole_trials = self.whole_trials and whole_trials
        return made

    # -- reading ---------------------------------------------------------------------------------

    def blocks(self, columns: Iterable[str] | None = None) -> Iterator[pa.Table]:
        """The rows, a block at a time.

        Args:
            columns: names from :attr:`columns` or of the table of trials; all of
                :attr:`columns` by default.

        Raises:
            UnknownNameError: if there is no such column.
        """
        names = self.columns if columns is None else list(columns)
        for _, table in self.numbered(names):
            yield table.select(names)

    def numbered(self, names: Iterable[str]) -> Iterator[tuple[NDArray[np.int64], pa.Table]]:
        """Numbers of rows in the snapshot, and the rows, a block at a time; see :meth:`blocks`."""
        own = self._snapshot.schema.names
        names = list(names)
        of_trial = [name for name in names if name not in own]
        for name in of_trial:
            check_choice("column", name, [*self.columns, *TRIAL_FIELDS])
        read = [name for name in names if name in own]
        if of_trial or not read:
            read.append("trial_id")
        for rows, table in self._snapshot.blocks(read, self._keep):
            places = pa.array(self._trial_of(table)) if of_trial else None
            for name in of_trial:
                column = pa.array([row[name] for row in self._trials.values()], TRIAL_FIELDS[name])
                field = self._field(name)
                column = column.dictionary_encode() if field.type != column.type else column
                table = table.append_column(field, column.take(places))
            yield rows, table

    def values_of(self, name: str) -> set[str]:
        """The values of a column of texts that some row has."""
        tables = self.blocks([name])
        return {value for table in tables for value in table[name].unique().to_pylist()}

    def arrow(self, columns: Iterable[str] | None = None) -> pa.Table:
        """All rows as one table in memory; see :meth:`blocks`."""
        names = self.columns if columns is None else list(columns)
        tables = list(self.blocks(names))
        empty = pa.schema([self._field(name) for name in names]).empty_table()
        return pa.concat_tables([empty, *tables]).unify_dictionaries()

    def pandas(self, columns: Iterable[str] | None = None) -> pd.DataFrame:
        """All rows as a pandas frame in memory; see :meth:`blocks`."""
        frame: pd.DataFrame = self.arrow(columns).to_pandas()
        return frame

    def fingerprints(self, *, of: str = "design") -> Iterator[Numbered]:
        """Numbers of rows and a 64-bit fingerprint of each, a block at a time.

        Args:
            of: ``design``: equal for equal designs; ``example``: for equal designs under the same
                conditions, that is environment, its settings, workload and fidelity; ``row``:
                of trial and step.
        """
        space = self.dataset.sidecar.space
        if of == "row":
            for rows, table in self.numbered(["trial_id", "step"]):
                yield rows, column_fingerprints(table.select(["trial_id", "step"]))
            return
        more = ["trial_id", "fidelity"] if of == "example" else []
        conditions = np.array(list(self.conditions_of_trials.values()), np.uint64)
        for rows, table in self.numbered([*design_columns(space), *more]):
            keys = design_fingerprints(space, table)
            if more:
                words = conditions[self._trial_of(table)]
                keys = mixed(keys ^ mixed(words + column_fingerprints(table.select(["fidelity"]))))
            yield rows, keys

    # -- inner workings --------------------------------------------------------------------------

    def _field(self, name: str) -> pa.Field:
        if name in self._snapshot.schema.names:
            return self._snapshot.schema.field(name)
        kind = TRIAL_FIELDS[name]
        return pa.field(name, pa.dictionary(pa.int32(), kind) if pa.types.is_string(kind) else kind)

    def _trial_of(self, table: pa.Table) -> NDArray[np.int32]:
        """The number of each row's trial in the table of trials, shape (n,)."""
        numbers = {trial_id: number for number, trial_id in enumerate(self._trials)}
        places = looked_up(table["trial_id"], lambda name: numbers.get(name, -1), np.int32)
        if len(places) and places.min() < 0:
            unknown = table["trial_id"][int(np.argmin(places))].as_py()
            raise DatasetError(
                f"{self.dataset.directory}: trial {unknown!r} has evaluations, but is not in the "
                "table of trials; archgym dataset validate lists what is wrong"
            )
        return places

    @cached_property
    def conditions_of_trials(self) -> dict[str, np.uint64]:
        """A fingerprint a trial, by id; equal for trials in which a design has equal metrics."""
        return {trial_id: condition_of(row) for trial_id, row in self._trials.items()}

    @cached_property
    def _condition_columns(self) -> dict[str, Column]:
        space, schema = self.dataset.sidecar.space, self._snapshot.schema
        kinds = {**{field.name: field.type for field in schema}, **TRIAL_FIELDS}
        found = {name: Column(kind) for name, kind in kinds.items()}
        for parameter in space.parameters:
            name = f"param.{parameter.name}"
            parse = functools.partial(_recorded_value, parameter)
            found[name] = Column(schema.field(name).type, parse)
        known: dict[str, Iterable[str]] = {"status": LABELS}
        for name in ("trial_id", "environment", "workload", "agent", "state"):
            known[name] = sorted({row[name] for row in self._trials.values()})
        for name, values in known.items():
            found[name] = Column(pa.string(), known_values(name.removesuffix("_id"), values))
        return found


def _recorded_value(parameter: Parameter, text: str) -> Any:
    """A value of a parameter as its column holds it."""
    value = parameter.parse(text)
    return str(value) if recorded_as_text(parameter) else value


def condition_of(trial: Mapping[str, Any]) -> np.uint64:
    """A fingerprint of the conditions of a trial; equal where a design has equal metrics."""
    names = ("environment", "settings")
    workload = trial["workload_sha256"] or trial["workload"]
    return fingerprint([str(trial[name]) for name in names] + [str(workload)])


def gathered(blocks: Iterable[Numbered]) -> Numbered:
    """The numbers and values of all blocks as two arrays."""
    found = list(blocks)
    if not found:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    rows, values = zip(*found, strict=True)
    return np.concatenate(rows), np.concatenate(values)


def _texts(texts: str | Sequence[str]) -> list[str]:
    found = [texts] if isinstance(texts, str) else list(texts)
    for text in found:
        if not isinstance(text, str):
            raise InvalidValueError(f"a text is needed, such as 'status == ok', not {text!r}")
    return found


def _check_number(name: str, number: object, most: int, what: str) -> None:
    if isinstance(number, bool) or not isinstance(number, Integral) or not 1 <= int(number) <= most:
        raise InvalidValueError(
            f"{name} must be an integer from 1 to {most}, the number of {what} there are; "
            f"got {number!r}"
        )
