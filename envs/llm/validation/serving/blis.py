"""Rows of BLIS (inference-sim): its deployments, traces and figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from archgym.envs.llm.validation.forms import Case, NotComparable
from archgym.problem.reference import TableRow, read_table

__all__ = ["read_blis"]

_FOLDER: Final = Path(__file__).parent / "tables"
_COUNT: Final = 200
"""Requests of a run: the first ones of its trace."""
_LLAMA: Final[Mapping[str, Any]] = {"gated": True, "tied": False, "sequence": 4096}
_MODELS: Final[Mapping[str, Any]] = {
    "llama-3.1-8b-instruct": "llama3_8b",
    "llama-3.1-70b-instruct": "llama3_70b",
    "mixtral-8x7b-v0.1": "mixtral_8x7b",
    "llama-2-7b-hf": {
        **_LLAMA, "layers": 32, "hidden": 4096, "feedforward": 11008, "heads": 32,
        "vocabulary": 32000,
    },
    "codellama-34b-instruct-hf": {
        **_LLAMA, "layers": 48, "hidden": 8192, "feedforward": 22016, "heads": 64, "kv_heads": 8,
        "vocabulary": 32000,
    },
    "yi-34b": {
        **_LLAMA, "layers": 60, "hidden": 7168, "feedforward": 20480, "heads": 56, "kv_heads": 8,
        "vocabulary": 64000,
    },
    "qwen2.5-7b-instruct": {
        **_LLAMA, "layers": 28, "hidden": 3584, "feedforward": 18944, "heads": 28, "kv_heads": 4,
        "vocabulary": 152064,
    },
    "qwen3-14b": {
        **_LLAMA, "layers": 40, "hidden": 5120, "feedforward": 17408, "heads": 40, "kv_heads": 8,
        "head_size": 128, "vocabulary": 151936,
    },
    "qwen3-30b-a3b": {
        **_LLAMA, "layers": 48, "hidden": 2048, "feedforward": 6144, "heads": 32, "kv_heads": 4,
        "head_size": 128, "vocabulary": 151936, "experts": 128, "active_experts": 8,
        "expert_feedforward": 768,
    },
}  # fmt: skip
"""Shapes as in BLIS's ``model_configs``."""
_CLUSTERS: Final[Mapping[str, Any]] = {
    "H100": {
        "base": "dgx_h100",
        "chip": {"base": "h100", "matrix_tflops": 989.5, "memory_gb_per_s": 3350},
    },
    "A100-SXM": {
        "base": "dgx_a100",
        "chip": {"base": "a100", "matrix_tflops": 312, "memory_gb_per_s": 2039},
    },
}
"""As in BLIS's ``hardware_config.json``."""
_ENGINES: Final = {
    ("roofline", "H100"): "blis_roofline_h100",
    ("roofline", "A100-SXM"): "blis_roofline_a100",
    ("trained-physics", "H100"): "blis_linear",
    ("trained-physics", "A100-SXM"): "blis_linear",
}
_SCHEDULERS: Final = {"fcfs": "fcfs", "sjf": "shortest_prompt"}
_ROUTINGS: Final = {"round-robin": "round_robin", "least-loaded": "least_loaded"}
_TRACES: Final = {
    name: name for name in ("azure_code_a", "azure_conv_a", "chat_poisson", "fixed_1024_256")
}


def read_blis(row: TableRow) -> Case:
    """A row as a case, with the blocks of the cache that our memory model gives.

    BLIS times the first token of split deployments from the arrival at the pool that decodes, so
    these rows give no such time.

    Raises:
        NotComparable: if the run is not complete.
        InvalidValueError: if a cell is not possible.
    """
    if row.text("status") != "ok" or row.text("complete") not in ("1", "1.0"):
        raise NotComparable("the run was refused or is not complete")
    trace = row.choice("trace", _TRACES)
    rate, seconds = row.number("rate_per_s"), row.number("vllm_estimated_duration_s")
    if not rate or not seconds:
        raise row.error("rate_per_s", "It must be a number above 0.")
    first, last = _span(trace)
    prefilling = row.whole("prefill_instances")
    pool = {"tensor_parallel": row.whole("tp")}
    design: dict[str, Any] = {
        **pool,
        "replicas": row.whole("num_instances") - prefilling,
        "routing": row.choice("routing", _ROUTINGS),
        "max_num_seqs": row.whole("max_num_seqs"),
        "max_num_batched_tokens": row.whole("max_num_batched_tokens"),
        "memory_share": row.number("gpu_memory_utilization"),
        "block_size": row.whole("block_size"),
        "scheduler": row.choice("scheduler", _SCHEDULERS),
        "split": prefilling > 0,
    }
    metrics = {
        "tpot_mean_ms": row.number("tpot_mean_ms"),
        "requests_per_s": _COUNT / (seconds - first / rate),
    }
    if prefilling:
        design |= {f"prefill_{name}": value for name, value in pool.items()}
        design["prefill_replicas"] = prefilling
    else:
        metrics["ttft_p50_ms"] = row.number("ttft_p50_ms")
    hardware = row.choice("hardware", {name: name for name in _CLUSTERS})
    kind = row.choice(
        "latency_model", {"roofline": "roofline", "trained-physics": "trained-physics"}
    )
    workload = {
        "model": row.choice("model", _MODELS),
        "fleet": {"groups": [{"cluster": _CLUSTERS[hardware], "gpus": row.whole("gpus")}]},
        "requests": {
            "file": str(_FOLDER / f"{trace}.csv"),
            "count": _COUNT,
            "rate_per_s": rate * (_COUNT - 1) / (last - first),
        },
        "engine": _ENGINES[kind, hardware],
        "attainment_goal": 0,
    }
    given = {name: value for name, value in metrics.items() if value is not None}
    return Case(kind, workload, design, given)


def _span(trace: str) -> tuple[float, float]:
    """First and last arrival of a run at one request a second."""
    _, rows = read_table(_FOLDER / f"{trace}.csv")
    times = [row.number("arrival_s") or 0.0 for row in rows[:_COUNT]]
    return times[0], times[-1]
