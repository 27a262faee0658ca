"""What was measured on a GPU: the rows of ``datasets/gpu/measured.parquet``."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np

from archgym.envs.gpu.model.gemm import Array
from archgym.envs.gpu.parameters import PARAMETERS, SHAPES, Shape

PASSES = ("time_1_us", "time_2_us", "time_3_us")
_RUN = 2
"""The measurement of all designs; the first run was a sample, on another machine."""


@lru_cache(maxsize=1)
def measured_rows() -> list[dict[str, Any]]:
    """Every row, with the columns that ``datasets/gpu/README.md`` describes."""
    import pyarrow.parquet as pq

    folder = resources.files("archgym").joinpath("datasets", "gpu")
    with resources.as_file(folder.joinpath("measured.parquet")) as path:
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def rows_of(shape: Shape) -> dict[tuple[int, ...], dict[str, Any]]:
    """The rows of a shape by the values of the design, in the order of the parameters."""
    names = tuple(PARAMETERS[shape.kernel])
    return {
        tuple(row[name] for name in names): row
        for row in measured_rows()
        if row["shape"] == shape.name and row["run"] == _RUN and row["warps"] is not None
    }


def measured_shapes() -> tuple[Shape, ...]:
    """The shapes all of whose designs were measured."""
    found = {row["shape"] for row in measured_rows() if row["run"] == _RUN}
    return tuple(shape for shape in SHAPES if shape.name in found)


def products() -> tuple[dict[str, Array], dict[str, Array], Array, list[str]]:
    """Designs, sizes, times (median of the passes, us) and shapes of all measured products."""
    shapes = [shape for shape in measured_shapes() if shape.kernel == "gemm"]
    rows = [
        (shape, design, row)
        for shape in shapes
        for design, row in rows_of(shape).items()
        if row["status"] == "ok"
    ]
    names = tuple(PARAMETERS["gemm"])
    values = np.array([design for _, design, _ in rows], dtype=float)
    designs = {name: values[:, i] for i, name in enumerate(names)}
    sizes = {s: np.array([shape.sizes[s] for shape, _, _ in rows], dtype=float) for s in "mnk"}
    times = np.array([[row[name] for name in PASSES] for _, _, row in rows])
    return designs, sizes, np.median(times, axis=1), [shape.name for shape, _, _ in rows]
