"""Metrics of a deployment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.llm.deployment.memory import Room
from archgym.envs.llm.deployment.plan import dollars_per_hour
from archgym.envs.llm.deployment.workload import Workload
from archgym.envs.llm.serving.records import Deployment, Requests, Served
from archgym.problem.metrics import Metric

__all__ = ["METRICS", "attained_share", "metric_columns"]

_PERCENTILES: Final = (50, 90, 99)


def _latencies(name: str, what: str) -> list[Metric]:
    found = [Metric(f"{name}_mean_ms", "ms", "minimize", f"{what}, mean over requests")]
    for p in _PERCENTILES:
        doc = f"{what}, {p}th percentile over requests"
        found.append(Metric(f"{name}_p{p}_ms", "ms", "minimize", doc))
    return found


METRICS: Final = (
    Metric(
        "sustainable_requests_per_s",
        "requests/s",
        "maximize",
        "highest rate of the same requests at which the wanted share of them keeps both limits",
    ),
    Metric(
        "goodput_requests_per_usd",
        "requests/USD",
        "maximize",
        "requests at that rate by the list price of the GPUs that are used",
    ),
    Metric("attainment_share", "", "maximize", "requests within both limits at the offered rate"),
    Metric(
        "goodput_requests_per_s",
        "requests/s",
        "maximize",
        "requests within both limits at the offered rate, by the time until the last one ends",
    ),
    *_latencies("ttft", "time from arrival to the first token"),
    *_latencies("tpot", "time per output token after the first"),
    *_latencies("e2e", "time from arrival to the last token"),
    Metric("queue_mean_ms", "ms", "minimize", "time from arrival to the first iteration, mean"),
    Metric("requests_per_s", "requests/s", "maximize", "all requests by the time they take"),
    Metric("tokens_per_s_per_gpu", "tokens/s/GPU", "maximize", "output tokens by GPU and second"),
    Metric("gpus_count", "", "minimize", "GPUs that are used"),
    Metric("cost_usd_per_hour", "USD/hour", "minimize", "list price of the GPUs that are used"),
    Metric("cost_usd_per_mtoken", "USD/Mtoken", "minimize", "by output token, at the offered rate"),
    Metric("energy_j_per_token", "J/token", "minimize", "of the GPUs, at the offered rate"),
    Metric(
        "memory_use_share",
        "",
        "minimize",
        "weights, activations and the cache of the longest request, by what they may take; or "
        "offloaded weights by their tier, if that is more",
    ),
    Metric("peak_memory_gib", "GiB", "minimize", "of the GPU that needs most"),
    Metric("cache_gib", "GiB", "maximize", "room for keys and values of a GPU that decodes"),
    Metric("cache_use_share", "", "minimize", "of the blocks of the cache, mean while serving"),
    Metric("cache_peak_share", "", "minimize", "of the blocks of the cache, at most"),
    Metric("preemption_count", "", "minimize", "times that a sequence lost its blocks"),
    Metric("prefix_hit_share", "", "maximize", "prompt tokens that the prefix cache held"),
    Metric("iteration_mean_ms", "ms", "minimize", "time of an iteration, mean"),
    Metric("busy_share", "", "maximize", "time that replicas spend in iterations"),
)


def attained_share(served: Served, requests: Requests, workload: Workload) -> NDArray[np.float64]:
    """Share of the requests within both limits by deployment, shape (n,)."""
    ttft, tpot = _times(served, requests)
    with np.errstate(invalid="ignore"):
        good = (ttft * 1e3 <= workload.ttft_limit_ms) & (
            np.isnan(tpot) | (tpot * 1e3 <= workload.tpot_limit_ms)
        )
    return np.asarray(good.mean(axis=1))


def metric_columns(
    served: Served,
    deployments: Sequence[Deployment],
    requests: Requests,
    sustainable: NDArray[np.float64],
    memory: Sequence[Room],
    workload: Workload,
) -> dict[str, NDArray[np.float64]]:
    """Each metric of each deployment, by name, in the units of :data:`METRICS`.

    Args:
        served: at the offered rate.
        deployments: that served.
        requests: that were served.
        sustainable: highest rate by deployment, requests a second, shape (n,).
        memory: of each deployment.
        workload: limits and prices.
    """
    ttft, tpot = _times(served, requests)
    times = {"ttft": ttft, "tpot": tpot, "e2e": served.finished_s - served.arrival_s}
    found: dict[str, NDArray[np.float64]] = {}
    for name, values in times.items():
        found |= _statistics(name, values * 1e3)
    span = np.maximum(served.finished_s.max(axis=1) - served.arrival_s.min(axis=1), 1e-9)
    gpus = np.array([float(one.gpus) for one in deployments])
    price = np.array([dollars_per_hour(one, workload) for one in deployments])
    tokens = np.maximum(served.output_tokens.sum(axis=1), 1).astype(float)
    attained = attained_share(served, requests, workload)
    rate = len(requests) / span
    replicas = np.zeros((len(deployments), 2))
    for i, one in enumerate(deployments):
        replicas[i, : len(one.pools)] = [pool.replicas for pool in one.pools]
    blocks = np.maximum(served.cache_blocks, 1.0)
    available = (served.cache_blocks * replicas).sum(axis=1) * span
    free = np.maximum(price, 1e-9)
    found |= {
        "sustainable_requests_per_s": sustainable,
        "goodput_requests_per_usd": sustainable * 3600 / free,
        "attainment_share": attained,
        "goodput_requests_per_s": attained * rate,
        "queue_mean_ms": served.queued_s.mean(axis=1) * 1e3,
        "requests_per_s": rate,
        "tokens_per_s_per_gpu": tokens / span / gpus,
        "gpus_count": gpus,
        "cost_usd_per_hour": price,
        "cost_usd_per_mtoken": price / 3600 * span / tokens * 1e6,
        "energy_j_per_token": served.energy_j.sum(axis=1) / tokens,
        "memory_use_share": np.array([one.use_share for one in memory]),
        "cache_gib": np.array([one.cache_gib for one in memory]),
        "peak_memory_gib": served.peak_memory_gib.max(axis=1),
        "cache_use_share": served.block_seconds.sum(axis=1) / np.maximum(available, 1e-9),
        "cache_peak_share": (served.peak_blocks / blocks).max(axis=1),
        "preemption_count": served.preemptions.sum(axis=1).astype(float),
        "prefix_hit_share": served.cached_tokens.sum(axis=1) / requests.prompt_tokens.sum(),
        "iteration_mean_ms": served.busy_s.sum(axis=1)
        / np.maximum(served.iterations.sum(axis=1), 1)
        * 1e3,
        "busy_share": served.busy_s.sum(axis=1) / (replicas.sum(axis=1) * span),
    }
    return {metric.name: found[metric.name] for metric in METRICS}


def _times(served: Served, requests: Requests) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Time to the first token and per token after it, s; NaN where there is only one token."""
    after = np.maximum(requests.output_tokens - 1, 1)
    tpot = (served.finished_s - served.first_token_s) / after
    return served.first_token_s - served.arrival_s, np.where(
        requests.output_tokens > 1, tpot, np.nan
    )


def _statistics(name: str, values: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Mean and percentiles over requests; 0 where no request has a value."""
    if np.isnan(values).all():
        values = np.zeros_like(values)
    found = {f"{name}_mean_ms": np.nanmean(values, axis=1)}
    percentiles = np.nanpercentile(values, _PERCENTILES, axis=1)
    return found | {
        f"{name}_p{p}_ms": one for p, one in zip(_PERCENTILES, percentiles, strict=True)
    }
