"""The measurements of backbones that ship: networks and their parts on each device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from archgym.envs.nas.backbone.parts import Part

__all__ = [
    "DEVICES",
    "JUDGES",
    "PASSES",
    "measured_networks",
    "measured_us",
    "part_times",
    "sum_of_parts",
]

DEVICES: Final = ("h200_batch_1", "h200_batch_64", "cpu_core")
"""One picture at a time and 64 on an NVIDIA H200 in half precision, and one picture on a core of a
processor in single precision; ``datasets/nas/latency/README.md`` says how they were measured."""

PASSES: Final = ("us", "again_us", "alone_us")
"""Endings of the columns: of the first time, of the second, and of a core while others idle."""

JUDGES: Final = 600
"""Networks that no predictor is fitted to, the first of a random order; all were measured twice."""


def measured_networks(folder: Path | None = None) -> list[dict[str, Any]]:
    """The rows of ``networks.parquet``, in the order of measurement.

    Args:
        folder: that holds the file; the shipped one unless given.
    """
    return _read("networks.parquet") if folder is None else _rows(folder / "networks.parquet")


def measured_us(row: Mapping[str, Any], device: str) -> float | None:
    """The shortest of a network's times on a device, us; ``None`` if it was not measured."""
    times = [row.get(f"{device}_{ending}") for ending in PASSES]
    return min((time for time in times if time is not None), default=None)


@cache
def part_times(device: str, folder: Path | None = None) -> Mapping[str, float]:
    """Time of each part by its key, us.

    Args:
        device: one of :data:`DEVICES`.
        folder: that holds ``parts.parquet``; the shipped one unless given.
    """
    rows = _read("parts.parquet") if folder is None else _rows(folder / "parts.parquet")
    times = {row["part"]: row[f"{device}_us"] for row in rows}
    return {key: time for key, time in times.items() if time is not None}


def sum_of_parts(times: Mapping[str, float], parts: Sequence[Part]) -> float:
    """The latency that the parts of a network add up to, us."""
    return sum(times[part.key] for part in parts)


@cache
def _read(name: str) -> list[dict[str, Any]]:
    file = resources.files("archgym").joinpath("datasets", "nas", "latency", name)
    with resources.as_file(file) as path:
        return _rows(path)


def _rows(path: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows
