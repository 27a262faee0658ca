"""The table of measured designs."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from archgym.envs.fpga.space import design_space

__all__ = ["measured_rows"]


@cache
def _table() -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    file = resources.files("archgym").joinpath("datasets", "fpga", "measured.parquet")
    with resources.as_file(file) as path:
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def measured_rows() -> list[dict[str, Any]]:
    """The rows of ``datasets/fpga/measured.parquet``, each with its ``design``."""
    names = design_space().names
    return [
        {
            **{name: value for name, value in row.items() if name not in names},
            "design": {name: row[name] for name in names if row[name] is not None},
        }
        for row in _table()
    ]
