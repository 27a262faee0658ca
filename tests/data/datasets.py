"""Datasets that tests look into."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

import archgym
from archgym.data import Dataset, Selection, load
from archgym.data.parts import part_of, with_parts
from archgym.registry import make_agent
from tests.helpers import Adder

__all__ = ["Loaded", "altered", "list_again", "recorded", "rows_of"]


class Loaded(Adder):
    """The adder, with a load on top that is its workload."""

    default_workload: ClassVar = "light"

    def load_workload(self, spec: Any) -> None:
        self.load = {"light": 0.0, "heavy": 10.0}[spec]

    def hash_workload(self) -> str:
        return f"hash of {self.workload}"

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        metrics = super().simulate(design)
        return {**metrics, "total_ns": metrics["total_ns"] + self.load}


def recorded(folder: Path, *, budget: int = 20, **arguments: Any) -> Selection:
    """Two agents on two workloads with two seeds, recorded and sealed."""
    for workload in ("light", "heavy"):
        env = Loaded(workload=workload, record=folder, **arguments)
        for agent in ("random", "ga"):
            for seed in (0, 1):
                goals = ["minimize"] * len(env.objective.goals)
                made = make_agent(agent, env.design_space, goals, seed=seed)
                made.search(env, budget=budget, trial_id=f"{workload}.{agent}.{seed}")
    Dataset(folder).seal()
    return load(folder)


def rows_of(selection: Selection) -> set[tuple[str, int]]:
    """Trial and step of each row."""
    table = selection.arrow(["trial_id", "step"])
    return set(zip(table["trial_id"].to_pylist(), table["step"].to_pylist(), strict=True))


def altered(folder: Path, column: str, row: int, value: Any) -> archgym.data.Dataset:
    """Puts another value into a sealed dataset."""
    (path,) = (folder / "evaluations").glob("*.parquet")
    schema = pq.read_schema(path)
    table = pq.read_table(path)
    values = table[column].to_pylist()
    values[row] = value
    place = table.column_names.index(column)
    kind = schema.field(column).type
    plain = pa.array(values, kind.value_type if pa.types.is_dictionary(kind) else kind)
    array = plain.dictionary_encode() if pa.types.is_dictionary(kind) else plain
    pq.write_table(table.set_column(place, schema.field(column), array), path)
    list_again(folder)
    return Dataset(folder)


def list_again(folder: Path) -> None:
    """Puts the checksums of altered files into the table of trials, so that they pass."""
    (trials,) = (folder / "trials").glob("*.parquet")
    table = pq.read_table(trials)
    parts = {p.name: part_of(p, []) for p in sorted((folder / "evaluations").glob("*.parquet"))}
    schema = with_parts(table.schema, parts)
    pq.write_table(table.replace_schema_metadata(schema.metadata), trials)
