"""The table of a co-design study: what each way of searching comes to, violations marked.

Run as ``python -m benchmarks.nas_codesign runs/nas`` after ``archgym run nas``. For every kind of
chip and workload a line for each method:

- runs that meet every specification,
- the median over runs of the weighted accuracy, and of its loss against the most accurate networks
  there are (a search for accuracy alone does not do better); runs that break a specification have
  no part in either, unless all do,
- the run with the median accuracy: its chip, accuracies, latency, energy and area; what breaks a
  specification is marked with ``!``.

A run comes to its best design, for searches in stages that of the last stage: networks that the
first stage tried and did not keep are no result of the method.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import archgym
from archgym.data import Dataset
from archgym.envs.nas.baseline import baseline_architecture
from archgym.envs.nas.environment import NASEnvironment
from archgym.envs.nas.reward import weighted_accuracy
from archgym.envs.nas.workloads import stored_specs

METHODS = {"joint": "joint search", "last": "NAS, then ASIC", "first": "ASIC, then HW-aware NAS"}
METRICS = ("latency_cycles", "energy_nj", "area_um2")


@dataclass(frozen=True)
class Result:
    """What one run comes to."""

    design: Mapping[str, Any]
    metrics: Mapping[str, float]
    loss: float

    @property
    def meets(self) -> bool:
        """Whether it meets every specification."""
        return self.metrics["spec_penalty_rate"] == 0


def results_of(dataset: Dataset) -> dict[tuple[str, str, str], list[Result]]:
    """Results by workload, kind of chip and method."""
    found: dict[tuple[str, str, str], list[Result]] = {}
    environments: dict[str, NASEnvironment] = {}
    for trial in dataset.trials().to_pylist():
        if trial["environment"] != "NAS-v0":
            continue
        rows = [
            row
            for row in dataset.evaluations(trial_id=trial["trial_id"]).to_pylist()
            if row["status"] == "ok" and row["fidelity"] == 1.0
        ]
        if not rows:
            continue
        settings = json.loads(trial["hyperparameters"])
        method = next((key for key in ("first", "last") if settings.get(key)), "joint")
        if settings.get("rounds", 1) > 1:  # networks and chip in turn
            method = "joint"
        if method != "joint":
            rows = _last_stage(rows, settings[method], method == "first")
        names = dataset.sidecar.space.names
        kind = "network"
        if "sub_1_pes" in names:
            kind = "heterogeneous" if "sub_2_pes" in names else "homogeneous"
            kind = kind if "sub_accelerators" in names else "single"
        workload = trial["workload"]
        if workload not in environments:
            environments[workload] = made(workload)
        best = min(rows, key=_rank)
        metrics = {k.removeprefix("metric."): v for k, v in best.items() if k.startswith("metric.")}
        design = {
            k.removeprefix("param."): v
            for k, v in best.items()
            if k.startswith("param.") and v is not None
        }
        loss = most_accurate(environments[workload]) - metrics["accuracy_percent"]
        found.setdefault((workload, kind, method), []).append(Result(design, metrics, loss))
    return found


def made(workload: str) -> NASEnvironment:
    """The environment of a workload."""
    env = archgym.make("NAS-v0", workload=workload)
    assert isinstance(env, NASEnvironment)
    return env


def most_accurate(env: NASEnvironment) -> float:
    """Weighted accuracy of the most accurate network for each task, percent."""
    stored = stored_specs()["workloads"].get(env.loaded.name)
    architectures = [
        stored["networks"][player.name] if stored else baseline_architecture(player.task)
        for player in env.networks
    ]
    return weighted_accuracy(env.accuracies([architectures])[0].tolist(), env.loaded.weights)


def _last_stage(
    rows: list[dict[str, Any]], pattern: str, chips_first: bool
) -> list[dict[str, Any]]:
    """The rows of the second stage: what comes once the other parameters leave the baseline."""
    assert pattern == "sub_*", pattern
    chip = [name for name in rows[0] if name.startswith("param.sub_")]
    networks = [name for name in rows[0] if name.startswith("param.") and name not in chip]
    first, second = (chip, networks) if chips_first else (networks, chip)
    start = next(
        (i for i, row in enumerate(rows) if any(row[n] != rows[0][n] for n in second)),
        len(rows) - 1,
    )
    return [row for row in rows[start:] if all(row[n] == rows[start][n] for n in first)]


def _rank(row: Mapping[str, Any]) -> tuple[float, float]:
    """Feasible designs by accuracy, then the others by their penalty."""
    penalty = row["metric.spec_penalty_rate"]
    return penalty, -row["metric.accuracy_percent"] if penalty == 0 else 0.0


def chip_text(design: Mapping[str, Any]) -> str:
    """As in the paper: template, PEs, GB/s, and the buffer in KiB where there is one."""
    short = {"nvdla_ws": "dla", "shidiannao_os": "shi", "eyeriss_rs": "rs"}
    count = design.get("sub_accelerators", 1)
    parts = []
    for number in range(1, count + 1):
        name = f"sub_{number}" if f"sub_{number}_pes" in design else "sub_1"
        knobs = [short[design[f"{name}_dataflow"]], design[f"{name}_pes"]]
        knobs.append(design[f"{name}_bandwidth_gbps"])
        if f"{name}_buffer_kib" in design:
            knobs.append(design[f"{name}_buffer_kib"])
        parts.append(",".join(map(str, knobs)))
    return "; ".join(parts)


def line(env: NASEnvironment, kind: str, method: str, results: Sequence[Result]) -> str:
    """One line of the table."""
    good = [result for result in results if result.meets]
    judged = sorted(good or results, key=lambda result: result.metrics["accuracy_percent"])
    shown = judged[(len(judged) - 1) // 2]
    specs = vars(env.loaded.specs)
    accuracies = " / ".join(
        f"{shown.metrics[f'accuracy_{player.name}_percent']:.2f}" for player in env.networks
    )
    values = [
        f"{shown.metrics[name]:.3g}{'!' if shown.metrics[name] > specs[name] else ''}"
        for name in METRICS
    ]
    cells = [
        env.loaded.name,
        kind,
        METHODS[method],
        f"{len(good)}/{len(results)}",
        f"{median(r.metrics['accuracy_percent'] for r in judged):.2f}",
        f"{median(r.loss for r in judged):.2f}",
        chip_text(shown.design),
        accuracies,
        *values,
    ]
    return "| " + " | ".join(cells) + " |"


def table(datasets: Iterable[Dataset]) -> list[str]:
    """The table, line by line."""
    heads = ["workload", "chip", "method", "meet specs", "accuracy %", "loss", "median run: chip"]
    heads += ["accuracies %", "latency cycles", "energy nJ", "area um2"]
    found: dict[tuple[str, str, str], list[Result]] = {}
    for dataset in datasets:
        for key, results in results_of(dataset).items():
            found.setdefault(key, []).extend(results)
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    synthetic = False
    for workload, kind in dict.fromkeys(key[:2] for key in found):
        env = made(workload)
        lines += [
            line(env, kind, method, found[workload, kind, method])
            for method in METHODS
            if (workload, kind, method) in found
        ]
        specs = vars(env.loaded.specs)
        limits = [f"{specs[name]:.3g}" for name in METRICS]
        lines.append(
            "| " + " | ".join([workload, kind, "specification", *[""] * 5, *limits]) + " |"
        )
        synthetic |= env.source.synthetic
    lines.append("")
    lines.append("! breaks the specification; chips: template, PEs, GB/s[, KiB] of each array")
    if synthetic:
        lines.append("accuracies of W1, W2 and W3 are SYNTHETIC: nothing was trained")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", help="output folders of archgym run")
    arguments = parser.parse_args()
    paths = [p for folder in arguments.folders for p in sorted(folder.glob("datasets/*"))]
    print("\n".join(table(Dataset(path) for path in paths if (path / "dataset.json").is_file())))


if __name__ == "__main__":
    main()
