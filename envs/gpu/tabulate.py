"""Tables for ``simulator="tabular:PATH"`` from what was measured.

``python -m archgym.envs.gpu.tabulate [DIR]`` writes a table for each measured shape, without DIR
into ``datasets/gpu/tables``: those are known by name, as ``tabular:gpu-square-4096``.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from archgym.envs.gpu.environment import GPUKernel
from archgym.envs.gpu.model.measured import PASSES, measured_shapes, rows_of
from archgym.envs.gpu.parameters import PARAMETERS, Shape
from archgym.errors import InvalidValueError
from archgym.problem import Status
from archgym.simulators.tabular.table import Header, Table

_SIMULATOR = {"name": "triton", "version": "NVIDIA H200, torch 2.11.0, triton 3.6.0"}
_NAME = "GPUKernel-v0"
_METRICS = ("time_us", "time_us_spread_share")


def tabulated(shape: Shape) -> Table:
    """The table of a measured shape.

    Raises:
        InvalidValueError: if the shape was not measured.
    """
    rows = rows_of(shape)
    if not rows:
        known = ", ".join(one.name for one in measured_shapes())
        raise InvalidValueError(f"{shape.name!r} was not measured; allowed are {known}")
    env = GPUKernel(workload=shape.name)
    space, names = env.design_space, tuple(PARAMETERS[shape.kernel])
    count = int(space.canonical_cardinality)
    values = np.full((count, len(_METRICS)), np.nan)
    failure = np.zeros(count, dtype=np.int32)
    failures: dict[tuple[int, str], int] = {(int(Status.OK), ""): 0}
    for position, design in enumerate(space.unrank(np.arange(count))):
        row = rows[tuple(design[name] for name in names)]
        if row["status"] == "ok":
            values[position] = _metrics(row)
        else:
            reason = (int(Status.FAILED), row["reason"])
            failure[position] = failures.setdefault(reason, len(failures))
    described = replace(
        env.description, environment=_NAME, simulator=_SIMULATOR, metrics_given=_METRICS
    )
    return Table.of(Header.of(described, {}), values, failure, failures)


def _metrics(row: dict[str, Any]) -> tuple[float, float]:
    """Median and relative spread of the passes, to the digits that were recorded."""
    times = [float(row[name]) for name in PASSES]
    middle = statistics.median(times)
    return float(f"{middle:.6g}"), float(f"{statistics.pstdev(times) / middle:.3g}")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    tables = Path(str(resources.files("archgym").joinpath("datasets", "gpu", "tables")))
    parser.add_argument("out", type=Path, nargs="?", default=tables)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for shape in measured_shapes():
        tabulated(shape).save(out / f"gpu-{shape.name.replace('_', '-')}.parquet")


if __name__ == "__main__":
    main()
