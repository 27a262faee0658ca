"""Measuring rows of the shipped table again: do these programs give the same rows?

``python -m archgym.envs.fpga.repeat --rows 30`` draws rows, the same number of each device as far
as there are any, and prints those that differ. A build of nextpnr may add to the table what
``archgym.envs.fpga.tabulate`` measures only if there are none.
"""

from __future__ import annotations

import argparse
import itertools
from typing import Any

import numpy as np

from archgym.envs.fpga.measured import measured_rows
from archgym.envs.fpga.tabulate import Draw, measured, packable

__all__ = ["COMPARED", "differences", "drawn_rows"]

COMPARED = (
    "verilog_sha256",
    "lut_count",
    "ff_count",
    "dsp_count",
    "bram_count",
    "carry_count",
    "status",
    "clock_mhz",
    "logic_share",
)
"""Columns that have to be equal; the others are the design, or times."""


def drawn_rows(number: int, seed: int = 1) -> list[dict[str, Any]]:
    """Rows of the table at random, by turns of each device."""
    rows = measured_rows()
    order = np.random.default_rng(seed).permutation(len(rows))
    devices: dict[str, list[dict[str, Any]]] = {}
    for place in order:
        devices.setdefault(rows[place]["design"]["device"], []).append(rows[place])
    turns = itertools.zip_longest(*(devices[name] for name in sorted(devices)))
    return [row for turn in turns for row in turn if row is not None][:number]


def differences(row: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Columns in which a row of the table and a new measurement differ: old and new value.

    Raises:
        MissingDependencyError: if yosys or nextpnr is missing.
    """
    (new,) = measured(Draw(row["workload"], [row["design"]], [row["seed"]]))
    found = packable(new)
    return {name: (row[name], found.get(name)) for name in COMPARED if row[name] != found.get(name)}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1, help="of the choice of rows")
    arguments = parser.parse_args()
    rows = drawn_rows(arguments.rows, arguments.seed)
    other = 0
    for row in rows:
        found = differences(row)
        other += bool(found)
        name = f"number {row['number']}, {row['workload']}, {row['design']['device']}"
        print(f"{name}, seed {row['seed']}: {found or 'equal'}", flush=True)
    print(f"{len(rows) - other} of {len(rows)} rows are equal")


if __name__ == "__main__":
    main()
