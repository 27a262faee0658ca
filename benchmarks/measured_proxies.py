"""Which family of models is best for measured hardware: kernels on a GPU, networks, circuits.

``python -m benchmarks.measured_proxies DIR`` records what was measured as datasets in DIR, a
folder that is not there yet, and runs ``archgym proxy compare`` on each of them: the time of four
matrix products in Triton on an H200, the latency of vision backbones on an H200 and on a core of a
processor, and logic and clock of circuits on FPGAs. Models are tested on designs that they were not
trained on. Some minutes.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import archgym
from archgym.envs.fpga.measured import measured_rows
from archgym.envs.gpu.model.measured import PASSES, measured_shapes, rows_of
from archgym.envs.gpu.parameters import PARAMETERS
from archgym.envs.nas.backbone.measured import DEVICES, measured_networks, measured_us
from archgym.space import Categorical, DesignSpace, Ordinal, Parameter

Row = tuple[Mapping[str, Any], Mapping[str, Any]]

KERNELS = ("square_1024", "square_4096", "decode_16", "vocabulary")
_STAGES = [f"stage{n}_{what}" for n in range(1, 5) for what in ("kind", "depth")]
_NETWORK = ["resolution", "width", "expansion", *_STAGES]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True)
    for make, sizes in (
        (kernels, ["--sizes", "100,300,1000"]),
        (backbones, ["--sizes", "100,300,1000"]),
        (circuits, ["--sizes", "100,300,900"]),
    ):
        name = make.__name__
        make().write(folder / name)
        print(f"== {name}", flush=True)
        command = [sys.executable, "-m", "archgym", "proxy", "compare", str(folder / name), "-q"]
        subprocess.run([*command, *sizes], check=True)


def kernels() -> Measured:
    """The designs of some products that could be run."""
    rows = []
    for shape in measured_shapes():
        if shape.name in KERNELS:
            for values, row in rows_of(shape).items():
                if row["status"] == "ok":
                    design = dict(zip(PARAMETERS[shape.kernel], values, strict=True))
                    time_us = statistics.median(float(row[name]) for name in PASSES)
                    rows.append(({"shape": shape.name, **design}, {"time_us": time_us}))
    return Measured([archgym.Metric("time_us", "us", "minimize", "of one launch")], rows)


def backbones() -> Measured:
    """The networks that were measured on all devices."""
    rows = [
        (
            {name: row[name] for name in _NETWORK},
            {f"{device}_us": measured_us(row, device) for device in DEVICES},
        )
        for row in measured_networks()
    ]
    metrics = [archgym.Metric(f"{name}_us", "us", "minimize", "latency") for name in DEVICES]
    return Measured(metrics, [(d, m) for d, m in rows if None not in m.values()])


def circuits() -> Measured:
    """The circuits that were placed and routed, with the first placement seed.

    Each on one device only: on the others of its family it has the same logic, so that a model
    would be tested on what it was trained on.
    """
    placed: dict[str, list[dict[str, Any]]] = {}
    for row in measured_rows():
        if row["status"] == "ok" and row["seed"] == 1:
            placed.setdefault(row["verilog_sha256"], []).append(row)
    chosen = [same[same[0]["number"] % len(same)] for same in placed.values()]
    rows = [({"network": row["workload"], **row["design"]}, row) for row in chosen]
    metrics = [
        archgym.Metric("lut_count", "", "minimize", "lookup tables"),
        archgym.Metric("clock_mhz", "MHz", "maximize", "highest clock"),
    ]
    names = [metric.name for metric in metrics]
    return Measured(metrics, [(d, {name: float(row[name]) for name in names}) for d, row in rows])


@dataclass(frozen=True)
class Measured:
    """Rows that were measured, to make a dataset of them.

    A parameter that a design lacks has the value ``"none"``.

    Attributes:
        metrics: what was measured.
        rows: pairs of a design and its metrics.
    """

    metrics: Sequence[archgym.Metric]
    rows: Sequence[Row]

    def write(self, folder: Path) -> None:
        """Writes all rows as a dataset, of an environment that looks them up."""
        names = list(dict.fromkeys(name for design, _ in self.rows for name in design))
        found = {tuple(d.get(name, "none") for name in names): one for d, one in self.rows}
        designs = [dict(zip(names, values, strict=True)) for values in found]
        parts = {
            "design_space": DesignSpace(
                list(map(_parameter, names, zip(*found, strict=True))),
            ),
            "metrics": tuple(self.metrics),
            "baseline": designs[0],
            "default_objective": {self.metrics[0].direction: self.metrics[0].name},
            "simulate": lambda _, design: dict(found[tuple(design[name] for name in names)]),
        }
        env = type("Measured", (archgym.Environment,), parts)(record=folder)
        env.evaluate_batch(designs)
        env.close()


def _parameter(name: str, column: Sequence[Any]) -> Parameter:
    levels = set(column)
    if all(isinstance(level, int | float) and not isinstance(level, bool) for level in levels):
        return Ordinal(name, sorted(levels))
    return Categorical(name, sorted(levels, key=str))


if __name__ == "__main__":
    main()
