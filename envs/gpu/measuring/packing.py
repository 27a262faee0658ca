"""Packs the tables of a campaign into one Parquet file, a row for each design.

``python -m archgym.envs.gpu.measuring.packing OUT.parquet DIR...`` reads the CSV files that
:mod:`archgym.envs.gpu.measuring.campaign` wrote into each folder; the first one is run 1, or what
``--run`` says. ``--add FILE`` begins with the rows of a packed file, and ``--held-out no`` or
``yes`` takes only the shapes that models are fitted to, or those that judge. The columns are
those that ``datasets/gpu/README.md`` describes. It needs pyarrow.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from archgym.envs.gpu.parameters import HELD_OUT, PARAMETERS, SHAPES
from archgym.reading.parquet import read_rows

_TORCH = "torch"
_NAMES = (
    *("block_m", "block_n", "block_k", "block_rows", "block_columns"),
    *("warps", "stages", "group_m", "split_k", "copy_engine"),
)
_FACTS = {"shared_bytes": "shared", "registers": "registers", "spills": "spills"}
_SINGLE = ("error", "time_1_us", "time_2_us", "time_3_us", "power_w", "busy_time_us")
_TEXTS = ("shape", "status", "reason")
_SMALL = ("run", "temperature_c")


def packed_rows(folder: Path, run: int) -> list[dict[str, Any]]:
    """The rows of one campaign, by shape and design.

    Args:
        folder: with ``designs.csv``, ``times.csv`` and ``power.csv``.
        run: number that the rows get.
    """
    parts: dict[tuple[str, str], dict[str, Any]] = {}
    for name in ("designs", "times", "power"):
        for row in _read(folder / f"{name}.csv"):
            part = parts.setdefault((row["shape"], row["design"]), {"times": {}})
            if name == "times":
                part["times"][row["pass"]] = row
            else:
                part[name] = row
    places = {shape.name: place for place, shape in enumerate(SHAPES)}
    rows = [_row(run, *key, part) for key, part in parts.items()]
    return sorted(rows, key=lambda row: (places[row["shape"]], *(row[n] or -1 for n in _NAMES)))


def _row(run: int, shape: str, design: str, part: dict[str, Any]) -> dict[str, Any]:
    kernels = {one.name: one.kernel for one in SHAPES}
    given = [] if design == _TORCH else [int(value) for value in design.split()]
    values = dict(zip(PARAMETERS[kernels[shape]], given, strict=False))
    checked, times = part.get("designs", {}), part["times"]
    power = part.get("power", {})
    good = "time_us" in power and power["power_w"] is not None  # NaN is read as null
    row: dict[str, Any] = {"run": run, "shape": shape, **{n: values.get(n) for n in _NAMES}}
    row |= {"status": checked.get("status", "ok"), "reason": checked.get("reason") or ""}
    row["error"] = checked.get("error")
    row |= {name: checked.get(column) for name, column in _FACTS.items()}
    row |= {f"time_{n}_us": times[n]["time_us"] if n in times else None for n in (1, 2, 3)}
    row["clock_mhz"] = min((one["clock_mhz"] for one in times.values()), default=None)
    row["temperature_c"] = max((one["temperature_c"] for one in times.values()), default=None)
    row["power_w"] = power["power_w"] if good else None
    row["busy_time_us"] = power["time_us"] if good else None
    row["busy_clock_mhz"] = power["clock_mhz"] if good else None
    return row


def added(
    earlier: Sequence[dict[str, Any]], folders: Sequence[Path], *, run: int, held_out: bool | None
) -> list[dict[str, Any]]:
    """The rows of campaigns after earlier ones.

    Args:
        earlier: rows before them.
        folders: of the campaigns.
        run: number of the first.
        held_out: whether only the shapes that judge are taken, or only those that models are
            fitted to; by default all.
    """
    judging = {shape.name for shape in HELD_OUT}
    rows = [_with_engine(row) for row in earlier]
    for number, folder in enumerate(folders, run):
        found = packed_rows(folder, number)
        rows += [row for row in found if held_out in (None, row["shape"] in judging)]
    return rows


def _with_engine(row: dict[str, Any]) -> dict[str, Any]:
    """A row that may be from before products could be loaded by the copy engine."""
    if "copy_engine" in row:
        return row
    place = list(row).index("split_k") + 1
    values = list(row.items())
    by_threads = None if row["split_k"] is None else 0
    return dict([*values[:place], ("copy_engine", by_threads), *values[place:]])


def write(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Writes the rows of all campaigns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def kind(name: str) -> Any:
        if name in _TEXTS:
            return pa.string()
        if name in _SINGLE:
            return pa.float32()
        return pa.int8() if name in _SMALL else pa.int32()

    schema = pa.schema([(name, kind(name)) for name in rows[0]])
    table = pa.Table.from_pylist(list(rows), schema=schema)
    pq.write_table(table, path, compression="zstd", compression_level=19)


def _read(path: Path) -> list[dict[str, Any]]:
    import pyarrow.csv as pc

    packed = path.with_name(path.name + ".gz")
    found = packed if packed.exists() else path
    rows: list[dict[str, Any]] = pc.read_csv(found).to_pylist() if found.exists() else []
    return rows


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--run", type=int, default=1)
    parser.add_argument("--add", type=Path)
    parser.add_argument("--held-out", choices=("no", "yes"))
    given = parser.parse_args()
    earlier = [] if given.add is None else read_rows(given.add)
    held_out = {None: None, "yes": True, "no": False}[given.held_out]
    rows = added(earlier, given.folders, run=given.run, held_out=held_out)
    write(rows, given.out)


if __name__ == "__main__":
    main()
