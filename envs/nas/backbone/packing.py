"""Packs what a campaign measured into two Parquet files.

``python -m archgym.envs.nas.backbone.packing FOLDER OUT`` reads ``gpu.csv`` and ``core.csv``, which
:mod:`archgym.envs.nas.backbone.campaign` wrote into FOLDER, and writes ``networks.parquet`` and
``parts.parquet``, with the columns that ``datasets/nas/latency/README.md`` describes.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from archgym.envs.nas.backbone.campaign import PART, network_order, part_order
from archgym.envs.nas.backbone.measured import DEVICES, PASSES
from archgym.envs.nas.backbone.parts import (
    IMAGENET,
    architecture_of,
    macs,
    parameter_count,
    parts_of,
)

__all__ = ["packed_networks", "packed_parts", "read_rows"]

_DEVICES: Final = {("gpu", 1): DEVICES[0], ("gpu", 64): DEVICES[1], ("core", 1): DEVICES[2]}
_PASSES: Final = dict(enumerate(PASSES, start=1))
Measured = Mapping[tuple[str, int, str], Mapping[str, str]]
"""Rows by subject, pass and device."""


def read_rows(folder: Path) -> dict[tuple[str, int, str], dict[str, str]]:
    """The rows of a campaign; a last line that was cut off is left out."""
    found: dict[tuple[str, int, str], dict[str, str]] = {}
    for name in ("gpu.csv", "core.csv"):
        with (folder / name).open(newline="") as file:
            for row in csv.DictReader(file):
                if row["moment_s"] and row["finite"] == "True":
                    device = _DEVICES[row["device"], int(row["batch"])]
                    found[row["subject"], int(row["pass"]), device] = row
    return found


def packed_networks(rows: Measured, seed: int = 0) -> list[dict[str, Any]]:
    """A row for each network that a device measured, in the order of measurement.

    Times on the GPU are medians of many replays. On a core the shortest call counts: programs of
    others on the same machine slow calls down, and never speed one up.
    """
    found = []
    for place, key in enumerate(network_order(seed)):
        if not any((key, 1, device) in rows for device in DEVICES):
            continue
        parts = parts_of(IMAGENET, architecture_of(key))
        row: dict[str, Any] = {"place": place, "network": key, **architecture_of(key)}
        row |= {"macs": macs(parts), "parameters": parameter_count(parts)}
        for device in DEVICES:
            for number, ending in _PASSES.items():
                if number == 3 and device != DEVICES[2]:
                    continue
                row[f"{device}_{ending}"] = _time(rows.get((key, number, device)))
        gpu = rows.get((key, 1, DEVICES[1]), {})
        for reading in ("clock_mhz", "temperature_c"):
            row[reading] = int(gpu[reading]) if reading in gpu else None
        found.append(row)
    return found


def packed_parts(rows: Measured) -> list[dict[str, Any]]:
    """A row for each part, by key."""
    found = []
    for part in sorted(part_order(0), key=lambda part: part.key):
        row: dict[str, Any] = {"part": part.key, "macs": part.macs}
        for device in DEVICES:
            row[f"{device}_us"] = _time(rows.get((part.key, PART, device)))
        found.append(row)
    return found


def _time(row: Mapping[str, str] | None) -> float | None:
    """The time that a row tells, us."""
    if row is None:
        return None
    return float(row["fastest_us" if row["device"] == "core" else "time_us"])


def write(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Writes rows as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def kind(name: str) -> Any:
        if name in ("network", "part") or name.endswith("_kind"):
            return pa.string()
        return pa.float32() if name.endswith("_us") else pa.int64()

    schema = pa.schema([(name, kind(name)) for name in rows[0]])
    table = pa.Table.from_pylist(list(rows), schema=schema)
    pq.write_table(table, path, compression="zstd", compression_level=19)


def main(arguments: Iterable[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args(None if arguments is None else list(arguments))
    given.out.mkdir(parents=True, exist_ok=True)
    rows = read_rows(given.folder)
    write(packed_networks(rows), given.out / "networks.parquet")
    write(packed_parts(rows), given.out / "parts.parquet")


if __name__ == "__main__":
    main()
