"""The cross-latency table of a device study: each device's network on each device.

Run as ``python -m benchmarks.nas_devices runs/nas-devices`` after ``archgym run nas-devices``. Of
the trials on each device the best network counts, by the objective that they were searched with.
Its latency on every device is the cost model's, not the table's.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import archgym
from archgym.data import Dataset
from archgym.envs.nas.environment import NASEnvironment
from archgym.envs.nas.tasks import family_of


def best_networks(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Best row by workload and device."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for path in sorted(folder.glob("datasets/*/dataset.json")):
        dataset = Dataset(path.parent)
        for trial in dataset.trials().to_pylist():
            device = json.loads(trial["settings"]).get("device")
            if device is None:
                continue
            key = (trial["workload"], json.dumps(device).strip('"'))
            for row in dataset.evaluations(trial_id=trial["trial_id"]).to_pylist():
                if row["status"] == "ok" and row["fidelity"] == 1.0:
                    found[key] = max(found.get(key, row), row, key=lambda one: one["reward"])
    return found


def table(networks: dict[tuple[str, str], dict[str, Any]]) -> list[str]:
    """The table, line by line."""
    lines = []
    for workload in dict.fromkeys(workload for workload, _ in networks):
        devices = [device for name, device in networks if name == workload]
        made = {
            device: archgym.make("NAS-v0", workload=workload, space="network", device=device)
            for device in devices
        }
        heads = ["network found for", "accuracy %", *(f"us on {device}" for device in devices)]
        lines += [workload, "", "| " + " | ".join([*heads, "network"]) + " |"]
        lines.append("|" + "---|" * (len(heads) + 1))
        for device in devices:
            row = networks[workload, device]
            design = {
                name.removeprefix("param."): value
                for name, value in row.items()
                if name.startswith("param.") and value is not None
            }
            times = [made[other].evaluate(design).metrics["latency_ns"] for other in devices]
            env = made[device]
            assert isinstance(env, NASEnvironment)
            keys = [
                family_of(player.task).key(player.task, architecture)
                for player, architecture in zip(
                    env.networks, env.architectures(design), strict=True
                )
            ]
            cells = [device, f"{row['metric.accuracy_percent']:.2f}"]
            cells += [f"{time / 1e3:.3g}" for time in times if time is not None]
            lines.append("| " + " | ".join([*cells, " ".join(keys)]) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="output folder of archgym run")
    print("\n".join(table(best_networks(parser.parse_args().folder))))


if __name__ == "__main__":
    main()
