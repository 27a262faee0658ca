"""What a trace asks of a memory, whether the memory can give it, and how late it begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archgym.envs.dram.device.memory import Memory
from archgym.envs.dram.traces.trace import Trace

__all__ = [
    "Demand",
    "asked_gb_per_s",
    "demand_of",
    "demand_warning",
    "late_warning",
    "peak_gb_per_s",
]

_LINE_BYTES = 64
_LATE_PS = 100_000_000
"""An idle beginning of up to 100 us, some ten refreshes, is none that distorts a metric."""


@dataclass(frozen=True)
class Demand:
    """What a trace asks for.

    Attributes:
        requests: number of requests.
        read_share: share of reads.
        span_ns: from the first arrival to the last.
        footprint_bytes: bytes of the distinct lines of 64 bytes.
        highest_address: the largest byte address.
        burst_gb_per_s: bandwidth of requests of 64 bytes in the busiest twentieth of the trace.
    """

    requests: int
    read_share: float
    span_ns: float
    footprint_bytes: int
    highest_address: int
    burst_gb_per_s: float


def demand_of(trace: Trace) -> Demand:
    """What a trace asks for, whatever the memory."""
    times, n = trace.arrival_ps, len(trace)
    step = max(1, n // 20)
    spans = times[step::step] - times[:-step:step]
    fastest = int(spans.min()) if len(spans) else 0
    return Demand(
        requests=n,
        read_share=float((trace.is_write == 0).mean()),
        span_ns=float(times[-1] - times[0]) / 1e3,
        footprint_bytes=len(np.unique(trace.address // _LINE_BYTES)) * _LINE_BYTES,
        highest_address=int(trace.address.max()),
        burst_gb_per_s=step * _LINE_BYTES / fastest * 1e3 if fastest > 0 else float("inf"),
    )


def asked_gb_per_s(trace: Trace, memory: Memory) -> float:
    """Bandwidth that a trace asks of a memory, each request a burst, GB/s; ``inf`` without time."""
    span_ps = int(trace.arrival_ps[-1] - trace.arrival_ps[0])
    moved = len(trace) * memory.device.bytes_per_request
    return moved / span_ps * 1e3 if span_ps > 0 else float("inf")


def peak_gb_per_s(memory: Memory) -> float:
    """The most that a memory can give, were every burst back to back, GB/s."""
    return memory.channels * memory.device.peak_bandwidth_gb_per_s


def demand_warning(trace: Trace, memory: Memory) -> str:
    """A sentence on a trace that asks for more than a memory can give; empty if it does not."""
    asked, peak = asked_gb_per_s(trace, memory), peak_gb_per_s(memory)
    if len(trace) < 2 or asked <= peak:
        return ""
    wanted = "all at once" if asked == float("inf") else f"for {asked:.1f} GB/s"
    return (
        f"trace {trace.name!r} asks {wanted}, and {memory.name} gives {peak:.1f} GB/s at most: "
        "requests wait ever longer, so latencies grow with the length of the trace. More channels, "
        "a faster memory, or arrival times further apart change that"
    )


def late_warning(trace: Trace, memory: Memory) -> str:
    """A sentence on a trace that begins with more idle time than it has requests for, or empty."""
    first, last = int(trace.arrival_ps[0]), int(trace.arrival_ps[-1])
    if first <= max(_LATE_PS, last - first):
        return ""
    cycle = -(-first // memory.device.t_ck_ps)
    return (
        f"trace {trace.name!r}: the first request arrives at {first / 1e6:,.0f} us, clock cycle "
        f"{cycle:,} of {memory.name}, and the last one {(last - first) / 1e6:,.0f} us later. The "
        "idle time before counts in time, bandwidth, power and energy; subtract it from the times "
        "if the memory does not wait"
    )
