"""Numbers that describe a trace: what a model goes by that is to know one it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from archgym.envs.dram.controller.prepared_trace import ChannelTrace, prepare
from archgym.envs.dram.device.address_mapping import mapping_names
from archgym.envs.dram.device.memory import Memory
from archgym.envs.dram.traces.trace import Trace

__all__ = ["FEATURES", "trace_features"]

Ints = NDArray[np.int64]

_LINE_BYTES = 64
_WINDOW = 16
"""Requests that a controller sees at once, roughly: those of a window count as near."""
_IDLE_PS = 200_000
"""Pauses from which on a memory may be put to sleep, ps."""

FEATURES: Mapping[str, str] = MappingProxyType(
    {
        "intensity_per_ns": "requests by the time from the first to the last, 1/ns",
        "load_share": "busy time of the data bus, were every burst back to back, by that time",
        "read_share": "share of reads",
        "turnaround_share": "share of requests that read after a write, or write after a read",
        "burstiness": "standard deviation of the intervals between arrivals by their mean",
        "near_share": "share of intervals shorter than a burst on the data bus",
        "idle_share": f"share of the time in intervals above {_IDLE_PS // 1000} ns",
        "footprint_bytes": "distinct lines, bytes",
        "reuse_share": "share of requests for a line that was requested before",
        "sequential_share": "share of requests for the line after that of the request before",
        "stride_share": "share of requests at the same distance from the one before as that had",
        "near_row_share": f"share of requests for a row among those of the {_WINDOW} before",
        "hot_rows_share": "share of requests for the hundredth of the rows that take most",
        "row_locality_share": "share of requests that find their row open, were rows left open",
        "bank_parallelism_count": f"distinct banks in {_WINDOW} requests, mean",
        "bank_imbalance": "requests for the busiest bank by the mean of the banks",
    }
)
"""What each feature means; rows and banks are those of address mapping ``rbc``. For each other
mapping of the memory there are ``row_locality_share`` and ``bank_parallelism_count`` too, with the
name of the mapping at their end."""


def trace_features(trace: Trace, memory: Memory) -> dict[str, float]:
    """Values of :data:`FEATURES`, and of locality and parallelism under each mapping.

    Args:
        trace: the requests.
        memory: gives rows, banks and the length of a burst.
    """
    gaps = np.diff(trace.arrival_ps)
    span_ps = max(int(gaps.sum()), 1)
    burst_ps = memory.device.burst_cycles * memory.device.t_ck_ps
    line = trace.address // _LINE_BYTES
    step = np.diff(line)
    mean_gap = max(float(gaps.mean()), 1e-9) if len(gaps) else 1.0
    found = {
        "intensity_per_ns": len(gaps) / span_ps * 1e3,
        "load_share": len(trace) * burst_ps / memory.channels / span_ps,
        "read_share": float((trace.is_write == 0).mean()),
        "turnaround_share": _mean(np.diff(trace.is_write != 0)),
        "burstiness": float(gaps.std()) / mean_gap if len(gaps) else 0.0,
        "near_share": _mean(gaps < burst_ps),
        "idle_share": float(gaps[gaps > _IDLE_PS].sum()) / span_ps,
        "footprint_bytes": float(len(np.unique(line)) * _LINE_BYTES),
        "reuse_share": 1.0 - len(np.unique(line)) / len(line),
        "sequential_share": _mean(step == 1),
        "stride_share": _mean(step[1:] == step[:-1]),
    }
    channels = prepare(trace, memory, "rbc").channels
    found["near_row_share"] = _weighted(channels, _near_rows)
    found["hot_rows_share"] = _weighted(channels, _hot_rows)
    found["row_locality_share"] = _weighted(channels, _row_locality)
    found["bank_parallelism_count"] = _weighted(channels, _parallelism)
    found["bank_imbalance"] = _weighted(channels, _imbalance)
    for name in mapping_names(memory):
        if name != "rbc":
            channels = prepare(trace, memory, name).channels
            found[f"row_locality_share_{name}"] = _weighted(channels, _row_locality)
            found[f"bank_parallelism_count_{name}"] = _weighted(channels, _parallelism)
    return found


def _weighted(
    channels: tuple[ChannelTrace, ...], of_channel: Callable[[ChannelTrace], float]
) -> float:
    """The mean over channels, by their requests."""
    sizes = [len(one.bank) for one in channels]
    return float(np.average([of_channel(one) for one in channels], weights=sizes))


def _row_locality(requests: ChannelTrace) -> float:
    order = np.argsort(requests.bank, kind="stable")
    bank, row = requests.bank[order], requests.row[order]
    return float(((bank[1:] == bank[:-1]) & (row[1:] == row[:-1])).sum()) / len(bank)


def _rows(requests: ChannelTrace) -> Ints:
    """One number for each row of each bank."""
    return requests.bank.astype(np.int64) * (int(requests.row.max()) + 1) + requests.row


def _near_rows(requests: ChannelTrace) -> float:
    rows = _rows(requests)
    order = np.argsort(rows, kind="stable")
    same = rows[order][1:] == rows[order][:-1]
    return float((same & (np.diff(order) <= _WINDOW)).sum()) / len(rows)


def _hot_rows(requests: ChannelTrace) -> float:
    counts = np.sort(np.unique(_rows(requests), return_counts=True)[1])[::-1]
    return float(counts[: max(1, len(counts) // 100)].sum() / counts.sum())


def _parallelism(requests: ChannelTrace) -> float:
    bank = requests.bank.astype(np.int64)
    whole = len(bank) // _WINDOW * _WINDOW
    if not whole:
        return float(len(np.unique(bank)))
    ordered = np.sort(bank[:whole].reshape(-1, _WINDOW), axis=1)
    return float(1.0 + (np.diff(ordered, axis=1) != 0).sum(axis=1).mean())


def _imbalance(requests: ChannelTrace) -> float:
    counts = np.unique(requests.bank, return_counts=True)[1]
    return float(counts.max() / counts.mean())


def _mean(flags: NDArray[np.generic]) -> float:
    return float(flags.mean()) if len(flags) else 0.0
