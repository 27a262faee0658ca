"""Compare the embedded DRAM controller with rows measured with DRAMSys.

Run as ``python benchmarks/dram_fidelity.py FOLDER``; FOLDER holds ``dramsys51.csv``,
``dramsys40_archgym_space.csv``, ``three_simulators_matched.csv`` and ``traces/``.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import gzip
import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from archgym.envs.dram.config import ControllerConfig
from archgym.envs.dram.controller import Result, simulate
from archgym.envs.dram.device import Device, load_device
from archgym.envs.dram.trace import Trace

Row = dict[str, str]
Pair = tuple[Row, Result]
Metric = tuple[str, str, Callable[[Result], float]]

METRICS: tuple[Metric, ...] = (
    ("total time", "time_ns", lambda r: r.time_ns),
    (
        "read latency from arrival",
        "avg_read_latency_from_arrival_ns",
        lambda r: r.read_latency_mean_ns,
    ),
    (
        "read latency from acceptance",
        "avg_read_latency_ns",
        lambda r: r.read_latency_accepted_mean_ns,
    ),
    ("p95 read latency", "p95_read_latency_from_arrival_ns", lambda r: r.read_latency_p95_ns),
    (
        "write latency",
        "avg_write_latency_from_arrival_ns",
        lambda r: r.write_latency_mean_ns,
    ),
    ("energy", "energy_total_pJ", lambda r: r.energy_pj),
    ("power", "average_power_mW", lambda r: r.power_mw),
    ("activates", "n_act", lambda r: r.commands["act"]),
    ("precharges", "n_pre", lambda r: r.commands["pre"]),
    ("auto-precharge reads", "n_rda", lambda r: r.commands["rda"]),
    ("refreshes", "n_refab", lambda r: r.commands["refab"]),
)
VALUES = {
    "Open": "open",
    "OpenAdaptive": "open_adaptive",
    "Closed": "closed",
    "ClosedAdaptive": "closed_adaptive",
    "Fifo": "fifo",
    "FrFcfs": "fr_fcfs",
    "FrFcfsGrp": "fr_fcfs_grp",
    "GrpFrFcfs": "grp_fr_fcfs",
    "GrpFrFcfsWm": "grp_fr_fcfs_wm",
    "Bankwise": "bankwise",
    "ReadWrite": "read_write",
    "Shared": "shared",
    "Reorder": "reorder",
    "Simple": "simple",
    "NoRefresh": "none",
    "AllBank": "all_bank",
    "Oldest": "oldest",
    "Strict": "strict",
}


def read_trace(path: Path, t_ck_ps: int | None = None) -> Trace:
    """A ``.trace`` file (ns, R|W, address) or an STL file (clock: read|write address)."""
    times, addresses, writes = [], [], []
    with gzip.open(path, "rt") as file:
        for line in file:
            time, verb, address = line.replace(":", " ").split()[:3]
            times.append(int(time) * (t_ck_ps or 1000))
            writes.append(verb.upper().startswith("W"))
            addresses.append(int(address, 16))
    return Trace(
        path.name.split(".")[0],
        np.array(times, np.int64),
        np.array(addresses, np.int64),
        np.array(writes, np.uint8),
    )


def config_of(row: Row, **changes: object) -> ControllerConfig:
    mapping = row.get("mapping", "rbc")
    settings: dict[str, object] = {
        "page_policy": VALUES[row["PagePolicy"]],
        "scheduler": VALUES[row["Scheduler"]],
        "scheduler_buffer": VALUES[row["SchedulerBuffer"]],
        "request_buffer_size": int(float(row["RequestBufferSize"])),
        "resp_queue": VALUES[row["RespQueue"]],
        "refresh_policy": VALUES[row["RefreshPolicy"]],
        "refresh_max_postponed": int(float(row["RefreshMaxPostponed"])),
        "refresh_max_pulledin": int(float(row["RefreshMaxPulledin"])),
        "arbiter": VALUES[row["Arbiter"]],
        "max_active_transactions": int(float(row["MaxActiveTransactions"])),
        "cmd_mux": VALUES[row.get("CmdMux", "Oldest")],
        "address_mapping": mapping,
    }
    return ControllerConfig(**(settings | changes))  # type: ignore[arg-type]


def matched_device() -> Device:
    """The device that all three simulators were given for the matched runs."""
    return dataclasses.replace(
        load_device("DDR4-2400"),
        name="matched DDR4-2400",
        rows=65536,
        rl_cycles=16,
        wl_cycles=12,
        t_rtp_cycles=9,
        t_rfc_cycles=433,
        t_refi_cycles=9364,
    )


def errors(pairs: list[Pair], metric: Metric) -> tuple[float, float, float, float, float]:
    """Spearman, mean and worst absolute error in %, share within 0.1 %, spread in %."""
    _, column, take = metric
    reference, ours = [], []
    for row, result in pairs:
        if row.get(column):
            reference.append(float(row[column]))
            ours.append(take(result))
    if not reference or max(map(abs, reference)) == 0:
        return (math.nan,) * 5
    a, b = np.array(reference), np.array(ours)
    keep = a != 0
    relative = np.abs(b[keep] / a[keep] - 1) * 100
    spread = (a.max() / max(a.min(), 1e-9) - 1) * 100
    rho = math.nan
    if spread > 0.5:
        # Differences below 0.1 % count as ties.
        rho = float(spearmanr(_rounded(a), _rounded(b)).statistic)
    return rho, relative.mean(), relative.max(), 100 * float((relative < 0.1).mean()), spread


def _rounded(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.where(values > 0, np.round(np.log(np.maximum(values, 1e-12)) * 2000), -1e9)


def report(title: str, groups: dict[str, list[Pair]], metrics: Iterable[Metric]) -> None:
    print(f"\n## {title}")
    print(
        "| quantity | trace | n | Spearman | mean abs. % | worst abs. % | % of rows within 0.1 % |"
    )
    print("|---|---|---|---|---|---|---|")
    for metric in metrics:
        rows = []
        for trace, pairs in sorted(groups.items()):
            rho, mean, worst, exact, spread = errors(pairs, metric)
            if math.isnan(mean):
                continue
            if spread > 0.5:
                rows.append((rho, mean))
            print(
                f"| {metric[0]} | {trace} | {len(pairs)} | {rho:.4f} | {mean:.3f} | {worst:.2f} "
                f"| {exact:.0f} |"
            )
        if len(rows) > 1:
            rhos, means = np.array(rows).T
            print(
                f"| **{metric[0]}** | median, worst trace | | {np.median(rhos):.4f}, "
                f"{rhos.min():.4f} | {np.median(means):.3f}, {means.max():.3f} | | |"
            )


def dramsys51(folder: Path, changes: dict[str, object], verbose: bool) -> None:
    traces: dict[str, Trace] = {}
    groups: dict[str, dict[str, list[Pair]]] = defaultdict(lambda: defaultdict(list))
    skipped = 0
    for row in csv.DictReader((folder / "dramsys51.csv").open()):
        known = row["standard"] in ("DDR3-1600", "DDR4-2400")
        if row["status"] != "ok" or row["PowerDownPolicy"] != "NoPowerDown" or not known:
            skipped += 1
            continue
        name = row["trace"]
        if name not in traces:
            traces[name] = read_trace(folder / "traces" / f"{name}.trace.gz")
        result = simulate(traces[name], load_device(row["standard"]), config_of(row, **changes))
        groups[row["standard"]][name].append((row, result))
        off = abs(result.time_ns / float(row["time_ns"]) - 1) * 100
        if verbose and off > 0.1:
            knobs = ",".join(list(row.values())[7:20])
            print(f"{off:7.2f} % {row['standard']} {name} {row['config_id']} {knobs}")
    print(f"{skipped} rows skipped (power-down or not finished)")
    for standard, of_trace in groups.items():
        report(f"DRAMSys 5.1, {standard}", of_trace, METRICS)


def dramsys40(folder: Path, changes: dict[str, object], verbose: bool) -> None:
    # Version 4.0 has no think delay, and its trace player is done with a response at once.
    changes = {"think_delay_fw_cycles": 0, "end_response_delay_cycles": 0} | changes
    device = load_device("DDR3-1600")
    metrics = [
        ("total time", "total_time_ns", METRICS[0][2]),
        ("energy", "energy_pJ", METRICS[5][2]),
        ("power", "avg_power_mW", METRICS[6][2]),
    ]
    traces: dict[str, Trace] = {}
    groups: dict[str, list[Pair]] = defaultdict(list)
    for row in csv.DictReader((folder / "dramsys40_archgym_space.csv").open()):
        if row["status"] != "ok":
            continue
        name = row["trace"]
        if name not in traces:
            traces[name] = read_trace(folder / "traces" / f"{name}.gz", device.t_ck_ps)
        result = simulate(traces[name], device, config_of(row, **changes))
        groups[name].append((row, result))
        off = (result.time_ns / float(row["total_time_ns"]) - 1) * 100
        if verbose and abs(off) > 0.1:
            print(f"{off:7.2f} % {name} {','.join(list(row.values())[3:13])}")
    report("DRAMSys 4.0, ArchGym's space, with its front end", groups, metrics)


def matched(folder: Path, changes: dict[str, object]) -> None:
    device = matched_device()
    names = {"row-bank-col": "rbc", "bank-row-col": "brc"}
    traces: dict[str, Trace] = {}
    groups: dict[str, list[Pair]] = defaultdict(list)
    for row in csv.DictReader((folder / "three_simulators_matched.csv").open()):
        if row["simulator"] != "DRAMSys5.1" or row["status"] != "ok":
            continue
        name = row["trace"]
        if name not in traces:
            traces[name] = read_trace(folder / "traces" / f"{name}.trace.gz")
        settings: dict[str, object] = {
            "page_policy": row["page"],
            "refresh_policy": {"allbank": "all_bank", "off": "none"}.get(
                row["refresh"], row["refresh"]
            ),
            "address_mapping": names[row["mapping"]],
            "scheduler_buffer": "read_write",
            "request_buffer_size": int(row["queue"]),
        }
        config = ControllerConfig(**(settings | changes))  # type: ignore[arg-type]
        groups[name].append((row, simulate(traces[name], device, config)))
    report("DRAMSys 5.1 with the matched device", groups, METRICS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rules", default="dramsys51", help="timing_rules of the config")
    parser.add_argument("--verbose", action="store_true", help="print each row that is off")
    parser.add_argument(
        "--only", choices=("dramsys51", "dramsys40", "matched"), help="one table only"
    )
    args = parser.parse_args()
    changes: dict[str, object] = {"timing_rules": args.rules}
    if args.only in (None, "dramsys51"):
        dramsys51(args.folder, changes, args.verbose)
    if args.only in (None, "dramsys40"):
        dramsys40(args.folder, changes, args.verbose)
    if args.only in (None, "matched"):
        matched(args.folder, changes)


if __name__ == "__main__":
    main()
