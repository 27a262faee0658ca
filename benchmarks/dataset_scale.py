"""Memory and time of the commands of ``archgym dataset`` on a dataset of many rows.

python benchmarks/dataset_scale.py [--rows 1000000] [--only info,validate] [--keep FOLDER]

Each command runs in a process of its own, as from a shell; its peak resident memory and its
processor time are what the operating system says of it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from archgym.data.files import write_dataset
from archgym.data.schema import FLIGHT_COLUMNS, TRIAL_FIELDS, Sidecar, evaluation_schema
from archgym.problem.metrics import Metric
from archgym.problem.objective import Objective
from archgym.problem.scoring import Scorer
from archgym.space import Boolean, Categorical, DesignSpace, Integer, Ordinal, param

ROWS_A_TRIAL = 50_000
SPACE = DesignSpace(
    [
        *(Ordinal(f"size_{i}", [1, 2, 4, 8, 16, 32, 64, 128], unit="kB") for i in range(4)),
        *(Integer(f"ways_{i}", 1, 16) for i in range(4)),
        *(Categorical(f"policy_{i}", ["lru", "fifo", "random", "plru"]) for i in range(4)),
        *(Boolean(f"prefetch_{i}") for i in range(2)),
        *(Integer(f"ahead_{i}", 1, 8, when=param(f"prefetch_{i}").isin([True])) for i in range(2)),
    ]
)
METRICS = tuple(
    Metric(f"{name}_{unit.lower()}", unit)
    for name, unit in [
        *(("latency", "ns"), ("latency_p99", "ns"), ("time", "ns"), ("energy", "pJ")),
        *(("power", "mW"), ("area", "um2"), ("leakage", "mW"), ("stall", "cycles")),
    ]
)
BASELINE = np.full(len(METRICS), 50.0)
AGENTS, WORKLOADS = ("random", "ga", "aco", "sa"), ("sort", "fft", "zipf")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", default="", help="folder to make the dataset in, and to keep")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.keep or temporary) / "data"
        if not folder.exists():
            start = time.perf_counter()
            make(folder, arguments.rows)
            print(f"made {arguments.rows:,} rows in {time.perf_counter() - start:.0f} s")
        files = folder.rglob("*")
        print(f"{sum(f.stat().st_size for f in files if f.is_file()) / 2**20:,.0f} MiB on disk")
        print(f"{'command':44}{'peak MiB':>10}{'CPU s':>8}{'s':>8}")
        out = Path(temporary)
        for name, command in commands(folder, out).items():
            if not arguments.only or name in arguments.only.split(","):
                print(f"{name:44}", end="", flush=True)
                print("{:10,.0f}{:8.0f}{:8.0f}".format(*measured(command)), flush=True)


def commands(folder: Path, out: Path) -> dict[str, list[str]]:
    """Command lines by name, in an order in which each finds what it needs."""
    dataset = [sys.executable, "-m", "archgym", "dataset"]
    halves = [str(out / "halves" / name) for name in ("train", "test")]
    stream = (
        "import archgym, sys\n"
        "from archgym.data.torch_examples import ExampleStream\n"
        "print(sum(len(x) for x, y in ExampleStream(archgym.data.load(sys.argv[1]))))\n"
    )
    return {
        "info": [*dataset, "info", str(folder)],
        "validate": [*dataset, "validate", str(folder)],
        "filter": [
            *(*dataset, "filter", str(folder), str(out / "filtered"), "--agent", "ga"),
            *("--where", "status == ok and ways_0 >= 4"),
        ],
        "distinct": [*dataset, "filter", str(folder), str(out / "distinct"), "--distinct"],
        "sample": [*dataset, "sample", str(folder), str(out / "sample"), "--rows", "20000"],
        "split": [*dataset, "split", str(folder), str(out / "halves"), "--by", "design"],
        "merge": [*dataset, "merge", *halves, str(out / "merged")],
        "split by time": [*dataset, "split", str(folder), str(out / "time"), "--by", "time"],
        "parquet": [*dataset, "export", str(folder), str(out / "all.parquet")],
        "csv": [*dataset, "export", str(folder), str(out / "all.csv")],
        "card": [*dataset, "export", str(folder), str(out / "R.md"), "--license", "cc-by-4.0"],
        "torch stream": [sys.executable, "-c", stream, str(folder)],
    }


def measured(command: list[str]) -> tuple[float, float, float]:
    """Peak resident memory, MiB; processor time, s; time, s."""
    start = time.perf_counter()
    silent = os.open(os.devnull, os.O_WRONLY)
    actions = [(os.POSIX_SPAWN_DUP2, silent, 1)]
    pid = os.posix_spawn(command[0], command, dict(os.environ), file_actions=actions)
    _, status, usage = os.wait4(pid, 0)
    os.close(silent)
    if status:
        raise SystemExit(f"{command} failed")
    seconds = usage.ru_utime + usage.ru_stime
    return usage.ru_maxrss / 1024, seconds, time.perf_counter() - start


def make(folder: Path, rows: int) -> None:
    """A dataset of trials that hold what trials hold: repeated designs, limits, conditions."""
    sidecar = Sidecar(SPACE, METRICS, {"name": "embedded", "version": "1"}, {})
    objective = Objective.parse({"minimize": "latency_ns", "limits": ["power_mw <= 90"]})
    scorer = Scorer(objective, METRICS, BASELINE)
    trials = [trial(number, objective) for number in range(-(-rows // ROWS_A_TRIAL))]

    def tables() -> Iterator[pa.Table]:
        for number, row in enumerate(trials):
            n = min(ROWS_A_TRIAL, rows - number * ROWS_A_TRIAL)
            yield evaluations(row, n, scorer, np.random.default_rng(number))

    write_dataset(folder, sidecar, trials, tables(), operations=[], whole_trials=True)


def trial(number: int, objective: Objective) -> dict[str, Any]:
    workload = WORKLOADS[number // len(AGENTS) % len(WORKLOADS)]
    return {
        **dict.fromkeys(TRIAL_FIELDS),
        "trial_id": f"t{number:05}",
        "environment": "Caches-v0",
        "settings": "{}",
        "agent": AGENTS[number % len(AGENTS)],
        "hyperparameters": "{}",
        "seed": number,
        "objective": json.dumps(objective.to_json()),
        "fixed": "{}",
        "workload": workload,
        "workload_sha256": workload * 8,
        "baseline": json.dumps({m.name: 50.0 for m in METRICS}),
        "versions": "{}",
        "commit": "",
        "started": 1_700_000_000_000_000 + number * 10**9,
        "state": "finished",
    }


def evaluations(row: dict[str, Any], n: int, scorer: Scorer, rng: np.random.Generator) -> pa.Table:
    distinct = SPACE.sample(n, rng)
    designs = distinct[np.sort(rng.integers(0, n, n)) if row["agent"] != "random" else np.arange(n)]
    codes = designs.codes
    cached = np.ones(n, dtype=bool)
    cached[np.unique(np.array(designs.keys(), dtype=object), return_index=True)[1]] = False
    numbers = np.maximum(codes, 0).astype(np.float64)
    shift = 1.0 + WORKLOADS.index(row["workload"])
    values = np.stack(
        [
            20.0 + shift + numbers @ np.cos(np.arange(codes.shape[1]) * (i + 1)) ** 2
            for i in range(len(METRICS))
        ],
        axis=1,
    )
    excess = scorer.violations(values)
    feasible = np.asarray(~(excess > 0).any(axis=1))
    schema = evaluation_schema(SPACE, METRICS)
    columns: dict[str, Any] = {
        "trial_id": pa.array([row["trial_id"]] * n).dictionary_encode(),
        "step": np.arange(n),
        "parent_step": pa.nulls(n, pa.int64()),
        "reward": scorer.rewards(scorer.costs(values), excess),
        "status": pa.array(["ok"] * n).dictionary_encode(),
        "reason": pa.array(["" if ok else "limit power_mw <= 90 exceeded" for ok in feasible]),
        "feasible": feasible,
        "cached": cached,
        "fidelity": np.ones(n),
        "simulation_s": rng.random(n) * 1e-3,
        "agent_s": rng.random(n) * 1e-4,
        "timestamp": pa.array(row["started"] + np.arange(n) * 1000, pa.int64()),
    }
    for name in SPACE.names:
        columns[f"param.{name}"] = pa.array(designs.values(name).tolist())
    for number, metric in enumerate(METRICS):
        columns[f"metric.{metric.name}"] = values[:, number]
    columns |= {name: pa.nulls(n, kind) for name, kind in FLIGHT_COLUMNS.items()}
    arrays = [pa.array(columns[f.name]) for f in schema]
    return pa.table(
        [
            a.cast(f.type)
            if a.type != f.type and not pa.types.is_dictionary(f.type)
            else a.dictionary_encode()
            if pa.types.is_string(a.type)
            else a
            for a, f in zip(arrays, schema, strict=True)
        ],
        schema=schema,
    )


if __name__ == "__main__":
    main()
