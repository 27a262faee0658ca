"""What was measured on a GPU: the rows of ``measured.parquet`` and ``held_out.parquet``.

Both are in ``datasets/gpu``. Models are fitted to the first; the second has other shapes, and
judges them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.envs.gpu.model.compiled import Compiled
from archgym.envs.gpu.model.device import Device
from archgym.envs.gpu.model.machines import USUAL_RUN, extras_of_runs
from archgym.envs.gpu.model.terms import Array
from archgym.envs.gpu.parameters import BYTES, HELD_OUT, PARAMETERS, SHAPES, Shape
from archgym.reading.parquet import read_rows

PASSES = ("time_1_us", "time_2_us", "time_3_us")
_WHOLE = (2, 3, 5, 6, 8, 10, 11, 12)
"""The runs that measured all designs of their shapes, together."""
_POWER = (4, 5, 6, 7, 9, 10, 11)
"""The runs that measured power, of a sample, most exactly."""
_BY_MACHINE = ("norm",)
"""Kernels whose power is that of the memory, which differs between GPUs of one kind: what the
memory of each run's GPU takes more than usual is known (:mod:`archgym.envs.gpu.model.machines`)."""
_NAMES = tuple(dict.fromkeys(name for some in PARAMETERS.values() for name in some))
_LESS_EXACT = 0.2
"""Weight of the power that the others measured."""
OTHER_MACHINE = 0.4
"""Weight of exact power that another GPU than the usual one took, for those kernels: what its
memory takes more than usual is an estimate."""


@lru_cache(maxsize=2)
def measured_rows(*, held_out: bool = False) -> list[dict[str, Any]]:
    """Every row, with the columns that ``datasets/gpu/README.md`` describes.

    Args:
        held_out: whether of the shapes that judge, instead of those that models are fitted to.
    """
    folder = resources.files("archgym").joinpath("datasets", "gpu")
    name = "held_out.parquet" if held_out else "measured.parquet"
    with resources.as_file(folder.joinpath(name)) as path:
        return read_rows(path)


@lru_cache(maxsize=1)
def _by_shape() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in (*measured_rows(), *measured_rows(held_out=True)):
        if row["run"] in _WHOLE:
            found.setdefault(row["shape"], []).append(row)
    return found


def rows_of(shape: Shape) -> dict[tuple[int, ...], dict[str, Any]]:
    """The rows of a shape by the values of the design, in the order of the parameters."""
    names = tuple(PARAMETERS[shape.kernel])
    found: dict[tuple[int, ...], dict[str, Any]] = {}
    for row in _by_shape().get(shape.name, []):
        if row["warps"] is not None:  # a design that a later run repeated keeps its first times
            found.setdefault(tuple(row[n] for n in names), row)
    return found


@lru_cache(maxsize=1)
def _exact_powers() -> dict[tuple[Any, ...], dict[str, Any]]:
    """Rows of the runs that measured power, by shape and design."""
    found = {}
    for row in (*measured_rows(), *measured_rows(held_out=True)):
        if row["run"] in _POWER and row["power_w"] is not None and row["warps"] is not None:
            found[row["shape"], *(row[name] for name in _NAMES)] = row
    return found


def _machines(device: Device) -> dict[int, float]:
    rows = (*measured_rows(), *measured_rows(held_out=True))
    return extras_of_runs((row for row in rows if row["run"] in _POWER), device)


def torch_time_us(shape: Shape) -> float | None:
    """Time of PyTorch's own kernel, median of all passes, us; none if it was not measured."""
    rows = [row for row in _by_shape().get(shape.name, []) if row["warps"] is None]
    times = [row[name] for row in rows if row["status"] == "ok" for name in PASSES]
    known = [one for one in times if one is not None]
    return float(np.median(known)) if known else None


def measured_shapes(*, held_out: bool | None = None) -> tuple[Shape, ...]:
    """The shapes all of whose designs were measured.

    Args:
        held_out: whether of those that judge or of those that models are fitted to; by default
            both.
    """
    chosen = [s for s in SHAPES if held_out is None or (s in HELD_OUT) == held_out]
    return tuple(shape for shape in chosen if shape.name in _by_shape())


@dataclass(frozen=True)
class Rows:
    """Measured designs of one kernel that ran.

    Attributes:
        designs: values by parameter, shape (n,) each.
        sizes: as :func:`sizes_of` gives them, shape (n,) each; ``memory_extra_w`` is that of the
            GPU on which the power was measured.
        compiled: registers, spills and shared memory.
        times: of the passes, us, shape (n, 3).
        power: W, NaN where it was not measured, shape (n,).
        power_weight: 1 or :data:`OTHER_MACHINE` where power was measured most exactly, else less,
            shape (n,).
        busy_us: time of a launch without pause, us, NaN where not measured, shape (n,).
        names: the shape of each row, shape (n,).
        groups: equal for shapes of the same sizes, whatever their elements, shape (n,).
    """

    designs: Mapping[str, Array]
    sizes: Mapping[str, Array]
    compiled: Compiled
    times: Array
    power: Array
    power_weight: Array
    busy_us: Array
    names: NDArray[np.str_]
    groups: NDArray[np.str_]

    @property
    def time_us(self) -> Array:
        """Median of the passes, us, shape (n,)."""
        return np.asarray(np.median(self.times, axis=1))

    def __getitem__(self, rows: NDArray[Any]) -> Rows:
        """Some of the rows, by a mask or by numbers."""
        return Rows(*(_some(getattr(self, one.name), rows) for one in fields(self)))


def measured(kernel: str, device: Device, *, held_out: bool = False) -> Rows:
    """All measured designs of a kernel that ran.

    Args:
        kernel: one of :data:`~archgym.envs.gpu.parameters.KERNELS`.
        device: on which they were measured.
        held_out: whether of the shapes that judge, instead of those that models are fitted to.
    """
    shapes = [one for one in measured_shapes(held_out=held_out) if one.kernel == kernel]
    rows = [(s, r) for s in shapes for r in rows_of(s).values() if r["status"] == "ok"]

    exact = [_exact_powers().get((s.name, *(r[n] for n in _NAMES))) for s, r in rows]
    powers = [row if other is None else other for (_, row), other in zip(rows, exact, strict=True)]
    sizes = sizes_of([shape for shape, _ in rows], device)
    if kernel in _BY_MACHINE:
        extras, none = _machines(device), {"power_w": None, "busy_time_us": None}
        powers = [none if other is None else other for other in exact]
        sizes["memory_extra_w"] = np.array([extras.get(row.get("run", 0), 0.0) for row in powers])
    weights = np.array([_weight(kernel, row) for row in exact])

    def column(name: str, some: Sequence[dict[str, Any]] | None = None) -> Array:
        found = [row[name] for row in some or [row for _, row in rows]]
        return np.array([math.nan if value is None else value for value in found], dtype=float)

    return Rows(
        {name: column(name) for name in PARAMETERS[kernel]},
        sizes,
        Compiled(column("registers"), column("spills"), column("shared_bytes")),
        np.stack([column(name) for name in PASSES], axis=1),
        column("power_w", powers),
        weights,
        column("busy_time_us", powers),
        np.array([shape.name for shape, _ in rows]),
        np.array([str(tuple(shape.sizes.values())) for shape, _ in rows]),
    )


def _weight(kernel: str, exact: Mapping[str, Any] | None) -> float:
    if exact is None:
        return _LESS_EXACT
    elsewhere = kernel in _BY_MACHINE and exact["run"] != USUAL_RUN
    return OTHER_MACHINE if elsewhere else 1.0


def sizes_of(shapes: Sequence[Shape], device: Device) -> dict[str, Array]:
    """Sizes of each of the shapes, with what else a model asks for, shape (n,) each.

    ``element`` are bytes of an element, ``flops`` those of a multiprocessor's matrix units in a
    cycle, ``memory_extra_w`` the power that the GPU's memory takes more than usual, W.
    """
    found = {name: np.array([float(s.sizes[name]) for s in shapes]) for name in shapes[0].sizes}
    found["memory_extra_w"] = np.full(len(shapes), device.memory_extra_w)
    found["element"] = np.array([float(BYTES[shape.dtype]) for shape in shapes])
    found["flops"] = np.array([float(device.flops_per_cycle[shape.dtype]) for shape in shapes])
    return found


def _some(value: Any, rows: NDArray[Any]) -> Any:
    if isinstance(value, Mapping):
        return {name: column[rows] for name, column in value.items()}
    if isinstance(value, Compiled):
        return Compiled(*(getattr(value, one.name)[rows] for one in fields(value)))
    return value[rows]
