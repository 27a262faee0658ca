"""History in a file: what is read is what was written, and damage is noticed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archgym.environment.environment import Environment
from archgym.errors import DatasetError
from archgym.history.earlier import scored
from archgym.history.kept import read_kept, write_kept
from archgym.history.reading import read_earlier, read_history
from tests.data.datasets import Loaded
from tests.helpers import Adder, Grumpy


def kept(folder: Path) -> tuple[Path, Environment, Any]:
    """A file with two sources."""
    for kind, workload in ((Loaded, "heavy"), (Loaded, "light")):
        env = kind(workload=workload, record=folder / "data")
        env.evaluate_batch([{"x": x, "y": 1, "mode": "plain"} for x in range(4)])
        env.close()
    now = Loaded()
    found = read_earlier(folder / "data", now, now.baseline_metrics)
    write_kept(folder / "kept.parquet", found, now)
    return folder / "kept.parquet", now, found


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    path, env, (earlier, accounts) = kept(tmp_path)
    again, told = read_kept(path, env)
    assert told == accounts
    assert [(one.name, one.same) for one in again] == [(one.name, one.same) for one in earlier]
    for mine, theirs in zip(again, earlier, strict=True):
        for name in ("codes", "metrics", "status", "baseline"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
    first, second = scored((again, told), env), read_history(tmp_path / "data", env)
    nothing = env.design_space.designs([])
    assert first.info(nothing) == second.info(nothing)


def test_failed_designs_are_kept_as_such(tmp_path: Path) -> None:
    env = Grumpy(record=tmp_path / "data")
    env.evaluate_batch([{"x": x, "y": 1, "mode": "plain"} for x in range(3)])
    env.close()
    now = Grumpy()
    write_kept(tmp_path / "kept.parquet", read_earlier(tmp_path / "data", now, None), now)
    (one,) = scored(read_kept(tmp_path / "kept.parquet", now), now)
    assert sorted(outcome.status for outcome in one.outcomes) == ["failed", "ok", "timeout"]


def bytes_of(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cell(column: str, value: int, path: Path) -> None:
    table = pq.read_table(path)
    values = table[column].to_pylist()
    field = table.schema.field(column)
    changed = pa.array([value, *values[1:]], field.type)
    pq.write_table(table.set_column(table.column_names.index(column), field, changed), path)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (Path.unlink, "kept.parquet"),
        (bytes_of, "kept.parquet"),
        (lambda path: path.write_bytes(b"PAR1"), "kept.parquet"),
        (lambda path: cell("code.x", 9, path), "it was changed, its checksum is another one"),
        (lambda path: cell("status", 1, path), "it was changed, its checksum is another one"),
    ],
)
def test_damage_is_noticed(damage: Callable[[Path], None], says: str, tmp_path: Path) -> None:
    path, env, _ = kept(tmp_path)
    damage(path)
    with pytest.raises(DatasetError, match=re.escape(says)):
        read_kept(path, env)


def test_history_of_other_metrics_is_refused(tmp_path: Path) -> None:
    class Fewer(Adder):
        metrics: ClassVar[Any] = Adder.metrics[:1]

        def simulate(self, design: dict[str, Any]) -> dict[str, float]:
            return {"total_ns": super().simulate(design)["total_ns"]}

    path, _, _ = kept(tmp_path)
    with pytest.raises(DatasetError, match="another design space or other metrics"):
        read_kept(path, Fewer())
