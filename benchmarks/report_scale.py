"""A report of a study of 20,000 trials: time, memory, size of the page.

    python benchmarks/report_scale.py [--trials 20000] [--evaluations 100] [--keep DIR]

The study is made up: five agents with grids of hyperparameters on twelve problems, every row
written by archgym's own recorder's layout and read by ``archgym report`` as any other run. Making
it is not timed.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from archgym.data.parts import write_parquet
from archgym.data.schema import TRIAL_FIELDS, Sidecar, evaluation_schema
from archgym.problem.metrics import Metric
from archgym.space import Categorical, Designs, DesignSpace, Integer, Ordinal, param

SPACE = DesignSpace(
    [
        Ordinal("buffer", [1, 2, 4, 8, 16, 32, 64], unit="requests", doc="entries"),
        Categorical("policy", ["open", "closed", "adaptive"], doc="page policy"),
        Integer("timeout", 1, 64, unit="cycles", doc="idle time", when=param("policy") == "open"),
        Integer("ways", 1, 16, doc="associativity"),
        Categorical("arbiter", ["simple", "fifo", "reorder"], doc="arbiter"),
        Integer("depth", 1, 32, doc="pipeline"),
    ]
)
METRICS = (
    Metric("latency_ns", "ns", "minimize", "mean"),
    Metric("energy_pj", "pJ", "minimize", "total"),
    Metric("area_um2", "um2", "minimize", "silicon"),
)
BASELINE = {"latency_ns": 100.0, "energy_pj": 40.0, "area_um2": 500.0}
OBJECTIVES = (
    {"minimize": ["latency_ns"]},
    {"product": {"latency_ns": 1.0, "energy_pj": 1.0}, "limits": ["area_um2 <= 900"]},
    {"minimize": ["latency_ns", "energy_pj"]},
)
WORKLOADS = ("sort", "fft", "dijkstra", "matmul")
AGENTS = ("random", "ga", "aco", "sa", "bayesian")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--evaluations", type=int, default=100)
    parser.add_argument("--keep", type=Path, help="folder for the made-up run; it is kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        run = options.keep or Path(temporary) / "run"
        if not (run / "trials.json").exists():
            make_run(run, options.trials, options.evaluations)
        began = time.perf_counter()
        command = [sys.executable, "-m", "archgym", "report", str(run)]
        subprocess.run(command, check=True)
        wall = time.perf_counter() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        page = run / "report.html"
        print(f"trials:   {options.trials:,} of {options.evaluations} evaluations")
        print(f"time:     {wall:.1f} s wall, {used.ru_utime + used.ru_stime:.1f} s processor")
        print(f"memory:   {used.ru_maxrss / 1024:.0f} MB at most")
        print(f"page:     {page.stat().st_size / 1e6:.2f} MB")
        for path in sorted((run / "report_data").iterdir()):
            print(f"beside:   {path.name}, {path.stat().st_size / 1e6:.2f} MB")


def make_run(run: Path, trials: int, evaluations: int) -> None:
    """Writes a run as ``archgym run`` leaves it."""
    rng = np.random.default_rng(0)
    folder = run / "datasets" / "Made-v0"
    hashes = {name: name * 4 for name in WORKLOADS}
    sidecar = Sidecar(SPACE, METRICS, {"name": "embedded", "version": "1"}, hashes)
    listed, rows = [], []
    for number in range(trials):
        workload = WORKLOADS[number % len(WORKLOADS)]
        objective = OBJECTIVES[number // len(WORKLOADS) % len(OBJECTIVES)]
        agent = AGENTS[number // (len(WORKLOADS) * len(OBJECTIVES)) % len(AGENTS)]
        draw = number // (len(WORKLOADS) * len(OBJECTIVES) * len(AGENTS))
        values = {} if agent == "random" else {"size": 4 * (1 + draw % 16), "rate": draw // 16 % 4}
        label = agent + "".join(f"-{value}" for value in values.values())
        seed = draw // 64
        listed.append(
            {
                "trial_id": f"{number:06d}.{label}.s{seed}",
                "setting": f"Made-v0.{workload}",
                "dataset": folder.name,
                "environment": "Made-v0",
                "agent": agent,
                "agent_label": label,
                "seed": seed,
                "budget": evaluations,
                "arguments": {"workload": workload, "objective": objective},
                "hyperparameters": values,
                "initial_designs": [],
            }
        )
        rows.append(trial_row(listed[-1], objective, workload))
    sidecar.save(folder)
    (run / "trials.json").write_text(json.dumps(listed))
    table = pa.Table.from_pylist(rows, schema=pa.schema(list(TRIAL_FIELDS.items())))
    write_parquet(folder / "trials" / "all.parquet", table.schema, [table])
    schema = evaluation_schema(SPACE, METRICS)
    step = 1000
    blocks = (
        evaluation_rows(listed[i : i + step], evaluations, rng) for i in range(0, trials, step)
    )
    write_parquet(folder / "evaluations" / "all.parquet", schema, blocks)


def trial_row(trial: dict[str, Any], objective: Any, workload: str) -> dict[str, Any]:
    known = {
        "settings": "{}",
        "hyperparameters": json.dumps(trial["hyperparameters"]),
        "objective": json.dumps(objective),
        "fixed": "{}",
        "workload": workload,
        "workload_sha256": workload * 4,
        "workload_spec": json.dumps(workload),
        "episode_length": 1,
        "baseline": json.dumps(BASELINE),
        "fidelities": "[]",
        "baseline_design": "{}",
        "optimum": json.dumps({"latency_ns": 20.0, "energy_pj": 10.0, "area_um2": 300.0}),
        "versions": json.dumps({"archgym": "0"}),
        "commit": "",
        "started": 0,
        "ended": 1,
        "state": "finished",
    }
    return {name: known.get(name, trial.get(name)) for name in TRIAL_FIELDS}


def evaluation_rows(
    trials: list[dict[str, Any]], evaluations: int, rng: np.random.Generator
) -> pa.Table:
    """Rows of some trials: random designs, which get better the later they come."""
    n = len(trials) * evaluations
    designs = SPACE.sample(n, rng)
    codes = designs.codes
    progress = np.tile(np.arange(evaluations) / evaluations, len(trials))
    skill = np.repeat([AGENTS.index(trial["agent"]) for trial in trials], evaluations)
    best = 20.0 * np.exp(2.5 * rng.random(n) * (1.0 - 0.12 * skill * progress))
    latency = best * (1 + 0.05 * codes[:, 0])
    energy = 10.0 * np.exp(2.0 * rng.random(n)) * (1 + 0.03 * codes[:, 3])
    area = 300.0 * np.exp(1.5 * rng.random(n))
    spent_us = np.cumsum(np.full(n, 1100))
    limited = np.repeat(["limits" in trial["arguments"]["objective"] for trial in trials], 1)
    beyond = np.repeat(limited, evaluations) & (area > 900)
    columns: dict[str, Any] = {
        "trial_id": np.repeat([trial["trial_id"] for trial in trials], evaluations),
        "step": np.tile(np.arange(evaluations), len(trials)),
        "parent_step": pa.nulls(n),
        "metric.latency_ns": latency,
        "metric.energy_pj": energy,
        "metric.area_um2": area,
        "reward": 1 / (1 + latency / 100),
        "status": np.full(n, "ok"),
        "reason": np.where(
            beyond, [f"limit area_um2 <= 900 exceeded by {v:.1%}" for v in area / 900 - 1], ""
        ),
        "feasible": ~beyond,
        "cached": rng.random(n) < 0.02,
        "fidelity": np.ones(n),
        "simulation_s": np.full(n, 1e-3),
        "agent_s": np.full(n, 5e-5),
        "timestamp": spent_us,
    }
    for name in SPACE.names:
        columns[f"param.{name}"] = Designs(SPACE, codes).values(name).tolist()
    schema = evaluation_schema(SPACE, METRICS)
    empty = pa.nulls(n)  # what only evaluations in flight have
    arrays = [pa.array(columns.get(field.name, empty)).cast(field.type) for field in schema]
    return pa.table(arrays, schema)


if __name__ == "__main__":
    main()
